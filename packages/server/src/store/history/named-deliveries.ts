// From the ids of deliveries to what they stand for.

import type { Awaitable } from '../encoding/row-port.ts'
import type { RowId } from '../port/model.ts'

/** Which delivery of which message. */
export interface NamedDelivery<Id extends RowId> {
  origin: Id
  index: number
  segment: Id
  destination: Id
}

/** What a delivery's name stands for. */
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
  /** The row and the index that the id of a message or a delivery names. */
  named(id: string): RowAndIndex<Id> | undefined
  /** Those that there are. */
  origins(names: readonly Id[]): Awaitable<ReadonlyMap<Id, Origin<Id>>>
}

/** In the order of the ids; undefined where there is no such delivery. */
export async function resolveNamed<Id extends RowId>(
  rows: OriginRows<Id>,
  deliveryIds: readonly string[],
): Promise<((NamedDelivery<Id> & Pick<Origin<Id>, 'replay'>) | undefined)[]> {
  const names = deliveryIds.map((id) => rows.named(id))
  const origins = await rows.origins([...new Set(names.flatMap((name) => name?.row ?? []))])
  return names.map((name) => {
    const origin = name && origins.get(name.row)
    if (!name || !origin?.indexes.includes(name.index)) return undefined
    const { destination, segment, replay } = origin
    return { origin: name.row, index: name.index, destination, segment, replay }
  })
}
