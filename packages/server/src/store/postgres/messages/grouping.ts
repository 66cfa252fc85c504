// Group commit. Items that are pushed while a group is running wait and form the next group: under load many items share a commit, and a single
// item does not wait. Memory is bounded: if too many bytes are waiting, further items are rejected as unavailable. If a group fails
// because of one of its items, each item is retried alone.

import { MAX_GROUP_BYTES, WaitingItems } from '../../delivery/waiting-items.ts'
import { StoreUnavailable } from '../../store.ts'

export interface GroupingOptions<Item, Reply> {
  /** Runs one transaction. Returns for each item, in order, its reply or an error that concerns this item alone. */
  run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>
  /** The number of groups that may run at the same time. */
  depth: number
  /** While a group is running, another one starts only when at least this many items wait. */
  early: number
  maxItems: number
  /** If missing, nothing is limited by bytes. */
  bytesOf?: (item: Item) => number
  maxBytes?: number
  /** The most bytes that may wait. */
  waitingBytes?: number
  /** How long the first item waits for others; 0 for the end of the current turn of the event loop. */
  lingerMs?: number
}

interface Waiting<Item, Reply> {
  item: Item
  bytes: number
  resolve: (reply: Reply) => void
  reject: (error: unknown) => void
}

export class Grouping<Item, Reply> {
  readonly #options: Required<Omit<GroupingOptions<Item, Reply>, 'waitingBytes'>>
  readonly #waiting: WaitingItems<Waiting<Item, Reply>>
  #running = 0
  #immediate: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #idle: (() => void)[] = []

  constructor({ waitingBytes = Number.POSITIVE_INFINITY, ...options }: GroupingOptions<Item, Reply>) {
    this.#options = { bytesOf: () => 0, maxBytes: MAX_GROUP_BYTES, lingerMs: 0, ...options }
    this.#waiting = new WaitingItems(waitingBytes)
  }

  push(item: Item): Promise<Reply> {
    if (this.#closed) return Promise.reject(new StoreUnavailable('the store is closed'))
    const bytes = this.#options.bytesOf(item)
    const refusal = this.#waiting.refusal(bytes)
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise((resolve, reject) => {
      this.#waiting.add({ item, bytes, resolve, reject })
      this.#schedule()
    })
  }

  /** Rejects new items, and resolves when all items that were pushed before have been processed. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#waiting.count === 0 && this.#running === 0) return
    const idle = new Promise<void>((resolve) => this.#idle.push(resolve))
    this.#begin()
    await idle
  }

  #schedule(): void {
    const { depth, early, lingerMs, maxItems } = this.#options
    if (this.#running >= depth || (this.#running > 0 && this.#waiting.count < early)) return
    if (lingerMs === 0 || this.#waiting.count >= maxItems) this.#immediate ??= setImmediate(() => this.#begin())
    else this.#timer ??= setTimeout(() => this.#begin(), lingerMs)
  }

  #begin(): void {
    clearImmediate(this.#immediate)
    clearTimeout(this.#timer)
    this.#immediate = undefined
    this.#timer = undefined
    const { depth, maxItems, maxBytes } = this.#options
    if (this.#waiting.count === 0 || this.#running >= depth) return
    const group = this.#waiting.take(maxBytes, maxItems)
    this.#running++
    void this.#run(group).finally(() => {
      this.#running--
      if (this.#waiting.count > 0) {
        if (this.#closed) this.#begin()
        else this.#schedule()
      }
      if (this.#waiting.count === 0 && this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
    })
    if (this.#waiting.count > 0) this.#schedule()
  }

  async #run(group: readonly Waiting<Item, Reply>[]): Promise<void> {
    try {
      const replies = await this.#options.run(group.map(({ item }) => item))
      for (const [at, { resolve, reject }] of group.entries()) {
        const reply = replies[at]
        if (reply instanceof Error) reject(reply)
        else resolve(reply as Reply)
      }
    } catch (error) {
      if (group.length === 1 || error instanceof StoreUnavailable) for (const { reject } of group) reject(error)
      else for (const one of group) await this.#run([one])
    }
  }
}
