// Row numbers that carry their time: milliseconds × 2,048 plus a counter, strictly increasing. So rows lie in the order
// they came, a time is found by number, and a day is dropped by number. They stay exact in a double until the year 2109,
// and a clock that goes back only makes them run ahead of it.

import type { RowOrder } from '../../encoding/row-port.ts'

const PER_MS = 2048
/** What may have been given out after the last number that a start can find: half a second's worth at the highest rate. */
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

  /** A clock that went back since then does not say what was given out meanwhile; one that went on does. */
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

/** Rows name deliveries by shipment and index, and messages by segment and index. */
export function rowAndIndex(id: string): { row: number; index: number } | undefined {
  const match = /^([1-9]\d{0,15})-(0|[1-9]\d{0,3})$/.exec(id)
  if (match === null) return undefined
  const row = Number(match[1])
  return Number.isSafeInteger(row) ? { row, index: Number(match[2]) } : undefined
}
