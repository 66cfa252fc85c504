// Drops data that is older than a cutoff: whole partitions, and single rows only where a day has no partition. Pending
// messages and messages in quarantine are never dropped, however old: their segments are pinned, and kept with all rows that record
// the outcomes of their other messages. Of a segment that has only messages in quarantine, the others are emptied. Segments are dropped first: once they are gone, no old message can be replayed, and the other
// tables can be scanned without a lock. One node does this at a time. drop-partition.ts drops a single partition.

import { setTimeout as sleep } from 'node:timers/promises'
import { trimSegment } from '../../deletions/purged-content.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import { type Connection, isLockTimeout } from '../session/connection.ts'
import { type Ask, transact } from '../session/database.ts'
import { msOfRowId, rowIdAt } from '../tables/ids.ts'
import { rewriteSegments, type SegmentToRewrite } from '../tables/rewrite-segments.ts'
import { PartitionDropper } from './drop-partition.ts'
import { PARTITIONED, type PartitionedTable } from './migrations.ts'
import { DAY_MS, dayOf, firstKey, partitionedDays, partitionName, preparePartitions } from './partitions.ts'

const STATEMENT_MS = 120_000
/** In the order in which they are dropped: see above. */
const TABLES = ['segments', 'attempts', 'failures', 'replays', 'repeats', 'message_keys'] as const satisfies readonly PartitionedTable[]
/** No row is added to a day this long after its end, so its rows can be counted before it is locked. */
const SETTLED_MS = 6 * 3_600_000
/** Longer than any transaction that creates replays. */
const TRANSACTION_MS = 600_000
const TRIES = 30
/** Much longer than the time that other statements may have to queue behind a lock request. */
const PAUSE_MS = 1_000

/** Returns at once if another node is doing it. Stops early if it cannot get a lock; the next call continues. */
export async function dropMessages(context: StoreContext, lineMs: number): Promise<void> {
  await preparePartitions(context.database)
  const connection = await context.database.connect(STATEMENT_MS)
  try {
    const { rows } = await connection.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [ADVISORY_LOCKS.retention])
    if (!rows[0]?.mine) return
    await dropWith(connection, context, lineMs)
    // Unlocks explicitly, because the server may notice a closed connection late.
    await connection.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.retention])
  } finally {
    connection.destroy()
  }
}

async function dropWith(connection: Connection, { ids, isClosed }: StoreContext, lineMs: number): Promise<void> {
  const ask: Ask = (text, values) => connection.query(text, values)
  // The cutoff is never later than the newest row id, so that messages accepted from now on are after it, whatever the clock says.
  const newest = ids.next()
  const asked = rowIdAt(lineMs)
  const cutoff = asked < newest ? asked : newest
  const nowMs = msOfRowId(newest)
  if (!(await isAnyBefore(ask, cutoff))) return
  await pinPending(ask, cutoff)
  await trimQuarantined(ask, cutoff, isClosed)
  await ask('INSERT INTO pinned SELECT DISTINCT segment FROM quarantine WHERE segment < $1 ON CONFLICT DO NOTHING', [cutoff])
  const dropper = new PartitionDropper(ask, cutoff, rowIdAt(nowMs - TRANSACTION_MS))
  for (const table of TABLES) {
    const cutoffKey = keyOf(table, cutoff)
    for (const day of await partitionedDays(ask, table)) {
      if (BigInt(firstKey(table, day)) >= BigInt(cutoffKey)) continue
      const isWhole = BigInt(firstKey(table, day + 1)) <= BigInt(cutoffKey) && (day + 1) * DAY_MS + SETTLED_MS <= nowMs
      const name = partitionName(table, day)
      const goes = isWhole ? await dropper.dayOf(table, name) : dropper.rowsOf(table, name, cutoffKey)
      if (!(await untilDone(goes, isClosed))) return
    }
    if (!(await untilDone(dropper.rowsOf(table, `${table}_rest`, cutoffKey), isClosed))) return
  }
}

