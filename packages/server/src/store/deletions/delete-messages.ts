// The delete messages of a request, one per user and source with destinations. Each is alone in its segment, so that none is ever in a
// batch with others. Its keys are of nobody, and of no messageId: neither a purge nor who looks for a message finds it.

import { KEY_WORDS } from '../encoding/segment-keys.ts'
import type { RowId } from '../port/model.ts'
import { writeStoredBody } from '../port/stored-messages.ts'

export const NO_KEYS = new Uint8Array(KEY_WORDS * 4)

export interface DeleteMessage<Id extends RowId> {
  segment: Id
  userId: string
  body: Uint8Array
  /** As segments hold it. */
  routes: string
  shipments: readonly {
    /** Of the shipment, and of the delivery in it. */
    origin: Id
    destination: Id
    /** As shipments hold it. */
    parts: string
  }[]
}

/** The names of its shipments come right after its own: that is where they are looked for. */
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
