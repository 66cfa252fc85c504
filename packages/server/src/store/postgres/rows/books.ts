// The books as they are read, and their folding. A transaction appends what it changes as deltas (see owing.ts), so that nodes
// do not wait for each other at one row; once a second each node adds some of them up into the ledger and the counts of sources.
// Invariant: what is folded and what is not add up to the same in every snapshot, as a delta goes in the transaction that
// adds it. Counting from the rows is in recount.ts.

import type { Configuration, LedgerRow, OldestPending, RejectionRow, SourceCounts, StoreInspection } from '../../store.ts'
import { holders } from '../messages/held.ts'
import { LEDGER, MARKER, SOURCE_COUNTS } from '../messages/owing.ts'
import { msOfRowId, OLDEST, rowIdAt, SKEW } from '../schema/ids.ts'
import { inspect } from '../schema/inspect.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Ask } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { readText } from '../session/texts.ts'
import { byIndexes } from './paging.ts'
import { readLedger, recount } from './recount.ts'
import type { StoredPart } from './rows.ts'

const RECOUNT_MS = 10 * 60_000
const MARKERS_KEPT_MS = 15 * 60_000
const FOLDED_PER_STEP = 5_000
const STEPS_PER_FOLD = 4
/** Folds between two that begin at the first row: what came later than its name says is found by those. */
const FOLDS_PER_FULL_LOOK = 300

export class Books {
  readonly #parts: Parts
  #folds = 0
  /** Every delta before was folded, or belongs to a transaction that took longer than any should. */
  #foldFrom = OLDEST
  #markersFrom = OLDEST

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async ledger(): Promise<LedgerRow[]> {
    return withAll(await readLedger((text) => this.#parts.database.query(text)), this.#parts.configuration())
  }

  /** It reads every row: on a connection of its own, one at a time, and with more time than other questions have. */
  recount(): Promise<LedgerRow[]> {
    const recounting = this.#recounting.then(async () => {
      const connection = await this.#parts.database.connect(RECOUNT_MS)
      try {
        return withAll(await recount((text) => connection.query({ text })), this.#parts.configuration())
      } finally {
        connection.destroy()
      }
    })
    this.#recounting = recounting.catch(() => {})
    return recounting
  }
  #recounting: Promise<unknown> = Promise.resolve()

  inspect(deadlineMs: number): Promise<StoreInspection | undefined> {
    return inspect(this.#parts.database, deadlineMs)
  }

  async oldestPendingAtMs(destinationId: string): Promise<number | null> {
    const { database, names } = this.#parts
    const destination = await names.find(database, 'destinations', destinationId)
    if (destination === undefined) return null
    return (await byIndexes(database, (ask) => oldestOf(ask, [destination]))).get(destination) ?? null
  }

  async oldestPending(): Promise<OldestPending[]> {
    const { database, names } = this.#parts
    const owing = (await readLedger((text) => database.query(text))).filter(({ pending }) => pending > 0)
    const nums = new Map<string, string>()
    for (const { destinationId } of owing) {
      const num = await names.find(database, 'destinations', destinationId)
      if (num !== undefined) nums.set(destinationId, num)
    }
    const oldest = await byIndexes(database, (ask) => oldestOf(ask, [...nums.values()]))
    return [...nums].flatMap(([destinationId, num]) => {
      const atMs = oldest.get(num)
      return atMs === undefined ? [] : [{ destinationId, atMs }]
    })
  }

  async rejections(): Promise<RejectionRow[]> {
    const { rows } = await this.#parts.database.query<RejectionRow>(
      `SELECT s.id AS "sourceId", code, count, last_at AS "lastAtMs", last_sample AS "lastSample"
       FROM rejections LEFT JOIN sources s ON s.num = source ORDER BY last_at DESC, source, code`,
    )
    return rows.map((row) => Object.assign(row, { lastSample: readText(row.lastSample) }))
  }

  async sourceCounts(): Promise<SourceCounts[]> {
    const { rows } = await this.#parts.database.query<SourceCounts>(
      `SELECT s.id AS "sourceId", sum(accepted)::bigint AS accepted, sum(duplicates)::bigint AS duplicates,
              sum(rejected)::bigint AS rejected, sum(suppressed)::bigint AS suppressed
       FROM (
         SELECT source, accepted, duplicates, rejected, suppressed FROM source_counts
         UNION ALL SELECT subject, counts[1], counts[2], counts[3], counts[4] FROM deltas WHERE kind = ${SOURCE_COUNTS}
       ) c JOIN sources s ON s.num = c.source GROUP BY s.num, s.id ORDER BY s.num`,
    )
    return rows
  }

