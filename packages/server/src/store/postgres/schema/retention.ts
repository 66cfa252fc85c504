// Dropping what is older than a line: partitions whole, and by rows only what has none of its own. What is still owed is
// never dropped, however old: the segments that pending shipments refer to are pinned, and stay with everything that says
// how the rest of their messages ended. Segments go first: once they are gone, nothing old can be owed anew, and what else
// is old can be looked through without a lock. One node at a time; how one partition goes is in drop-partition.ts.

import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Connection } from '../session/connection.ts'
import type { Ask } from '../session/database.ts'
import { isLockTimeout, pause } from '../session/lock-timeouts.ts'
import type { StoreContext } from '../session/store-context.ts'
import { PartitionDropper } from './drop-partition.ts'
import { msOfRowId, rowIdAt } from './ids.ts'
import { PARTITIONED, type PartitionedTable } from './migrations.ts'
import { DAY_MS, dayOf, firstKey, partitionedDays, partitionName, preparePartitions } from './partitions.ts'

const STATEMENT_MS = 120_000
/** In this order: see above. */
const TABLES = ['segments', 'attempts', 'failures', 'replays', 'repeats', 'message_keys'] as const satisfies readonly PartitionedTable[]
/** No row of a day comes this late, so that a day that is over for so long can be counted before it is locked. */
const SETTLED_MS = 6 * 3_600_000
/** No transaction that owes something anew takes as long. */
const TRANSACTION_MS = 600_000
const TRIES = 30
/** Long against the time for which others may have to wait while a lock is waited for. */
const PAUSE_MS = 1_000

/** Returns at once when another node is at it; and before its end when others do not let it, for the next time to go on. */
export async function dropMessages(context: StoreContext, lineMs: number): Promise<void> {
  await preparePartitions(context.database)
  const connection = await context.database.connect(STATEMENT_MS)
  try {
    const { rows } = await connection.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [ADVISORY_LOCKS.retention])
    if (!rows[0]?.mine) return
    await dropWith(connection, context, lineMs)
    // The server may take its time to notice that a connection was closed.
    await connection.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.retention])
  } finally {
    connection.destroy()
  }
}

async function dropWith(connection: Connection, { ids, isClosed }: StoreContext, lineMs: number): Promise<void> {
  const ask: Ask = (text, values) => connection.query(text, values)
  // Never ahead of what was given out, so that what is accepted from now on lies after it, whatever the clock says.
  const newest = ids.next()
  const asked = rowIdAt(lineMs)
  const line = asked < newest ? asked : newest
  const nowMs = msOfRowId(newest)
  if (!(await isAnyBefore(ask, line))) return
  await pin(ask, line)
  const expiring = new PartitionDropper(ask, line, rowIdAt(nowMs - TRANSACTION_MS))
  for (const table of TABLES) {
    const lineKey = keyOf(table, line)
    for (const day of await partitionedDays(ask, table)) {
      if (BigInt(firstKey(table, day)) >= BigInt(lineKey)) continue
      const isWhole = BigInt(firstKey(table, day + 1)) <= BigInt(lineKey) && (day + 1) * DAY_MS + SETTLED_MS <= nowMs
      const name = partitionName(table, day)
      const goes = isWhole ? await expiring.dayOf(table, name) : expiring.rowsOf(table, name, lineKey)
      if (!(await untilDone(goes, isClosed))) return
    }
    if (!(await untilDone(expiring.rowsOf(table, `${table}_rest`, lineKey), isClosed))) return
  }
}

/** False when it has to be left to the next time. */
async function untilDone(step: () => Promise<boolean>, isClosed: () => boolean): Promise<boolean> {
  for (let nth = 1; nth <= TRIES && !isClosed(); ) {
    try {
      if (await step()) return true
      nth = 1
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      nth++
      await pause(PAUSE_MS)
    }
  }
  return false
}

/** The key in `table` that corresponds to the line. */
function keyOf(table: PartitionedTable, line: string): string {
  return table === 'message_keys' ? String(dayOf(msOfRowId(line))) : line
}

/** Nothing is, at nearly every asking: then what may be a million shipments need not be read. */
async function isAnyBefore(ask: Ask, line: string): Promise<boolean> {
  for (const table of TABLES) {
    const lineKey = keyOf(table, line)
    for (const day of await partitionedDays(ask, table)) if (BigInt(firstKey(table, day)) < BigInt(lineKey)) return true
    const { rows } = await ask(`SELECT 1 FROM ${table}_rest WHERE ${PARTITIONED[table]} < $1 LIMIT 1`, [lineKey])
    if (rows.length > 0) return true
  }
  return false
}

/** The segments before the line that are owed by now. Those that are owed anew while segments are dropped are added under the lock. */
async function pin(ask: Ask, line: string): Promise<void> {
  await ask('DELETE FROM pinned')
  await ask(
    `INSERT INTO pinned SELECT DISTINCT (part->>1)::bigint FROM shipments, jsonb_array_elements(parts::jsonb) AS part
     WHERE (part->>1)::bigint < $1`,
    [line],
  )
}
