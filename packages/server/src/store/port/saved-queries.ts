// Queries of SQL that people have saved for a lake, for everybody who may query it. A document for each; the key is made of the name, so that saving a name
// again replaces the query. They are deleted with the lake.

import { createHash } from 'node:crypto'
import type { Actor } from './audit.ts'
import type { DocumentStore } from './documents.ts'

export const SAVED_QUERIES = 'saved-query'
/** Of one lake, so that all can be listed at once. */
export const MAX_SAVED_QUERIES = 200

export interface SavedQuery {
  id: string
  name: string
  query: string
  savedAtMs: number
  savedBy: Pick<Actor, 'id' | 'name'>
}

/** By name. */
export async function readSavedQueries(documents: Pick<DocumentStore, 'list'>, destinationId: string): Promise<SavedQuery[]> {
  const stored = await documents.list(SAVED_QUERIES, { prefix: `${destinationId} `, order: 'key', limit: MAX_SAVED_QUERIES })
  const queries = stored.map(({ doc }) => doc as unknown as SavedQuery)
  return queries.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** Saves it, or replaces the one with this name, which is returned as `before`. Returns null if there are too many. */
export async function saveQuery(
  documents: DocumentStore,
  destinationId: string,
  given: Omit<SavedQuery, 'id'>,
): Promise<{ before: SavedQuery | null; after: SavedQuery } | null> {
  const after: SavedQuery = { id: idOf(given.name), ...given }
  const key = `${destinationId} ${after.id}`
  const known = await readSavedQueries(documents, destinationId)
  if (known.length >= MAX_SAVED_QUERIES && !known.some(({ id }) => id === after.id)) return null
  let before: SavedQuery | null = null
  await documents.update(SAVED_QUERIES, [key], (stored) => {
    before = (stored.get(key)?.doc as unknown as SavedQuery | undefined) ?? null
    return new Map([[key, { atMs: after.savedAtMs, doc: { ...after, savedBy: { ...after.savedBy } } }]])
  })
  return { before, after }
}

/** Returns it; null if there is none with this id. */
export async function removeQuery(documents: DocumentStore, destinationId: string, id: string): Promise<SavedQuery | null> {
  if (!/^qry_[\da-f]{24}$/.test(id)) return null
  const key = `${destinationId} ${id}`
  let removed: SavedQuery | null = null
  await documents.update(SAVED_QUERIES, [key], (stored) => {
    removed = (stored.get(key)?.doc as unknown as SavedQuery | undefined) ?? null
    return new Map(removed === null ? [] : [[key, null]])
  })
  return removed
}

function idOf(name: string): string {
  return `qry_${createHash('sha256').update(name).digest('hex').slice(0, 24)}`
}
