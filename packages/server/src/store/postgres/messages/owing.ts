// Owing work outside the fast ways: delete messages and replays, inside the transaction that makes them. The books are told in
// the same transaction.

import { writeOwedUrls } from '../../encoding/attempt-doc.ts'
import type { ShipmentDraft } from '../../store.ts'
import { storedParts } from '../rows/rows.ts'
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

export interface NewShipment {
  id: string
  /** Its `num`. */
  destination: string
  draft: Omit<ShipmentDraft, 'destinationId'>
  /** Bytes of the segments that it refers to, as stored. */
  bytes: number
}

/** Held by nobody. Tells the books nothing: call changeLedger. */
export async function insertShipment(ask: Ask, { id, destination, draft, bytes }: NewShipment): Promise<number> {
  const count = draft.parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
  await ask(
    `INSERT INTO shipments (id, destination, due, first_attempt, count, attempt, bytes, unit, replay, urls, parts)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      id,
      destination,
      // Whole milliseconds, and never early: times with fractions come of backoff, and the columns hold integers.
      draft.attempt > 0 ? Math.ceil(draft.dueAtMs) : 0,
      draft.firstAttemptAtMs === null ? null : Math.floor(draft.firstAttemptAtMs),
      count,
      draft.attempt,
      bytes,
      draft.unit,
      draft.replay,
      writeOwedUrls(draft.urls),
      storedParts(draft.parts),
    ],
  )
  return count
}
