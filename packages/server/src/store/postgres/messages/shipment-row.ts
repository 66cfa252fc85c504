// A row of the queue as claims read it, and the shipment that it is.

import { owedPart, type StoredPart } from '../../encoding/stored-parts.ts'
import type { OrderedPlace, Shipment } from '../../store.ts'
import type { ClaimedSegment } from './recent-bodies.ts'

export interface ShipmentRow {
  ord: number
  id: string
  claim: number
  attempt: number
  first_attempt: number | null
  due: number
  bytes: number
  unit: boolean
  replay: boolean
  urls: string | null
  parts: string
  order?: OrderedPlace
}

export function shipmentOf(
  row: ShipmentRow,
  destinationId: string,
  parts: readonly StoredPart<string>[],
  segments: ReadonlyMap<string, Pick<ClaimedSegment, 'count' | 'absent'>>,
  unread: boolean,
): Shipment {
  return {
    id: row.id,
    claim: row.claim,
    destinationId,
    attempt: row.attempt,
    firstAttemptAtMs: row.first_attempt,
    dueAtMs: row.due,
    unit: row.unit,
    progress: row.urls === null ? null : (JSON.parse(row.urls) as string[]),
    replay: row.replay,
    parts: parts.map((part) => {
      const [, segment, indexes] = part
      const found = segments.get(segment)
      if (found === undefined && indexes === 0 && !unread)
        throw new Error(`shipment ${row.id} refers to segment ${segment}, which does not exist`)
      return owedPart(part, found?.count ?? 0, found?.absent ?? null)
    }),
    ...(row.order && { order: row.order }),
  }
}
