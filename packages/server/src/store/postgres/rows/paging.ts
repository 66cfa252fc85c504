// Pages of lists in PostgreSQL. A list walks by an index in small steps, within one snapshot, so that a page is of one moment
// and a row that moves from one holder to another meanwhile is neither missed nor shown twice. What a page may look at is
// bounded by whoever walks: see encoding/paging.ts.

import { cursorOf } from '../../history/paging.ts'
import { InvalidCursor } from '../../store.ts'
import { isRowId, msOfRowId, NEWEST, OLDEST, rowIdAt, SKEW } from '../schema/ids.ts'
import type { Rows } from '../session/connection.ts'
import type { Ask, Database } from '../session/database.ts'

/** The first steps are small, as most pages are full soon; the last ones are not, as a long walk is one of many steps. */
const FIRST_STEP = 100
const LONGEST_STEP = 2_000
const SKEW_MS = msOfRowId(SKEW)

/**
 * Questions that have to be answered by their indexes. What the server believes of how many rows there are lags behind a table that
 * fills and empties within minutes, and a plan made of it reads a million rows to answer with one page.
 */
export function byIndexes<T>(database: Database, work: (ask: Ask) => Promise<T>): Promise<T> {
  return database.transaction(
    async (ask) => {
      await ask("SELECT set_config(name, 'off', true) FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) AS name")
      return work(ask)
    },
    { readOnly: true },
  )
}

/** The rows from `start` on, some at a time, asked for as they are needed. `after` says where the walk goes on behind a row. */
export async function* steps<Row, Place = string>(
  start: Place,
  after: (row: Row) => Place,
  ask: (from: Place, count: number) => Promise<Rows<Row>>,
  longest = LONGEST_STEP,
): AsyncGenerator<Row[]> {
  let from = start
  for (let count = Math.min(FIRST_STEP, longest); ; count = Math.min(count * 2, longest)) {
    const { rows } = await ask(from, count)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    if (rows.length < count) return
    from = after(last)
  }
}

/** The same, one at a time. */
export async function* walk<Row, Place = string>(...way: Parameters<typeof steps<Row, Place>>): AsyncGenerator<Row> {
  for await (const rows of steps(...way)) yield* rows
}

/** Lists go from the newest to the oldest. */
export function beforeRow(id: string): string {
  return String(BigInt(id) - 1n)
}

/** A cursor whose texts are all names of rows: anything else would be an error of the server. */
export function rowCursorOf<T extends readonly (number | string)[]>(
  list: string,
  cursor: string | null,
  start: readonly [...T],
): readonly [...T] {
  const values = cursorOf(list, cursor, start)
  for (const value of values) if (typeof value === 'string' && !isRowId(value)) throw new InvalidCursor()
  return values
}

/** Times that a list is asked for, as people see them: by the clock of the node that wrote the row. */
export interface Times {
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** Where a walk from the newest begins and ends. Names of rows are given by the server's clock, which differs a little from a node's: see isWithin. */
export function lastRow({ toMs }: Times): string {
  return toMs === undefined ? NEWEST : beforeRow(rowIdAt(toMs + SKEW_MS + 1))
}

export function firstRow({ fromMs }: Times): string {
  return fromMs === undefined ? OLDEST : rowIdAt(fromMs - SKEW_MS)
}

/** Whether a row of this name may be of such a time. */
export function mayBeWithin(id: string, { fromMs, toMs }: Times): boolean {
  if (fromMs === undefined && toMs === undefined) return true
  const atMs = msOfRowId(id)
  return (fromMs === undefined || atMs >= fromMs - SKEW_MS) && (toMs === undefined || atMs <= toMs + SKEW_MS)
}

export function isWithin(atMs: number, { fromMs, toMs }: Times): boolean {
  return (fromMs === undefined || atMs >= fromMs) && (toMs === undefined || atMs <= toMs)
}
