// A shipment that was never attempted, as it is handed to delivery after the commit that stored it.

import type { RowId, Shipment } from '../store.ts'

export function freshShipment(id: RowId, claim: number, destinationId: string, segment: RowId, indexes: readonly number[]): Shipment {
  return {
    id,
    claim,
    destinationId,
    attempt: 0,
    firstAttemptAtMs: null,
    dueAtMs: 0,
    unit: false,
    progress: null,
    replay: false,
    parts: [{ origin: id, segment, indexes }],
  }
}
