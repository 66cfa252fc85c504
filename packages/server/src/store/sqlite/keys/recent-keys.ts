// The newest message keys, in memory: an open-addressing hash table from fingerprint to segment in one Uint32Array, with 24 bytes per slot.
// Additions can be undone in reverse order, after a failed commit. When the table is full, it is frozen, written to the store as a run
// (key-runs.ts) and replaced. Does not depend on SQLite.

import { FINGERPRINT_WORDS } from '../../encoding/fingerprint.ts'

/** Four words for the fingerprint, and two for the row id of the segment. */
export const ENTRY_WORDS = FINGERPRINT_WORDS + 2
const HIGH = 2 ** 32

export class RecentKeys {
  readonly capacity: number
  readonly #slots: Uint32Array
  readonly #shift: number
  readonly #mask: number
  #size = 0

  /** `capacity` is a power of two. The table has twice as many slots. */
  constructor(capacity: number) {
    this.capacity = capacity
    const slots = capacity * 2
    this.#slots = new Uint32Array(slots * ENTRY_WORDS)
    this.#mask = slots - 1
    this.#shift = 32 - Math.log2(slots)
  }

  get size(): number {
    return this.#size
  }

  /** Returns the slot of the new key, for `undo`, or -1 if the key is already in the table. */
  add(words: Uint32Array, at: number, segment: number): number {
    const slot = this.#slotOf(words, at)
    const base = slot * ENTRY_WORDS
    const slots = this.#slots
    if (slots[base + 5] !== 0 || slots[base + 4] !== 0) return -1
    // One slot must stay empty, or a search would never end. A group of commits cannot add that many keys: see Duplicates.
    if (this.#size === this.#mask) throw new Error(`more than ${this.#mask} keys in a table with a capacity of ${this.capacity}`)
    slots[base] = words[at] as number
    slots[base + 1] = words[at + 1] as number
    slots[base + 2] = words[at + 2] as number
    slots[base + 3] = words[at + 3] as number
    slots[base + 4] = Math.floor(segment / HIGH)
    slots[base + 5] = segment >>> 0
    this.#size++
    return slot
  }

  clear(): void {
    this.#slots.fill(0)
    this.#size = 0
  }

  /** The segment that contains the key, or 0. */
  find(words: Uint32Array, at: number): number {
    const base = this.#slotOf(words, at) * ENTRY_WORDS
    return (this.#slots[base + 4] as number) * HIGH + (this.#slots[base + 5] as number)
  }

  /** Undoes an addition. Additions must be undone in reverse order, so that the slot was empty before. */
  undo(slot: number): void {
    this.#slots.fill(0, slot * ENTRY_WORDS, (slot + 1) * ENTRY_WORDS)
    this.#size--
  }

  /**
   * The entries whose fingerprints start with these bits, one after the other. The first bits of a fingerprint determine its slot, so these entries
   * are adjacent: in the slots of the prefix and in the following ones, up to the first empty slot.
   */
  entriesOf(prefix: number, bits: number): Uint32Array {
    const slots = this.#slots
    const first = (prefix << (32 - bits)) >>> this.#shift
    const last = (((prefix + 1) << (32 - bits)) - 1) >>> this.#shift
    const found: number[] = []
    for (let seen = 0, slot = first; seen <= this.#mask; seen++, slot = (slot + 1) & this.#mask) {
      const base = slot * ENTRY_WORDS
      if (slots[base + 5] === 0 && slots[base + 4] === 0) {
        if (seen >= last - first) break
      } else if ((slots[base] as number) >>> (32 - bits) === prefix) found.push(base)
    }
    const entries = new Uint32Array(found.length * ENTRY_WORDS)
    for (let at = 0; at < found.length; at++) {
      const base = found[at] as number
      for (let word = 0; word < ENTRY_WORDS; word++) entries[at * ENTRY_WORDS + word] = slots[base + word] as number
    }
    return entries
  }

  /** The slot of the key, or the empty slot in which it would be stored. */
  #slotOf(words: Uint32Array, at: number): number {
    const slots = this.#slots
    const w0 = words[at] as number
    for (let slot = w0 >>> this.#shift; ; slot = (slot + 1) & this.#mask) {
      const base = slot * ENTRY_WORDS
      if (slots[base + 5] === 0 && slots[base + 4] === 0) return slot
      if (
        slots[base] === w0 &&
        slots[base + 1] === words[at + 1] &&
        slots[base + 2] === words[at + 2] &&
        slots[base + 3] === words[at + 3]
      ) {
        return slot
      }
    }
  }
}
