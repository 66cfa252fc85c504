// Row ids that contain their time and the node that created them: 42 bits of milliseconds, 9 bits of node number and 12 bits of
// counter. So rows are stored in the order of their creation, a time or a day is a range of ids, and nodes create ids without coordination.
// In the database they are 64-bit integers. Here they are strings, always of 19 digits (from 1985 to 2109), so that they compare
// as text like they do as numbers.

import type { RowOrder } from '../../encoding/sql.ts'

const NODE_BITS = 9n
const COUNTER_BITS = 12n
const TIME_SHIFT = NODE_BITS + COUNTER_BITS
const COUNTERS = 2 ** Number(COUNTER_BITS)
const LARGEST = 2n ** 63n - 1n
/** In 2109. */
const LAST_MS = 2 ** 42 - 1

/** Nodes are numbered from 0 to this, exclusive. The one number after that is for rows that were migrated from SQLite. */
export const NODE_NUMBERS = 2 ** Number(NODE_BITS) - 1
const MOVED_NODE = BigInt(NODE_NUMBERS)
/** Smaller than every possible row id. */
export const OLDEST = rowIdAt(500_000_000_000)
/** Larger than every possible row id. */
export const NEWEST = String(LARGEST)

/** The clock skew between nodes that queries allow for, as a difference of row ids: `$1::bigint - ${SKEW}`. */
export const SKEW = String(60_000n << TIME_SHIFT)

/** The first row id of a millisecond. */
export function rowIdAt(ms: number): string {
  return String(BigInt(Math.min(LAST_MS, Math.max(500_000_000_000, Math.floor(ms)))) << TIME_SHIFT)
}

export function msOfRowId(id: string): number {
  return Number(BigInt(id) >> TIME_SHIFT)
}

/** The next row id. */
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

  /** For a node that has joined again under another number. */
  useNode(node: number): void {
    this.#node = BigInt(node)
  }

  next(): string {
    const ms = Math.floor(this.#nowMs())
    // If the clock goes back, the ids run ahead of it until it catches up.
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

/** The oldest segment; null if there are no rows. */
export function oldestOf(rows: readonly { segment: string }[]): string | null {
  return rows.reduce<string | null>((least, { segment }) => (least === null || segment < least ? segment : least), null)
}

// ── Rows migrated from SQLite: see store-migration ──

/** A row number in SQLite is milliseconds × this, plus a counter. */
const SQLITE_PER_MS = 2_048n
const SQLITE_DIGITS = 16

/**
 * The row id for a row that had this number in SQLite. Keeps the order, and neighbouring rows stay neighbours. A row that becomes several has pieces,
 * from 0, with the ids of the last node numbers.
 */
export function movedRowId(number: number | string, piece = 0): string {
  const id = BigInt(number)
  return String(((id / SQLITE_PER_MS) << TIME_SHIFT) | ((MOVED_NODE - BigInt(piece)) << COUNTER_BITS) | (id % SQLITE_PER_MS))
}

/** The `num` of a source or anything else that SQLite numbered from 1. 0, which means none, stays 0. */
export function movedNum(number: number): string {
  return number === 0 ? '0' : String((BigInt(500_000_000_000 + number) << TIME_SHIFT) | (MOVED_NODE << COUNTER_BITS))
}

/** Whether a text from outside could be a row id. */
export function isRowId(text: string): boolean {
  return /^[1-9]\d{18}$/.test(text) && BigInt(text) <= LARGEST
}

/** Parses the id of a delivery (shipment and index) or of a message (segment and index). Ids from before a migration from SQLite are still understood. */
export function rowAndIndex(id: string): { row: string; index: number } | undefined {
  const match = /^([1-9]\d{15}(?:\d{3})?)-(0|[1-9]\d{0,3})$/.exec(id)
  if (match === null) return undefined
  const named = match[1] as string
  if (named.length === SQLITE_DIGITS && Number(named) > Number.MAX_SAFE_INTEGER) return undefined
  const row = named.length === SQLITE_DIGITS ? movedRowId(named) : named
  return BigInt(row) > LARGEST ? undefined : { row, index: Number(match[2]) }
}