/** Returns false if the work has to be left to the next run. */
async function untilDone(step: () => Promise<boolean>, isClosed: () => boolean): Promise<boolean> {
  for (let nth = 1; nth <= TRIES && !isClosed(); ) {
    try {
      if (await step()) return true
      nth = 1
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      nth++
      await sleep(PAUSE_MS)
    }
  }
  return false
}

/** The key in `table` that corresponds to the cutoff. */
function keyOf(table: PartitionedTable, cutoff: string): string {
  return table === 'message_keys' ? String(dayOf(msOfRowId(cutoff))) : cutoff
}

/** Nearly always false. Then there is no need to read the shipments, of which there may be a million. */
async function isAnyBefore(ask: Ask, cutoff: string): Promise<boolean> {
  for (const table of TABLES) {
    const cutoffKey = keyOf(table, cutoff)
    for (const day of await partitionedDays(ask, table)) if (BigInt(firstKey(table, day)) < BigInt(cutoffKey)) return true
    const { rows } = await ask(`SELECT 1 FROM ${table}_rest WHERE ${PARTITIONED[table]} < $1 LIMIT 1`, [cutoffKey])
    if (rows.length > 0) return true
  }
  return false
}

/** Pins the segments before the cutoff that pending shipments refer to. Segments that are replayed while segments are dropped are added under the lock. */
async function pinPending(ask: Ask, cutoff: string): Promise<void> {
  await ask('DELETE FROM pinned')
  await ask(
    `INSERT INTO pinned SELECT DISTINCT (part->>1)::bigint FROM shipments, jsonb_array_elements(parts::jsonb) AS part
     WHERE (part->>1)::bigint < $1`,
    [cutoff],
  )
}

const SEGMENTS_PER_STEP = 20

/**
 * Removes the content of old messages from segments that are kept only because other messages of theirs are in quarantine. Called after the
 * segments with pending deliveries were pinned.
 */
async function trimQuarantined(ask: Ask, cutoff: string, isClosed: () => boolean): Promise<void> {
  for (let from = '0'; !isClosed(); ) {
    const { rows } = await ask<{ segment: string }>(
      `SELECT DISTINCT q.segment FROM quarantine q JOIN segments g ON g.seq = q.segment
       WHERE q.segment > $1 AND q.segment < $2 AND g.routes::jsonb -> 't' IS NULL
         AND NOT EXISTS (SELECT 1 FROM pinned WHERE pinned.segment = q.segment)
       ORDER BY q.segment LIMIT ${SEGMENTS_PER_STEP}`,
      [from, cutoff],
    )
    const last = rows.at(-1)
    if (last === undefined) return
    const segments = rows.map(({ segment }) => segment)
    await transact(ask, () => trim(ask, segments))
    from = last.segment
  }
}

/**
 * The lock on a segment orders this with transactions that release or replay one of its messages. A message that was replayed since the segments were
 * pinned is pending, so its segment is left for the next time.
 */
async function trim(ask: Ask, segments: readonly string[]): Promise<void> {
  const { rows } = await ask<SegmentToRewrite>(
    'SELECT seq, absent, violations, routes, keys, body FROM segments WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE',
    [segments],
  )
  const { rows: held } = await ask<{ segment: string; idx: number }>(
    'SELECT segment, idx FROM quarantine WHERE segment = ANY($1::bigint[])',
    [segments],
  )
  const { rows: replayed } = await ask<{ segment: string }>(
    `SELECT DISTINCT segment FROM replays WHERE segment = ANY($1::bigint[]) AND (state IS NULL OR state = 'retrying')`,
    [segments],
  )
  const trimmed = rows.flatMap((row) => {
    if (replayed.some(({ segment }) => segment === row.seq)) return []
    const indexes = held.filter(({ segment }) => segment === row.seq).map(({ idx }) => idx)
    const left = trimSegment({ ...row, absent: row.absent ?? [] }, indexes)
    return left === undefined ? [] : [{ ...left, seq: row.seq, isEmpty: false }]
  })
  if (trimmed.length === 0) return
  // With the text of attempts: afterwards no deletion would find it, because the hashes of the users are gone.
  await rewriteSegments(ask, trimmed)
}
