// Appends changes of the counts (`deltas`) outside of the grouped statements of accepting and settling: for delete messages, cancellations
// and rejections, in the transaction that changes them.

import type { Ask } from '../session/database.ts'

export const LEDGER = 0
export const SOURCE_COUNTS = 1
/** A delta without counts. It marks that the transaction with this id was committed, and is kept for a while. */
export const MARKER = 2
/** Of a source: quarantined, released, deleted. Not part of SOURCE_COUNTS, because nodes of an earlier version fold those without the new counts. */
export const QUARANTINE_COUNTS = 3

/** The counts of a source, in the order of the columns of `source_counts`. */
export const COUNT_NAMES = ['accepted', 'duplicates', 'rejected', 'suppressed', 'quarantined', 'released', 'deleted'] as const

/** A query with the counts of each source (`subject`) in rows of `deltas`. */
export function countsOfDeltas(deltas: string): string {
  const sums = COUNT_NAMES.map((name, at) => {
    const [kind, place] = at < 4 ? [SOURCE_COUNTS, at + 1] : [QUARANTINE_COUNTS, at - 3]
    return `coalesce(sum(counts[${place}]) FILTER (WHERE kind = ${kind}), 0)::bigint AS ${name}`
  })
  return `SELECT subject, ${sums.join(', ')} FROM ${deltas} WHERE kind IN (${SOURCE_COUNTS}, ${QUARANTINE_COUNTS}) GROUP BY subject`
}

/** `counts` of a destination: owed, delivered, pending, failed, expired, cancelled. Of a source: accepted, duplicates, rejected, suppressed. */
export async function addDelta(ask: Ask, id: string, kind: number, subject: string, counts: readonly number[]): Promise<void> {
  await ask('INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, $2, $3, $4)', [id, kind, subject, counts])
}
