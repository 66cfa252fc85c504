// Pages of lists. A list reads its table by key from the cursor on, in growing steps within one snapshot. It stops when the page is full.
// If a filter matches few rows, it stops after a bounded number of rows; then the page is short and has a cursor to continue from.

import type { Awaitable, RowOrder } from '../encoding/sql.ts'
import { InvalidCursor, type RowId, type TimeRange } from '../store.ts'

/** One page reads no more than this many rows before it returns what it has found. */
export const ROWS_PER_PAGE = 20_000
/** The first step is small, because most pages are full soon. Each step is twice as large as the one before, so that a long walk has few steps. */
const FIRST_STEP = 100
const MAX_STEP = 2_000
/** Shipments are larger than rows of other lists: a batch that is retried contains the ids of a thousand messages. */
export const MAX_STEP_OF_PENDING = 300

/** Reads the rows from `start` on, some at a time, as they are needed. `after` returns the place that follows a row. */
export async function* steps<Row, Place>(
  start: Place,
  after: (row: Row) => Place,
  read: (from: Place, count: number) => Awaitable<readonly Row[]>,
  longest = MAX_STEP,
): AsyncGenerator<readonly Row[]> {
  let from = start
  for (let count = Math.min(FIRST_STEP, longest); ; count = Math.min(count * 2, longest)) {
    const rows = await read(from, count)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    if (rows.length < count) return
    from = after(last)
  }
}

/** The same, one row at a time. */
export async function* walk<Row, Place>(...args: Parameters<typeof steps<Row, Place>>): AsyncGenerator<Row> {
  for await (const rows of steps(...args)) yield* rows
}

/**
 * Splits rows into portions. A portion ends with the row that reaches its size, so the work for each portion is bounded too. Each portion is
 * twice as large as the one before, up to `longest`.
 */
export function* portions<Row>(rows: Iterable<Row>, sizeOf: (row: Row) => number, first: number, longest = first): Generator<Row[]> {
  let portion: Row[] = []
  let size = first
  let left = size
  for (const row of rows) {
    portion.push(row)
    left -= sizeOf(row)
    if (left > 0) continue
    yield portion
    portion = []
    size = Math.min(2 * size, longest)
    left = size
  }
  if (portion.length > 0) yield portion
}

/** Parses a cursor, which comes from a client and may be anything. A valid one has the letter of the list, and values of the same types as `start`. */
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

/** Parses a cursor whose strings must all be row ids. Other strings would cause an error in the database. */
export function rowCursorOf<T extends readonly (number | string)[]>(
  order: Pick<RowOrder, 'isRowId'>,
  list: string,
  cursor: string | null,
  start: readonly [...T],
): readonly [...T] {
  const values = cursorOf(list, cursor, start)
  for (const value of values) if (typeof value === 'string' && !order.isRowId(value)) throw new InvalidCursor()
  return values
}

/** The row at which a walk from the newest begins. Times in row ids may differ a little from the times that people see: see isWithin. */
export function lastRow<Id extends RowId>(order: RowOrder<Id>, { toMs }: TimeRange): Id {
  return toMs === undefined ? order.newest : order.before(order.at(toMs + order.skewMs + 1))
}

/** The row at which that walk ends. */
export function firstRow<Id extends RowId>(order: RowOrder<Id>, { fromMs }: TimeRange): Id {
  return fromMs === undefined ? order.oldest : order.at(fromMs - order.skewMs)
}

/** Whether a row with this id may be within the time range. */
export function mayBeWithin<Id extends RowId>(order: RowOrder<Id>, id: Id, { fromMs, toMs }: TimeRange): boolean {
  if (fromMs === undefined && toMs === undefined) return true
  const atMs = order.msOf(id)
  return (fromMs === undefined || atMs >= fromMs - order.skewMs) && (toMs === undefined || atMs <= toMs + order.skewMs)
}

/** Whether a row between firstRow and lastRow is within the time range. Without skew, every such row is. */
export function isWithin({ skewMs }: Pick<RowOrder, 'skewMs'>, atMs: number, { fromMs, toMs }: TimeRange): boolean {
  return skewMs === 0 || ((fromMs === undefined || atMs >= fromMs) && (toMs === undefined || atMs <= toMs))
}
