// Owing work outside the fast ways: delete messages and replays, inside the transaction that makes them. The books are told in
// the same transaction.

import type { RowIds } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'

export const LEDGER = 0
export const SOURCE_COUNTS = 1
/** No counts: that the transaction of this name was committed. Kept for a while. */
export const MARKER = 2

/** Owed, delivered, pending, failed, expired, cancelled. */
export type LedgerChange = readonly [number, number, number, number, number, number]

export async function changeLedger(ask: Ask, ids: RowIds, destination: string, change: LedgerChange): Promise<void> {
  await ask('INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, $2, $3, $4)', [ids.next(), LEDGER, destination, change])
}
