// SQL queries that people have saved for a lake, for everybody who may query all of it. Each is a document. Its key is derived from its name, so that saving
// a query under the same name replaces it. It has the sources that it may be about, because the lake may lose some of them later, and then it is hidden from
// callers without these. Saved queries are deleted with the lake.

import { createHash } from 'node:crypto'
import type { Actor } from './audit.ts'
import type { DocumentStore, StoredDocument } from './documents.ts'

export const SAVED_QUERIES = 'saved-query'
/** The limit of one lake, so that one response can list all of them. */
export const MAX_SAVED_QUERIES = 200

export interface SavedQuery {
  id: string
  name: string
  query: string
  savedAtMs: number
  savedBy: Pick<Actor, 'id' | 'name'>
  /** The sources whose tables the lake had when the query was saved; null if an earlier build saved it, which did not record them. */
  sourceIds: readonly string[] | null
}

/** Whether the caller may know of a query. */
type IsVisible = (query: SavedQuery) => boolean

/** Sorted by name. */
export async function readSavedQueries(documents: Pick<DocumentStore, 'list'>, destinationId: string): Promise<SavedQuery[]> {
  const stored = await documents.list(SAVED_QUERIES, { prefix: `${destinationId} `, order: 'key', limit: MAX_SAVED_QUERIES })
  const queries = stored.map(queryOf)
  return queries.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/**
 * Saves a query. If it replaces one with the same name, that is returned as `before`. `full`: the lake has as many queries as it may have. `taken`: the name
 * is that of a query that the caller may not know.
 */
export async function saveQuery(
  documents: DocumentStore,
  destinationId: string,
  given: Omit<SavedQuery, 'id'> & { sourceIds: readonly string[] },
  isVisible: IsVisible,
): Promise<{ before: SavedQuery | null; after: SavedQuery } | 'full' | 'taken'> {
  const after: SavedQuery = { id: idOf(given.name), ...given }
  const key = `${destinationId} ${after.id}`
  const known = await readSavedQueries(documents, destinationId)
  if (known.length >= MAX_SAVED_QUERIES && !known.some(({ id }) => id === after.id)) return 'full'
  let before: SavedQuery | null = null
  let isTaken = false
  await documents.update(SAVED_QUERIES, [key], (stored) => {
    const known = stored.get(key)
    before = known === undefined ? null : queryOf(known)
    isTaken = before !== null && !isVisible(before)
    if (isTaken) return new Map()
    return new Map([[key, { atMs: after.savedAtMs, doc: { ...after, savedBy: { ...after.savedBy } } }]])
  })
  return isTaken ? 'taken' : { before, after }
}

/** Returns the removed query; null if there is none with this id that the caller may know. */
export async function removeQuery(
  documents: DocumentStore,
  destinationId: string,
  id: string,
  isVisible: IsVisible,
): Promise<SavedQuery | null> {
  if (!/^qry_[\da-f]{24}$/.test(id)) return null
  const key = `${destinationId} ${id}`
  let removed: SavedQuery | null = null
  await documents.update(SAVED_QUERIES, [key], (stored) => {
    const known = stored.get(key)
    const query = known === undefined ? null : queryOf(known)
    removed = query !== null && isVisible(query) ? query : null
    return new Map(removed === null ? [] : [[key, null]])
  })
  return removed
}

function queryOf({ doc }: Pick<StoredDocument, 'doc'>): SavedQuery {
  const stored = doc as unknown as Omit<SavedQuery, 'sourceIds'> & Partial<Pick<SavedQuery, 'sourceIds'>>
  return { ...stored, sourceIds: stored.sourceIds ?? null }
}

function idOf(name: string): string {
  return `qry_${createHash('sha256').update(name).digest('hex').slice(0, 24)}`
}
