// Items that wait for the next group commit, with a limit of bytes: when they have reached it, further ones are rejected as unavailable.

import { StoreUnavailable } from '../store.ts'

/** The most bytes that may wait. */
export const MAX_WAITING_BYTES = 64 * 1024 * 1024
/** The most bytes of one group: about 10 ms of writing. */
export const MAX_GROUP_BYTES = 4 * 1024 * 1024

export class WaitingItems<Item extends { readonly bytes: number }> {
  readonly #maxBytes: number
  #items: Item[] = []
  #bytes = 0

  constructor(maxBytes = MAX_WAITING_BYTES) {
    this.#maxBytes = maxBytes
  }

  get count(): number {
    return this.#items.length
  }

  /** An error if there is no room for more bytes. */
  refusal(bytes: number): StoreUnavailable | undefined {
    if (this.#bytes + bytes <= this.#maxBytes || this.#items.length === 0) return undefined
    return new StoreUnavailable('too many messages are waiting to be stored; try again later')
  }

  add(item: Item): void {
    this.#items.push(item)
    this.#bytes += item.bytes
  }

  /** Before all others. */
  putBack(items: readonly Item[]): void {
    this.#items = [...items, ...this.#items]
    for (const { bytes } of items) this.#bytes += bytes
  }

  /** Removes the items of the next group: at least one, and as many as do not exceed the limits. */
  take(maxBytes = MAX_GROUP_BYTES, maxItems = Number.POSITIVE_INFINITY): Item[] {
    let count = 0
    let bytes = 0
    for (; count < this.#items.length && count < maxItems; count++) {
      const next = (this.#items[count] as Item).bytes
      if (count > 0 && bytes + next > maxBytes) break
      bytes += next
    }
    this.#bytes -= bytes
    if (count < this.#items.length) return this.#items.splice(0, count)
    const all = this.#items
    this.#items = []
    return all
  }
}
