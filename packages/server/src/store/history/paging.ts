// Pages of lists. A list walks its table by its key from the cursor, in growing steps within one snapshot, and stops at the page's end
// or, where a filter finds little, after a bounded number of rows: then the page is short and has a cursor to go on from.

import type { Awaitable, RowOrder } from '../encoding/row-port.ts'
import type { RowId } from '../port/model.ts'
import { InvalidCursor, type TimeRange } from '../port/pages.ts'

/** Rows that one page may look at before it answers with what it has. */
export const ROWS_PER_PAGE = 20_000
/** The first steps are small, as most pages are full soon; the last ones are not, as a long walk is one of many steps. */
const FIRST_STEP = 100
const LONGEST_STEP = 2_000
/** Shipments are larger than rows of other lists: a batch that is retried has the names of a thousand messages. */
export const LONGEST_STEP_OF_PENDING = 300

/** The rows from `start` on, some at a time, asked for as they are needed. `after` says where the walk goes on behind a row. */
export async function* steps<Row, Place>(
  start: Place,
  after: (row: Row) => Place,
  ask: (from: Place, count: number) => Awaitable<readonly Row[]>,
  longest = LONGEST_STEP,
): AsyncGenerator<readonly Row[]> {
  let from = start
  for (let count = Math.min(FIRST_STEP, longest); ; count = Math.min(count * 2, longest)) {
    const rows = await ask(from, count)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    if (rows.length < count) return
    from = after(last)
  }
}

/** The same, one at a time. */
export async function* walk<Row, Place>(...way: Parameters<typeof steps<Row, Place>>): AsyncGenerator<Row> {
  for await (const rows of steps(...way)) yield* rows
}

/** In portions of as many rows as come to a size together, and of one row at least. What is read for each portion is then bounded too. */
export function* portions<Row>(rows: Iterable<Row>, size: number, sizeOf: (row: Row) => number): Generator<Row[]> {
  let portion: Row[] = []
  let left = size
  for (const row of rows) {
    portion.push(row)
    left -= sizeOf(row)
    if (left > 0) continue
    yield portion
    portion = []
    left = size
  }
  if (portion.length > 0) yield portion
}

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

/** A cursor whose texts are all names of rows: anything else would be an error of the server. */
export function rowCursorOf<T extends readonly (number | string)[]>(
  order: Pick<RowOrder, 'isName'>,
  list: string,
  cursor: string | null,
  start: readonly [...T],
): readonly [...T] {
  const values = cursorOf(list, cursor, start)
  for (const value of values) if (typeof value === 'string' && !order.isName(value)) throw new InvalidCursor()
  return values
}

/** Where a walk from the newest begins. Names may differ a little from the times that people see: see isWithin. */
export function lastRow<Id extends RowId>(order: RowOrder<Id>, { toMs }: TimeRange): Id {
  return toMs === undefined ? order.newest : order.before(order.at(toMs + order.skewMs + 1))
}

/** Where it ends. */
export function firstRow<Id extends RowId>(order: RowOrder<Id>, { fromMs }: TimeRange): Id {
  return fromMs === undefined ? order.oldest : order.at(fromMs - order.skewMs)
}

/** Whether a row of this name may be of such a time. */
export function mayBeWithin<Id extends RowId>(order: RowOrder<Id>, id: Id, { fromMs, toMs }: TimeRange): boolean {
  if (fromMs === undefined && toMs === undefined) return true
  const atMs = order.msOf(id)
  return (fromMs === undefined || atMs >= fromMs - order.skewMs) && (toMs === undefined || atMs <= toMs + order.skewMs)
}

/** Whether a row between those two is of such a time. Where names do not differ from times, it is. */
export function isWithin({ skewMs }: Pick<RowOrder, 'skewMs'>, atMs: number, { fromMs, toMs }: TimeRange): boolean {
  return skewMs === 0 || ((fromMs === undefined || atMs >= fromMs) && (toMs === undefined || atMs <= toMs))
}
