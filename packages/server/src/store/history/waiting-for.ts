// For which message a pending delivery waits, if its messages are delivered in order. Of a purged message nothing is shown.

import type { OrderKey } from '../../model/order/order-key.ts'
import { groupBy } from '../encoding/group-by.ts'
import { orderKeyOf } from '../encoding/order-key-hash.ts'
import type { StoredPart } from '../encoding/stored-parts.ts'
import type { KeyRow } from '../order-keys/key-rows.ts'
import { keyTextIn, textsOf } from '../order-keys/key-text.ts'
import type { RowId, SegmentContent, WaitingFor } from '../store.ts'
import type { ResolvedDelivery } from './delivery-ids.ts'
import type { DeliveryRows } from './delivery-rows.ts'
import { messageFields } from './message-content.ts'
import { readSegments } from './segment-rows.ts'

/** A pending delivery, and its key if that is known. */
export interface PendingDelivery<Id extends RowId> extends ResolvedDelivery<Id> {
  attempts: number
  key?: OrderKey | undefined
}

/**
 * For which message each of the deliveries waits; null if for none. `contents` has the message of each delivery. Without a known key, all values of the
 * message may be its key, and the row of a waiting message shows which one is.
 */
export async function waitsOf<Id extends RowId>(
  deliveries: DeliveryRows<Id>,
  pending: readonly PendingDelivery<Id>[],
  contentOf: (delivery: PendingDelivery<Id>) => SegmentContent | null,
): Promise<(WaitingFor | null)[]> {
  if (pending.length === 0) return []
  const seed = await deliveries.seed()
  const found: (KeyRow<Id> | undefined)[] = pending.map(() => undefined)
  for (const [destination, places] of groupBy(pending.keys(), (at) => (pending[at] as PendingDelivery<Id>).destination)) {
    const candidates = places.map((at) => {
      const delivery = pending[at] as PendingDelivery<Id>
      // A head has been attempted before.
      if (delivery.attempts > 0) return []
      if (delivery.key !== undefined) return [delivery.key]
      const content = contentOf(delivery)
      return content === null ? [] : [...textsOf(content, delivery.index)].map((text) => orderKeyOf(text, seed))
    })
    const all = [...new Set(candidates.flat())]
    const rows = all.length === 0 ? [] : await deliveries.keysAmong(destination, all)
    for (const [nth, at] of places.entries()) {
      const { key, origin, index } = pending[at] as PendingDelivery<Id>
      for (const row of rows) {
        if (!candidates[nth]?.includes(row.key) || (row.origin === origin && row.index === index)) continue
        // Other messages of the same request may wait behind this key.
        const isIn = ([own, , indexes]: StoredPart<Id>): boolean => own === origin && indexes !== 0 && indexes.includes(index)
        if (key !== undefined || (await deliveries.waitingParts(destination, row.key, origin)).some(isIn)) found[at] = row
      }
    }
  }
  const heads = new Map<KeyRow<Id>, { messageId: string | null; sourceId: string }>()
  const wanted = [...new Set(found.filter((row) => row !== undefined))]
  await eachMessage(deliveries, wanted, (row, content) =>
    heads.set(row, { messageId: messageFields(content, row.index).messageId, sourceId: content.sourceId }),
  )
  return found.map((row, at) => {
    if (row === undefined) return null
    const delivery = pending[at] as PendingDelivery<Id>
    const { messageId = null, sourceId = null } = heads.get(row) ?? {}
    const isHeld = row.state === 'held'
    return { messageId, sourceId, isHeld, key: keyTextIn(contentOf(delivery), delivery.index, row.key, seed) }
  })
}

export async function eachMessage<Id extends RowId>(
  deliveries: DeliveryRows<Id>,
  rows: readonly KeyRow<Id>[],
  visit: (row: KeyRow<Id>, content: SegmentContent) => void,
): Promise<void> {
  const bySegment = groupBy(rows, ({ segment }) => segment)
  const wantedIn = ({ seq }: { seq: Id }) => bySegment.get(seq)?.map(({ index }) => index)
  for await (const { seq, content } of readSegments(deliveries, [...bySegment.keys()], wantedIn))
    for (const row of bySegment.get(seq) ?? []) visit(row, content)
}
