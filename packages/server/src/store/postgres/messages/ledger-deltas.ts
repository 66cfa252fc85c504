// Appends changes of the counts (`deltas`) outside of the grouped statements of accepting and settling: for delete messages, cancellations
// and rejections, in the transaction that changes them.

import type { Ask } from '../session/database.ts'

export const LEDGER = 0
export const SOURCE_COUNTS = 1
/** A delta without counts. It marks that the transaction with this id was committed, and is kept for a while. */
export const MARKER = 2

/** `counts` of a destination: owed, delivered, pending, failed, expired, cancelled. Of a source: accepted, duplicates, rejected, suppressed. */
export async function addDelta(ask: Ask, id: string, kind: number, subject: string, counts: readonly number[]): Promise<void> {
  await ask('INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, $2, $3, $4)', [id, kind, subject, counts])
}
