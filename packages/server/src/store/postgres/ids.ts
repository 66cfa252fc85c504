// Row names that carry their time and the node that gave them: 42 bits of milliseconds, 9 of the node's number, 12 of a
// counter. So rows lie in the order they came, a time is found by name, a day is a range, and no node asks anybody for one.
// They are 64-bit integers in the database and their digits here, always 19 of them (from 1985 to 2109), so that as texts they compare as
// they do as numbers.

const NODE_BITS = 9n
const COUNTER_BITS = 12n
const TIME_SHIFT = NODE_BITS + COUNTER_BITS
const COUNTERS = 2 ** Number(COUNTER_BITS)
const LARGEST = 2n ** 63n - 1n
/** In 2109. */
const LAST_MS = 2 ** 42 - 1

/** Numbers that nodes may have: 0 to this, exclusive. */
export const NODE_NUMBERS = 2 ** Number(NODE_BITS)
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

/** Whether a text that came from outside could name a row. */
export function isRowId(text: string): boolean {
  return /^[1-9]\d{18}$/.test(text) && BigInt(text) <= LARGEST
}

/** Rows name deliveries by shipment and index, and messages by segment and index. */
export function rowAndIndex(id: string): { row: string; index: number } | undefined {
  const match = /^([1-9]\d{18})-(0|[1-9]\d{0,3})$/.exec(id)
  if (match === null || BigInt(match[1] as string) > LARGEST) return undefined
  return { row: match[1] as string, index: Number(match[2]) }
}
