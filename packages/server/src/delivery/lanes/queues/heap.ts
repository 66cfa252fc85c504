// A binary heap: the item with the smallest place is the first.

export class Heap<T> {
  readonly #items: T[] = []
  readonly #placeOf: (item: T) => number

  constructor(placeOf: (item: T) => number) {
    this.#placeOf = placeOf
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    const place = this.#placeOf(item)
    let at = items.length
    items.push(item)
    while (at > 0) {
      const above = (at - 1) >> 1
      const other = items[above] as T
      if (this.#placeOf(other) <= place) break
      items[at] = other
      at = above
    }
    items[at] = item
  }

  dropFirst(): void {
    const items = this.#items
    const last = items.pop()
    if (last === undefined || items.length === 0) return
    const place = this.#placeOf(last)
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= items.length) break
      if (below + 1 < items.length && this.#placeOf(items[below + 1] as T) < this.#placeOf(items[below] as T)) below++
      const other = items[below] as T
      if (place <= this.#placeOf(other)) break
      items[at] = other
      at = below
    }
    items[at] = last
  }
}
