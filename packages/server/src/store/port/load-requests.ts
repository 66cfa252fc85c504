// Requests to load everything that waits for a warehouse now. One document per destination, until its messages are in loads, so that the node that makes
// the loads finds the request, whichever node it came from, and also if it was not running at that time.

import { newId } from '../../model/new-id.ts'
import type { DocumentStore } from './documents.ts'

export const LOAD_REQUESTS = 'warehouse-load-request'
const MOST = 1_000

export interface LoadRequest {
  destinationId: string
  id: string
}

/** A request replaces the one before: whatever that was about waits too. */
export async function askForLoad(documents: DocumentStore, destinationId: string, nowMs: number): Promise<LoadRequest> {
  const id = newId('ask')
  await documents.update(LOAD_REQUESTS, [], () => new Map([[destinationId, { atMs: nowMs, doc: { id } }]]))
  return { destinationId, id }
}

export async function loadRequests(documents: Pick<DocumentStore, 'list'>): Promise<LoadRequest[]> {
  const stored = await documents.list(LOAD_REQUESTS, { order: 'key', limit: MOST })
  return stored.map(({ key, doc }) => ({ destinationId: key, id: String(doc['id']) }))
}

/** Deletes a request, unless there is a later one for the same destination. */
export async function endLoadRequest(documents: DocumentStore, { destinationId, id }: LoadRequest): Promise<void> {
  await documents.update(LOAD_REQUESTS, [destinationId], (stored) => {
    return stored.get(destinationId)?.doc['id'] === id ? new Map([[destinationId, null]]) : new Map()
  })
}
