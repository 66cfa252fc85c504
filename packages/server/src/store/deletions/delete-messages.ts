// The delete messages of a request: one per user, for each source that has destinations. Each is alone in its segment, so that none is ever
// in a batch with others. Its keys belong to no user and no messageId, so neither a purge nor a search for a messageId finds it.

import type { JsonObject } from '@switchyard/protocol'
import type { RowId } from '../../model/messages.ts'
import { type OrderKey, orderKeyText, partitionOf } from '../../model/order/order-key.ts'
import type { Seed } from '../encoding/fingerprint.ts'
import { orderKeyOf } from '../encoding/order-key-hash.ts'
import { KEY_WORDS } from '../encoding/segment-keys.ts'
import { writeStoredBody } from '../port/stored-messages.ts'

export const NO_KEYS = new Uint8Array(KEY_WORDS * 4)

export interface DeleteMessage<Id extends RowId> {
  segment: Id
  userId: string
  body: Uint8Array
  /** The column `routes` of the segment. */
  routes: string
  shipments: readonly {
    /** The row id of the shipment, and of the delivery in it. */
    origin: Id
    destination: Id
    /** The column `parts` of the shipment. */
    parts: string
    /** Null unless the destination is ordered, and the message has a key. */
    part: number | null
  }[]
}

/** The row ids of its shipments follow right after that of its segment: resolveOrigins relies on this to find the segment. */
export function deleteMessage<Id extends RowId>(
  nextId: () => Id,
  userId: string,
  destinations: readonly Id[],
  atMs: number,
  keyOf: (destination: Id, message: JsonObject) => OrderKey | null,
): DeleteMessage<Id> {
  const segment = nextId()
  const message = { type: 'delete', userId, timestamp: new Date(atMs).toISOString() }
  const shipments = destinations.map((destination) => {
    const origin = nextId()
    const key = keyOf(destination, message)
    const parts = JSON.stringify([key === null ? [origin, segment, [0]] : [origin, segment, [0], [key]]])
    return { origin, destination, parts, part: key === null ? null : partitionOf(key) }
  })
  return {
    segment,
    userId,
    body: writeStoredBody({ batch: [message] }),
    routes: JSON.stringify({ s: shipments.map(({ origin, destination }) => [destination, origin, [0], 1]) }),
    shipments,
  }
}

/** The key of a delete message at the destinations of a target. `orders`: `order.by` of those that are ordered. */
export function deleteKeys(
  { sourceId, orders }: { sourceId: string; orders: ReadonlyMap<string, string> },
  seed: Seed,
): (destinationId: string, message: JsonObject) => OrderKey | null {
  return (destinationId, message) => {
    const by = orders.get(destinationId)
    const text = by === undefined ? null : orderKeyText(by, message, { sourceId, context: null })
    return text === null ? null : orderKeyOf(text, seed)
  }
}
