// From the ids of deliveries to what they stand for.

import type { NamedDelivery } from '../history/delivery-rows.ts'
import type { RowId } from '../port/model.ts'
import type { ReplayRows } from './replay-rows.ts'

/** In the order of the ids; undefined where there is no such delivery. */
export async function resolveNamed<Id extends RowId>(
  rows: Pick<ReplayRows<Id>, 'named' | 'origins'>,
  deliveryIds: readonly string[],
): Promise<(NamedDelivery<Id> | undefined)[]> {
  const names = deliveryIds.map((id) => rows.named(id))
  const origins = await rows.origins([...new Set(names.flatMap((name) => name?.row ?? []))])
  return names.map((name) => {
    const origin = name && origins.get(name.row)
    if (!name || !origin?.indexes.includes(name.index)) return undefined
    return { origin: name.row, index: name.index, destination: origin.destination, segment: origin.segment }
  })
}
