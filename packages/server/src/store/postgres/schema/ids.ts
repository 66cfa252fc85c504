// Row names that carry their time and the node that gave them: 42 bits of milliseconds, 9 of the node's number, 12 of a
// counter. So rows lie in the order they came, a time is found by name, a day is a range, and no node asks anybody for one.
// They are 64-bit integers in the database and their digits here, always 19 of them (from 1985 to 2109), so that as texts they compare as
// they do as numbers.

import type { RowOrder } from '../../encoding/row-port.ts'

const NODE_BITS = 9n
const COUNTER_BITS = 12n
const TIME_SHIFT = NODE_BITS + COUNTER_BITS
const COUNTERS = 2 ** Number(COUNTER_BITS)
const LARGEST = 2n ** 63n - 1n
/** In 2109. */
const LAST_MS = 2 ** 42 - 1

/** Numbers that nodes may have: 0 to this, exclusive. The last there is stands for rows that were moved here from SQLite. */
export const NODE_NUMBERS = 2 ** Number(NODE_BITS) - 1
const MOVED_NODE = BigInt(NODE_NUMBERS)
/** Before every row there can be. */
export const OLDEST = rowIdAt(500_000_000_000)
/** After every row there can be. */
export const NEWEST = String(LARGEST)

/** Names that different nodes give at one time differ by what their clocks do; this much is allowed for, in SQL: `$1::bigint - ${SKEW}`. */
export const SKEW = String(60_000n << TIME_SHIFT)

/** The first name of a millisecond. */
export function rowIdAt(ms: number): string {
  return String(BigInt(Math.min(LAST_MS, Math.max(500_000_000_000, Math.floor(ms)))) << TIME_SHIFT)
}

export function msOfRowId(id: string): number {
  return Number(BigInt(id) >> TIME_SHIFT)
}

/** The name right after. */
export function afterRowId(id: string): string {
  return String(BigInt(id) + 1n)
}

export const POSTGRES_ROWS: RowOrder<string> = {
  oldest: OLDEST,
  newest: NEWEST,
  skewMs: msOfRowId(SKEW),
  at: rowIdAt,
  msOf: msOfRowId,
  before: (id) => String(BigInt(id) - 1n),
  after: afterRowId,
  isRowId: (value) => typeof value === 'string' && isRowId(value),
}

export class RowIds {
  readonly #nowMs: () => number
  #node: bigint
  #ms = 0
  #counter = 0

  constructor(node: number, nowMs: () => number) {
    this.#node = BigInt(node)
    this.#nowMs = nowMs
  }

  /** A node that lost its number and was given another goes on with that. */
  useNode(node: number): void {
    this.#node = BigInt(node)
  }

  next(): string {
    const ms = Math.floor(this.#nowMs())
    // A clock that goes back only makes them run ahead of it.
    if (ms > this.#ms) {
      this.#ms = ms
      this.#counter = 0
    } else if (++this.#counter === COUNTERS) {
      this.#ms++
      this.#counter = 0
    }
    return String((BigInt(this.#ms) << TIME_SHIFT) | (this.#node << COUNTER_BITS) | BigInt(this.#counter))
  }
}

// ── What was moved here from SQLite: see store-migration ──

/** A row number there: milliseconds × this, plus a counter. */
const SQLITE_PER_MS = 2_048n
const SQLITE_DIGITS = 16

/** The name of a row that had this number there. Order is kept, and what was next to each other still is. */
export function movedRowId(number: number | string): string {
  const id = BigInt(number)
  return String(((id / SQLITE_PER_MS) << TIME_SHIFT) | (MOVED_NODE << COUNTER_BITS) | (id % SQLITE_PER_MS))
}

/** The `num` of a source or whatever else was numbered from 1 there. 0, which stands for none, stays. */
export function movedNum(number: number): string {
  return number === 0 ? '0' : String((BigInt(500_000_000_000 + number) << TIME_SHIFT) | (MOVED_NODE << COUNTER_BITS))
}

/** Whether a text that came from outside could name a row. */
export function isRowId(text: string): boolean {
  return /^[1-9]\d{18}$/.test(text) && BigInt(text) <= LARGEST
}

/** Rows name deliveries by shipment and index, and messages by segment and index. A name from before a move is still known. */
export function rowAndIndex(id: string): { row: string; index: number } | undefined {
  const match = /^([1-9]\d{15}(?:\d{3})?)-(0|[1-9]\d{0,3})$/.exec(id)
  if (match === null) return undefined
  const named = match[1] as string
  if (named.length === SQLITE_DIGITS && Number(named) > Number.MAX_SAFE_INTEGER) return undefined
  const row = named.length === SQLITE_DIGITS ? movedRowId(named) : named
  return BigInt(row) > LARGEST ? undefined : { row, index: Number(match[2]) }
}
