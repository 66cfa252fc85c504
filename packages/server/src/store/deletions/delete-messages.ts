// The delete messages of a request: one per user, for each source that has destinations. Each is alone in its segment, so that none is ever
// in a batch with others. Its keys belong to no user and no messageId, so neither a purge nor a search for a messageId finds it.

import type { RowId } from '../../model/messages.ts'
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
  }[]
}

/** The row ids of its shipments follow right after that of its segment: resolveOrigins relies on this to find the segment. */
export function deleteMessage<Id extends RowId>(
  nextId: () => Id,
  userId: string,
  destinations: readonly Id[],
  atMs: number,
): DeleteMessage<Id> {
  const segment = nextId()
  const shipments = destinations.map((destination) => {
    const origin = nextId()
    return { origin, destination, parts: JSON.stringify([[origin, segment, [0]]]) }
  })
  return {
    segment,
    userId,
    body: writeStoredBody({ batch: [{ type: 'delete', userId, timestamp: new Date(atMs).toISOString() }] }),
    routes: JSON.stringify({ s: shipments.map(({ origin, destination }) => [destination, origin, [0], 1]) }),
    shipments,
  }
}
