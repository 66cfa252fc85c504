// The rows of `users` and `accounts`: the latest value of every trait by the time at which it was received, so that a message that is loaded late never
// overwrites a newer value. Applying the same calls again changes nothing, so a repeated load needs no key.
//
// The time of a trait is that of the row (`received_at`), unless `_trait_times` has another one for it, by the name of its column.

import { groupBy } from '../group-by.ts'
import type { Cell, StateCall, StoredColumn } from '../warehouse.ts'
import { jsonText } from './values.ts'

const ID = 0
const RECEIVED_AT = 1
const UUID_TS = 2
const TIMES = 3
const UNFIT = 4
const FIRST_TRAIT = 5

type Times = Record<string, number>

/** Changes `rows`, which are by id, and returns the ids that changed. */
export function applyCalls(
  rows: Map<string, Cell[]>,
  columns: readonly StoredColumn[],
  calls: readonly StateCall[],
  loadedAtMs: number,
): Set<string> {
  const byId = groupBy(calls, ({ id }) => id)
  for (const [id, ofId] of byId) {
    const row = rows.get(id) ?? [id, null, null, null, null]
    while (row.length < columns.length) row.push(null)
    const times = parsed<number>(row[TIMES])
    const unfit = parsed<unknown>(row[UNFIT])
    for (const call of ofId) applyCall(row, columns, call, times, unfit)
    row[UUID_TS] = loadedAtMs
    row[TIMES] = textOf(times)
    row[UNFIT] = textOf(unfit)
    rows.set(id, row)
  }
  return new Set(byId.keys())
}

function applyCall(row: Cell[], columns: readonly StoredColumn[], call: StateCall, times: Times, unfit: Record<string, unknown>): void {
  const before = row[RECEIVED_AT] as number | null
  const receivedAt = Math.max(before ?? call.timeMs, call.timeMs)
  if (before !== null && receivedAt > before) {
    // What had the time of the row keeps it.
    for (let at = FIRST_TRAIT; at < row.length; at++) if (row[at] !== null) times[(columns[at] as StoredColumn).name] ??= before
  }
  row[RECEIVED_AT] = receivedAt
  const note = (key: string, hasCell: boolean): void => {
    // A null has no cell that would stand for the time of the row.
    if (call.timeMs === receivedAt && hasCell) delete times[key]
    else times[key] = call.timeMs
  }
  const isNewer = (key: string, cell: Cell): boolean =>
    call.timeMs >= (times[key] ?? (cell === null ? Number.NEGATIVE_INFINITY : receivedAt))
  for (const [at, cell] of call.cells) {
    const { name, path } = columns[at] as StoredColumn
    if (!isNewer(name, row[at] ?? null)) continue
    row[at] = cell
    delete unfit[path]
    if (call.unfit !== null && Object.hasOwn(call.unfit, path)) unfit[path] = call.unfit[path]
    note(name, cell !== null)
  }
  const named = new Set(call.cells.map(([at]) => (columns[at] as StoredColumn).path))
  for (const [path, value] of Object.entries(call.unfit ?? {})) {
    if (named.has(path) || !isNewer(path, null)) continue
    unfit[path] = value
    note(path, false)
  }
}

/** The id of a row of state. */
export function idOf(row: readonly Cell[]): string {
  return String(row[ID])
}

function parsed<T>(cell: Cell | undefined): Record<string, T> {
  return Object.assign(Object.create(null) as Record<string, T>, typeof cell === 'string' ? (JSON.parse(cell) as Record<string, T>) : {})
}

function textOf(record: Record<string, unknown>): string | null {
  // Sorted, so that the order of loads leaves no trace.
  const keys = Object.keys(record).sort()
  return keys.length === 0 ? null : jsonText(Object.fromEntries(keys.map((key) => [key, record[key]])))
}
