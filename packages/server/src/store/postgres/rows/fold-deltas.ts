// Adds deltas to the ledger and to the counts of sources ("folding"). A transaction appends its changes as deltas (see
// tables/ledger-deltas.ts), so that nodes do not wait for each other's lock on one row. Once a second one of the nodes folds some of them.
// Invariant: in every snapshot, folded counts plus deltas give the right sum, because a delta is deleted in the transaction that adds it.

import type { StoreContext } from '../cluster/store-context.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Database } from '../session/database.ts'
import { msOfRowId, OLDEST, rowIdAt, SKEW } from '../tables/ids.ts'
import { COUNT_NAMES, countsOfDeltas, LEDGER, MARKER } from '../tables/ledger-deltas.ts'

const MARKERS_KEPT_MS = 15 * 60_000
const FOLDED_PER_STEP = 5_000
const STEPS_PER_FOLD = 4
/** One in this many folds starts at the first row, to find deltas that were committed later than their row ids suggest. */
const FOLDS_PER_FULL_SCAN = 300

/** Returns a function that every node calls once a second. One node folds at a time; the others return at once. */
export function createDeltaFolder({ database, ids }: Pick<StoreContext, 'database' | 'ids'>): () => Promise<void> {
  let folds = 0
  /** Every delta before this row id was folded, or belongs to a transaction that took unusually long. */
  let foldFrom = OLDEST
  let markersFrom = OLDEST
  return async () => {
    // The server's time, as in row ids.
    const nowMs = msOfRowId(ids.next())
    const isFullScan = folds++ % FOLDS_PER_FULL_SCAN === 0
    let from = isFullScan ? OLDEST : foldFrom
    for (let step = 0; step < STEPS_PER_FOLD; step++) {
      const { got, count, last } = await foldSome(database, from)
      if (!got) return
      if (count < FOLDED_PER_STEP) {
        // The next fold starts here, because deleted rows stay in the index as long as an old snapshot is open, and would have to be skipped.
        foldFrom = String(BigInt(rowIdAt(nowMs)) - BigInt(SKEW))
        break
      }
      from = last ?? from
    }
    const before = rowIdAt(nowMs - MARKERS_KEPT_MS)
    const dropped = await dropMarkers(database, isFullScan ? OLDEST : markersFrom, before)
    if (dropped < FOLDED_PER_STEP) markersFrom = String(BigInt(before) - BigInt(SKEW))
  }
}

/** One statement, so that deleting and adding deltas is one transaction in one round trip. Skips locked rows. */
async function foldSome(database: Database, from: string): Promise<{ got: boolean; count: number; last: string | null }> {
  const { rows } = await database.query<{ got: boolean; count: number; last: string | null }>(
    `WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.books}) AS got),
     next AS MATERIALIZED (
       SELECT ctid AS tid FROM deltas WHERE (SELECT got FROM turn) AND id >= $1 AND kind <> ${MARKER}
       ORDER BY id LIMIT ${FOLDED_PER_STEP} FOR UPDATE SKIP LOCKED
     ),
     taken AS (DELETE FROM deltas WHERE ctid = ANY (ARRAY(SELECT tid FROM next)) RETURNING id, kind, subject, counts),
     owed AS (
       INSERT INTO ledger AS l (destination, owed, delivered, pending, failed, expired, cancelled)
       SELECT subject, sum(counts[1]), sum(counts[2]), sum(counts[3]), sum(counts[4]), sum(counts[5]), sum(counts[6])
       FROM taken WHERE kind = ${LEDGER} GROUP BY subject ORDER BY subject
       ON CONFLICT (destination) DO UPDATE SET
         owed = l.owed + excluded.owed, delivered = l.delivered + excluded.delivered, pending = l.pending + excluded.pending,
         failed = l.failed + excluded.failed, expired = l.expired + excluded.expired, cancelled = l.cancelled + excluded.cancelled
     ),
     counted AS (
       INSERT INTO source_counts AS c (source, ${COUNT_NAMES.join(', ')})
       ${countsOfDeltas('taken')} ORDER BY subject
       ON CONFLICT (source) DO UPDATE SET ${COUNT_NAMES.map((name) => `${name} = c.${name} + excluded.${name}`).join(', ')}
     )
     SELECT (SELECT got FROM turn) AS got, count(*)::integer AS count, max(id) AS last FROM taken`,
    [from],
  )
  return rows[0] ?? { got: false, count: 0, last: null }
}

async function dropMarkers(database: Database, from: string, before: string): Promise<number> {
  const { count } = await database.query(
    `DELETE FROM deltas WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM deltas WHERE kind = ${MARKER} AND id >= $1 AND id < $2 ORDER BY id LIMIT ${FOLDED_PER_STEP} FOR UPDATE SKIP LOCKED
     ))`,
    [from, before],
  )
  return count
}