  /** Called once a second by every node; one of them folds at a time, and the others need not. */
  async fold(): Promise<void> {
    // The server's time, as names carry it.
    const nowMs = msOfRowId(this.#parts.ids.next())
    const isFullLook = this.#folds++ % FOLDS_PER_FULL_LOOK === 0
    let from = isFullLook ? OLDEST : this.#foldFrom
    for (let step = 0; step < STEPS_PER_FOLD; step++) {
      const { got, count, last } = await this.#foldSome(from)
      if (!got) return
      if (count < FOLDED_PER_STEP) {
        // Begun here next time: rows that are gone stay in the index for as long as anyone has an old snapshot, and are passed over.
        this.#foldFrom = String(BigInt(rowIdAt(nowMs)) - BigInt(SKEW))
        break
      }
      from = last ?? from
    }
    await this.#dropMarkers(rowIdAt(nowMs - MARKERS_KEPT_MS), isFullLook)
  }

  /** One statement, so that what it takes and what it adds is one transaction in one round trip. Locked rows stay in their place. */
  async #foldSome(from: string): Promise<{ got: boolean; count: number; last: string | null }> {
    const { rows } = await this.#parts.database.query<{ got: boolean; count: number; last: string | null }>(
      `WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.books}) AS got),
       next AS MATERIALIZED (
         SELECT ctid AS place FROM deltas WHERE (SELECT got FROM turn) AND id >= $1 AND kind < ${MARKER}
         ORDER BY id LIMIT ${FOLDED_PER_STEP} FOR UPDATE SKIP LOCKED
       ),
       taken AS (DELETE FROM deltas WHERE ctid = ANY (ARRAY(SELECT place FROM next)) RETURNING id, kind, subject, counts),
       owed AS (
         INSERT INTO ledger AS l (destination, owed, delivered, pending, failed, expired, cancelled)
         SELECT subject, sum(counts[1]), sum(counts[2]), sum(counts[3]), sum(counts[4]), sum(counts[5]), sum(counts[6])
         FROM taken WHERE kind = ${LEDGER} GROUP BY subject ORDER BY subject
         ON CONFLICT (destination) DO UPDATE SET
           owed = l.owed + excluded.owed, delivered = l.delivered + excluded.delivered, pending = l.pending + excluded.pending,
           failed = l.failed + excluded.failed, expired = l.expired + excluded.expired, cancelled = l.cancelled + excluded.cancelled
       ),
       counted AS (
         INSERT INTO source_counts AS c (source, accepted, duplicates, rejected, suppressed)
         SELECT subject, sum(counts[1]), sum(counts[2]), sum(counts[3]), sum(counts[4])
         FROM taken WHERE kind = ${SOURCE_COUNTS} GROUP BY subject ORDER BY subject
         ON CONFLICT (source) DO UPDATE SET
           accepted = c.accepted + excluded.accepted, duplicates = c.duplicates + excluded.duplicates,
           rejected = c.rejected + excluded.rejected, suppressed = c.suppressed + excluded.suppressed
       )
       SELECT (SELECT got FROM turn) AS got, count(*)::integer AS count, max(id) AS last FROM taken`,
      [from],
    )
    return rows[0] ?? { got: false, count: 0, last: null }
  }

  async #dropMarkers(before: string, isFullLook: boolean): Promise<void> {
    const { count } = await this.#parts.database.query(
      `DELETE FROM deltas WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM deltas WHERE kind = ${MARKER} AND id >= $1 AND id < $2 ORDER BY id LIMIT ${FOLDED_PER_STEP} FOR UPDATE SKIP LOCKED
       ))`,
      [isFullLook ? OLDEST : this.#markersFrom, before],
    )
    if (count < FOLDED_PER_STEP) this.#markersFrom = String(BigInt(before) - BigInt(SKEW))
  }
}

/** When the oldest of what each destination is owed came to be owed; of those that are owed something. */
async function oldestOf(ask: Ask, destinations: readonly string[]): Promise<Map<string, number>> {
  const oldest = (holder: string): string =>
    `(SELECT parts FROM shipments s WHERE ${holder} AND s.destination = d.num AND attempt = 0 ORDER BY s.id LIMIT 1)
     UNION ALL
     (SELECT parts FROM shipments s WHERE ${holder} AND s.destination = d.num AND attempt > 0 ORDER BY s.first_attempt LIMIT 1)`
  const { rows } = await ask<{ destination: string; parts: string }>(
    `SELECT d.num AS destination, o.parts FROM unnest($1::bigint[]) AS d(num) CROSS JOIN LATERAL (${oldest('holder = 0')}) o
     UNION ALL
     -- Of what is held, both of all destinations in one look.
     (SELECT DISTINCT ON (destination, attempt > 0) destination, parts FROM shipments
      WHERE holder = ANY($2::bigint[]) AND destination = ANY($1::bigint[])
      ORDER BY destination, attempt > 0, coalesce(first_attempt, 0), id)`,
    [destinations, await holders(ask)],
  )
  const times = new Map<string, number>()
  for (const { destination, parts } of rows) {
    for (const [origin] of JSON.parse(parts) as StoredPart[]) {
      times.set(destination, Math.min(times.get(destination) ?? Number.POSITIVE_INFINITY, msOfRowId(origin)))
    }
  }
  return times
}

/** With those that were never owed anything. */
function withAll(rows: readonly LedgerRow[], { destinations }: Configuration): LedgerRow[] {
  const known = new Set(rows.map(({ destinationId }) => destinationId))
  const nothing = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
  const missing = [...destinations.keys()].filter((id) => !known.has(id))
  return [...rows, ...missing.map((destinationId) => Object.assign({ destinationId }, nothing))]
}
