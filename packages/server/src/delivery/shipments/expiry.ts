// Ends deliveries whose retry window is over, without another attempt. Pure.

import { withoutDeleted } from '../../store/port/without-deleted.ts'
import {
  type AttemptRecord,
  type ClaimedShipment,
  type FinalState,
  type IsDeleted,
  type RowId,
  type Settlement,
  SYSTEM_SOURCE,
} from '../../store/store.ts'
import { DeadLetterBuilder, type DeadLetterSettings } from './dead-letters.ts'

/** Returns the settlement that ends these shipments. */
export function expiry(
  destination: DeadLetterSettings,
  shipments: readonly ClaimedShipment[],
  wallMs: number,
  isDeleted?: IsDeleted,
): Settlement {
  const letters = DeadLetterBuilder.of(destination)
  const done = shipments.map(({ shipment }) => shipment)
  const system = new Set<RowId>()
  const records = shipments.flatMap(({ shipment: { parts, attempt, replay }, bodies }) =>
    parts.map(({ origin, segment, indexes }): AttemptRecord => {
      if (bodies.get(segment)?.about.sourceId === SYSTEM_SOURCE) system.add(origin)
      const finals: FinalState[] = [{ state: 'expired', reason: 'retry_window_over', indexes }]
      const record: AttemptRecord = { origin, segment, attempt, replay, atMs: wallMs, requests: [], finals }
      return letters?.add(record, bodies.get(segment)) ?? record
    }),
  )
  const settlement = {
    destinationId: destination.id,
    done,
    kept: [],
    remaining: [],
    records,
    letters: letters?.letters,
    system: system.size > 0 ? system : undefined,
    bodyOf: (segment: RowId) => shipments.find(({ bodies }) => bodies.has(segment))?.bodies.get(segment),
  }
  return isDeleted === undefined ? settlement : withoutDeleted(settlement, isDeleted)
}
