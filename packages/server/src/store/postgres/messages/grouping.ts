// What is given while a group is under way waits and makes up the next one: under load many share a commit, and alone one does
// not wait. Memory is bounded: beyond the limit of bytes that wait, more is refused as unavailable. What fails in a group because
// of another in it is made again alone.

import { StoreUnavailable } from '../../store.ts'

export interface GroupingOptions<Item, Reply> {
  /** One transaction. Gives a reply for each, in order, or the error that concerns it alone. */
  run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>
  /** Groups under way at once. */
  depth: number
  /** A group is begun beside another only when so many wait. */
  early: number
  maxItems: number
  /** If missing, neither groups nor waiting items are limited by bytes. */
  bytesOf?: (item: Item) => number
  maxBytes?: number
  /** What may wait, in bytes. */
  waitingBytes?: number
  /** How long the first may wait for others; 0: until the end of this turn of the event loop. */
  lingerMs?: number
}

interface Waiting<Item, Reply> {
  item: Item
  bytes: number
  resolve: (reply: Reply) => void
  reject: (error: unknown) => void
}

export class Grouping<Item, Reply> {
  readonly #options: Required<GroupingOptions<Item, Reply>>
  #waiting: Waiting<Item, Reply>[] = []
  #waitingBytes = 0
  #underway = 0
  #immediate: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #idle: (() => void)[] = []

  constructor(options: GroupingOptions<Item, Reply>) {
    this.#options = {
      bytesOf: () => 0,
      maxBytes: Number.POSITIVE_INFINITY,
      waitingBytes: Number.POSITIVE_INFINITY,
      lingerMs: 0,
      ...options,
    }
  }

  push(item: Item): Promise<Reply> {
    if (this.#closed) return Promise.reject(new StoreUnavailable('the store is closed'))
    const bytes = this.#options.bytesOf(item)
    if (this.#waitingBytes > this.#options.waitingBytes) {
      return Promise.reject(new StoreUnavailable('more waits to be written than fits in memory'))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, bytes, resolve, reject })
      this.#waitingBytes += bytes
      this.#schedule()
    })
  }

  /** Everything that was given before is made; nothing more is taken. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#waiting.length === 0 && this.#underway === 0) return
    const idle = new Promise<void>((resolve) => this.#idle.push(resolve))
    this.#begin()
    await idle
  }

  #schedule(): void {
    const { depth, early, lingerMs, maxItems } = this.#options
    if (this.#underway >= depth || (this.#underway > 0 && this.#waiting.length < early)) return
    if (lingerMs === 0 || this.#waiting.length >= maxItems) this.#immediate ??= setImmediate(() => this.#begin())
    else this.#timer ??= setTimeout(() => this.#begin(), lingerMs)
  }

  #begin(): void {
    clearImmediate(this.#immediate)
    clearTimeout(this.#timer)
    this.#immediate = undefined
    this.#timer = undefined
    const { depth, maxItems, maxBytes } = this.#options
    if (this.#waiting.length === 0 || this.#underway >= depth) return
    let count = 0
    let bytes = 0
    while (
      count < this.#waiting.length &&
      count < maxItems &&
      (count === 0 || bytes + (this.#waiting[count] as { bytes: number }).bytes <= maxBytes)
    ) {
      bytes += (this.#waiting[count++] as { bytes: number }).bytes
    }
    const group = this.#waiting.splice(0, count)
    this.#waitingBytes -= bytes
    this.#underway++
    void this.#run(group).finally(() => {
      this.#underway--
      if (this.#waiting.length > 0) {
        if (this.#closed) this.#begin()
        else this.#schedule()
      }
      if (this.#waiting.length === 0 && this.#underway === 0) for (const resolve of this.#idle.splice(0)) resolve()
    })
    if (this.#waiting.length > 0) this.#schedule()
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
