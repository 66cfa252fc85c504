// Resolves ids of deliveries to the message and the destination.

import type { RowId } from '../../model/messages.ts'
import type { Awaitable } from '../encoding/sql.ts'

/** A delivery, its message and its destination. */
export interface ResolvedDelivery<Id extends RowId> {
  origin: Id
  index: number
  segment: Id
  destination: Id
}

/** The deliveries that share one origin, the row id in their ids: messages of one segment, to one destination. */
export interface Origin<Id extends RowId> {
  destination: Id
  segment: Id
  indexes: readonly number[]
  replay: boolean
}

export interface RowAndIndex<Id extends RowId> {
  row: Id
  index: number
}

export interface OriginRows<Id extends RowId> {
  /** The row id and the index in the id of a message or a delivery; undefined if it is not such an id. */
  parseId(id: string): RowAndIndex<Id> | undefined
  /** Origins that do not exist are missing in the result. */
  origins(ids: readonly Id[]): Awaitable<ReadonlyMap<Id, Origin<Id>>>
}

/** In the order of the ids; undefined for a delivery that does not exist. */
export async function resolveDeliveryIds<Id extends RowId>(
  rows: OriginRows<Id>,
  deliveryIds: readonly string[],
): Promise<((ResolvedDelivery<Id> & Pick<Origin<Id>, 'replay'>) | undefined)[]> {
  const parsed = deliveryIds.map((id) => rows.parseId(id))
  const origins = await rows.origins([...new Set(parsed.flatMap((id) => id?.row ?? []))])
  return parsed.map((id) => {
    const origin = id && origins.get(id.row)
    if (!id || !origin?.indexes.includes(id.index)) return undefined
    const { destination, segment, replay } = origin
    return { origin: id.row, index: id.index, destination, segment, replay }
  })
}
