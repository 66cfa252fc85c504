// Resolves ids of deliveries to the message and the destination.

import type { Awaitable } from '../encoding/row-port.ts'
import type { RowId } from '../port/model.ts'

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
  /** Without origins that do not exist. */
  origins(names: readonly Id[]): Awaitable<ReadonlyMap<Id, Origin<Id>>>
}

/** In the order of the ids; undefined for a delivery that does not exist. */
export async function resolveDeliveryIds<Id extends RowId>(
  rows: OriginRows<Id>,
  deliveryIds: readonly string[],
): Promise<((ResolvedDelivery<Id> & Pick<Origin<Id>, 'replay'>) | undefined)[]> {
  const names = deliveryIds.map((id) => rows.parseId(id))
  const origins = await rows.origins([...new Set(names.flatMap((name) => name?.row ?? []))])
  return names.map((name) => {
    const origin = name && origins.get(name.row)
    if (!name || !origin?.indexes.includes(name.index)) return undefined
    const { destination, segment, replay } = origin
    return { origin: name.row, index: name.index, destination, segment, replay }
  })
}
