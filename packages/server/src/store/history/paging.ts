// Pages of lists. A list walks its table by its key from the cursor and stops at the page's end or, where a filter finds
// little, after a bounded number of rows: then the page is short and has a cursor to go on from.

import { InvalidCursor } from '../store.ts'

/** Rows that one page may look at before it answers with what it has. */
export const ROWS_PER_PAGE = 20_000
/** Failures that one answer may group by cause. */
export const FAILURES_LOOKED_AT = 100_000
/** A place after every row. */
export const NEWEST = Number.MAX_SAFE_INTEGER

/** Cursors are the store's own and come back through strangers' hands: a list's letter, and values of the start's types. */
export function cursorOf<T extends readonly (number | string)[]>(
  list: string,
  cursor: string | null,
  start: readonly [...T],
): readonly [...T] {
  if (cursor === null) return start
  let parsed: unknown
  try {
    parsed = JSON.parse(cursor)
  } catch {
    throw new InvalidCursor()
  }
  if (!Array.isArray(parsed) || parsed.length !== start.length + 1 || parsed[0] !== list) throw new InvalidCursor()
  const values = parsed.slice(1) as unknown[]
  const isOfList = values.every((value, at) =>
    typeof start[at] === 'number' ? Number.isSafeInteger(value) && (value as number) >= 0 : typeof value === 'string',
  )
  if (!isOfList) throw new InvalidCursor()
  return values as unknown as readonly [...T]
}
