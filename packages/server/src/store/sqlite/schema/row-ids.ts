// Row ids that contain the time: milliseconds × 2,048 plus a counter, strictly increasing. So rows are in the order in which they were written, and
// a time range is a range of row ids, for reading as for dropping a day. Row ids are exact in a double until the year 2109. If the clock
// goes back, row ids continue from the last one, ahead of the clock.

import type { RowOrder } from '../../encoding/sql.ts'

const PER_MS = 2048
/** An upper bound for the ids that were assigned after the newest one that is found at a start: half a second at the highest rate. */
const START_MARGIN = 2 ** 20

export function rowIdAt(ms: number): number {
  return Math.floor(ms) * PER_MS
}

export function msOfRowId(id: number): number {
  return Math.floor(id / PER_MS)
}

export const SQLITE_ROW_ORDER: RowOrder<number> = {
  oldest: 0,
  newest: Number.MAX_SAFE_INTEGER,
  skewMs: 0,
  at: rowIdAt,
  msOf: msOfRowId,
  before: (id) => id - 1,
  after: (id) => id + 1,
  isRowId: (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0,
}

export class RowIds {
  readonly #nowMs: () => number
  #last: number

  /** If the clock is ahead of the newest known id, no later id was assigned. Otherwise the clock went back, and START_MARGIN ids may have been. */
  constructor(newestKnown: number, nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
    this.#last = rowIdAt(nowMs()) > newestKnown ? newestKnown : newestKnown + START_MARGIN
  }

  get last(): number {
    return this.#last
  }

  next(): number {
    this.#last = Math.max(this.#last + 1, rowIdAt(this.#nowMs()))
    return this.#last
  }
}

/** Parses the id of a delivery (shipment and index) or of a message (segment and index). */
export function rowAndIndex(id: string): { row: number; index: number } | undefined {
  const match = /^([1-9]\d{0,15})-(0|[1-9]\d{0,3})$/.exec(id)
  if (match === null) return undefined
  const row = Number(match[1])
  return Number.isSafeInteger(row) ? { row, index: Number(match[2]) } : undefined
}
