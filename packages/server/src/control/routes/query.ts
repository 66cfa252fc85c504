// The paging that all lists share. A cursor is the cursor of the store with a checksum
// over itself and the name of its list. So a truncated cursor, or one of another list that the store might misinterpret, is rejected here.

import { createHash } from 'node:crypto'
import { queryInteger } from '../../api/query-values.ts'
import { array, type Fields, nullable, object, optional, type Schema, string, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Page, PageRequest } from '../../store/store.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 1_000

const PAGE_FIELDS = {
  limit: withDefault(
    queryInteger({ min: 1, max: MAX_LIMIT, description: 'The maximum number of entries in the response.' }),
    DEFAULT_LIMIT,
  ),
  cursor: optional(string({ description: 'The value of `next` from the previous page. Leave it out for the first page.' })),
}

/** The query parameters of a list: its filters, `limit` and `cursor`. */
export function listQuery<F extends Fields>(filters: F) {
  return object({ ...filters, ...PAGE_FIELDS })
}

export function listAnswer<T>(entry: Schema<T>) {
  return object({ data: array(entry), next: nullable(string({ description: 'The `cursor` for the next page; null on the last page.' })) })
}

/** `list` is the name of the list. A cursor of another list is rejected. */
export function pageRequest(list: string, query: { limit: number; cursor?: string | undefined }): PageRequest {
  return { limit: query.limit, cursor: query.cursor === undefined ? null : decodeCursor(list, query.cursor) }
}

/** Without `view`, the entries are shown as they are stored. */
export function pageAnswer<T>(list: string, page: Page<T>, view: (entry: T) => unknown = (entry) => entry) {
  return { data: page.data.map(view), next: page.next === null ? null : encodeCursor(list, page.next) }
}

/** A page of entries in memory. The order is stable while entries are added and removed. */
export function pageOf<T extends { id: string; createdAtMs: number }>(entries: Iterable<T>, { limit, cursor }: PageRequest): Page<T> {
  const sorted = [...entries].sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
  const [, afterMs, afterId] = /^(\d+) (.*)$/s.exec(cursor ?? '') ?? []
  const rest =
    afterMs === undefined || afterId === undefined
      ? sorted
      : sorted.filter(({ id, createdAtMs }) => createdAtMs > Number(afterMs) || (createdAtMs === Number(afterMs) && id > afterId))
  const data = rest.slice(0, limit)
  const last = data.at(-1)
  return { data, next: rest.length > limit && last !== undefined ? `${last.createdAtMs} ${last.id}` : null }
}

const CHECKSUM_BYTES = 6

/** Exported for tests, which make up positions. */
export function encodeCursor(list: string, cursor: string): string {
  return Buffer.concat([checksumOf(list, cursor), Buffer.from(cursor, 'utf8')]).toString('base64url')
}

function decodeCursor(list: string, text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  const cursor = bytes.subarray(CHECKSUM_BYTES).toString('utf8')
  if (encodeCursor(list, cursor) !== text) throw new ApiError('invalid_cursor', { field: 'cursor' })
  return cursor
}

function checksumOf(list: string, cursor: string): Buffer {
  return createHash('sha256').update(`${list}\0${cursor}`).digest().subarray(0, CHECKSUM_BYTES)
}
