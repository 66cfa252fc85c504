// A first-in, first-out queue with constant cost. Array.shift copies the whole array once it has more than about 16,000
// elements, and a lane of small messages holds more than that.

const COMPACT_FROM = 1_024

export class Fifo<T> {
  #items: (T | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  get first(): T | undefined {
    return this.#items[this.#head]
  }

  push(item: T): void {
    this.#items.push(item)
  }

  dropFirst(): void {
    if (this.length === 0) return
    this.#items[this.#head++] = undefined
    if (this.#head === this.#items.length) this.clear()
    else if (this.#head >= COMPACT_FROM && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
  }

  clear(): void {
    this.#items = []
    this.#head = 0
  }
}
