// Owing work outside the fast ways: delete messages and replays, inside the transaction that makes them. The books are told in
// the same transaction.

import type { Ask } from '../session/database.ts'

export const LEDGER = 0
export const SOURCE_COUNTS = 1
/** No counts: that the transaction of this name was committed. Kept for a while. */
export const MARKER = 2

/** Appends counts of a source, or of a destination: owed, delivered, pending, failed, expired, cancelled. */
export async function addDelta(ask: Ask, id: string, kind: number, subject: string, counts: readonly number[]): Promise<void> {
  await ask('INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, $2, $3, $4)', [id, kind, subject, counts])
}
