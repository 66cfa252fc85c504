// The messages with keys that a lane holds, in one queue per key, and which of them may start. Pure. Invariants: of a key, only the first
// messages of its queue start, and only while no request with the key is in flight; after a message that is to be attempted again, nothing else of
// the key starts except its head, until all that is behind it in memory is back in the store. Memory: one entry per key of the messages held.

import type { OrderKey } from '../../../model/order/order-key.ts'
import { Heap } from './heap.ts'

export interface Keyed {
  readonly key: OrderKey
}

interface Waiting<M> {
  readonly message: M
  /** When it came, as a number that grows. */
  readonly place: number
}

interface KeyQueue<M> {
  readonly key: OrderKey
  /** Not started, in the order of acceptance. */
  readonly waiting: Waiting<M>[]
  /** How many of its messages are in flight, all in one request. */
  running: number
  /** How many messages are left in memory, or were stopped by an outcome that the store does not know yet. */
  leaving: number
  /** The place of its first message, if that may start, as it is in the heap of those that may. */
  readyPlace: number | null
}

/** A message that was not sent after all comes before all that were not started. */
const WITHDRAWN = 0

export class KeyQueues<M extends Keyed> {
  readonly #queues = new Map<OrderKey, KeyQueue<M>>()
  /** The keys of which messages are on their way back to the store. */
  readonly #leaving = new Set<OrderKey>()
  /** What may start, the oldest first. What does not match its queue any more is skipped. */
  readonly #ready = new Heap<{ queue: KeyQueue<M>; place: number }>(({ place }) => place)
  #lastPlace = WITHDRAWN
  /** The highest place of all messages that were started. */
  #lastStarted = WITHDRAWN
  /** Keys of messages that are back in the store. A claim that began before may not have seen that, so they count until it has ended. */
  #returned: OrderKey[] = []
  #claims = 0

  get size(): number {
    return this.#queues.size
  }

  // ── What comes ──

  /** Returns false if the message must not start, but go back to the store. `isHead`: whether the store says that it is the head of its key. */
  add(message: M, isHead: boolean): boolean {
    const queue = this.#of(message.key)
    if (queue.leaving > 0 && !isHead) {
      this.#changeLeaving(queue, 1)
      return false
    }
    // While the store has a head, whatever else was in memory has left the queue.
    queue.waiting.push({ message, place: ++this.#lastPlace })
    this.#updateReady(queue)
    return true
  }

  /** Whether messages of the key are on their way back to the store, so that a claimed one would be refused. */
  isLeaving(key: OrderKey): boolean {
    return this.#leaving.has(key)
  }

  /** The keys of which messages are on their way back to the store. */
  get leavingKeys(): OrderKey[] {
    return [...this.#leaving]
  }

  // ── What goes ──

  /**
   * A message that may start: the one that came first. So requests of clients end in the order in which they came, and few are in progress at once, even
   * if keys have several messages here.
   */
  next(): M | undefined {
    for (let entry = this.#ready.first; entry !== undefined; entry = this.#ready.first) {
      const { queue, place } = entry
      if (queue.readyPlace === place) {
        const [first] = queue.waiting
        if (this.#mayStart(queue) && first?.place === place) return first.message
        queue.readyPlace = null
      }
      this.#ready.dropFirst()
      this.#updateReady(queue)
    }
    return undefined
  }

  /**
   * Those of the messages, which are in the order of acceptance, that may start together in one request: of each key the first ones.
   * `perKey`: the most messages of one key.
   */
  startable(messages: Iterable<M>, perKey: number): M[] {
    const taken = new Map<OrderKey, number>()
    const found: M[] = []
    for (const message of messages) {
      const queue = this.#queues.get(message.key)
      const count = taken.get(message.key) ?? 0
      if (queue === undefined || count >= perKey || !this.#mayStart(queue) || queue.waiting[count]?.message !== message) continue
      taken.set(message.key, count + 1)
      found.push(message)
    }
    return found
  }

  /** The messages start in one request. They must be startable. Returns whether one of them is late: a message that came after it was started earlier. */
  start(messages: readonly M[]): boolean {
    let isLate = false
    for (const message of messages) {
      const queue = this.#of(message.key)
      if (queue.waiting[0]?.message !== message) throw new Error('a message was started that is not the first of its key')
      const { place } = queue.waiting.shift() as Waiting<M>
      isLate ||= place < this.#lastStarted
      this.#lastStarted = Math.max(this.#lastStarted, place)
      queue.running++
    }
    return isLate
  }

  /** The messages were not sent after all. They are the next of their keys again. */
  withdraw(messages: readonly M[]): void {
    for (let at = messages.length - 1; at >= 0; at--) {
      const message = messages[at] as M
      const queue = this.#of(message.key)
      queue.running--
      queue.waiting.unshift({ message, place: WITHDRAWN })
      this.#updateReady(queue)
    }
  }

  /** The messages have ended, and their keys go on. */
  end(messages: readonly M[]): void {
    for (const { key } of messages) {
      const queue = this.#of(key)
      queue.running--
      this.#settle(queue)
    }
  }

  /**
   * The messages are to be attempted again, or hold their keys. Nothing of these keys starts until the outcome is recorded: see returned().
   * Returns what waits behind them, and must go back to the store.
   */
  stop(messages: readonly M[]): M[] {
    const left: M[] = []
    for (const { key } of messages) {
      const queue = this.#of(key)
      queue.running--
      this.#changeLeaving(queue, 1)
      left.push(...this.#leave(queue))
    }
    return left
  }

  /** Removes messages that wait and will not be sent by this lane: deleted, or taken back. */
  remove(messages: ReadonlySet<M>): void {
    for (const { key } of messages) {
      const queue = this.#queues.get(key)
      if (queue === undefined) continue
      const kept = queue.waiting.filter(({ message }) => !messages.has(message))
      queue.waiting.splice(0, queue.waiting.length, ...kept)
      this.#updateReady(queue)
      this.#dropIfEmpty(queue)
    }
  }

  /** Messages that wait go back to the store. So does everything behind them, which is returned too. */
  leave(messages: Iterable<M>): M[] {
    const left: M[] = []
    for (const { key } of messages) {
      const queue = this.#queues.get(key)
      if (queue !== undefined) left.push(...this.#leave(queue))
    }
    return left
  }

  // ── What is back in the store ──

  /** These keys have one message less that is left in memory, or one more outcome that is recorded. One entry for each message. */
  returned(keys: Iterable<OrderKey>): void {
    this.#returned.push(...keys)
    if (this.#claims === 0) this.#forgetReturned()
  }

  claimStarted(): void {
    this.#claims++
  }

  /** Called after what was claimed has been added. */
  claimEnded(): void {
    if (--this.#claims === 0) this.#forgetReturned()
  }

  /** The shipments no longer belong to this node. What is in flight ends as usual. */
  clear(): void {
    for (const queue of this.#queues.values()) {
      queue.waiting.length = 0
      this.#dropIfEmpty(queue)
    }
  }

  #forgetReturned(): void {
    for (const key of this.#returned.splice(0)) {
      const queue = this.#queues.get(key)
      if (queue === undefined) continue
      this.#changeLeaving(queue, -1)
      this.#settle(queue)
    }
  }

  #leave(queue: KeyQueue<M>): M[] {
    const left = queue.waiting.splice(0).map(({ message }) => message)
    this.#changeLeaving(queue, left.length)
    return left
  }

  #changeLeaving(queue: KeyQueue<M>, change: number): void {
    queue.leaving += change
    if (queue.leaving > 0) this.#leaving.add(queue.key)
    else this.#leaving.delete(queue.key)
  }

  #settle(queue: KeyQueue<M>): void {
    this.#updateReady(queue)
    this.#dropIfEmpty(queue)
  }

  #mayStart({ running, waiting }: KeyQueue<M>): boolean {
    return running === 0 && waiting.length > 0
  }

  #updateReady(queue: KeyQueue<M>): void {
    if (!this.#mayStart(queue)) return
    const { place } = queue.waiting[0] as Waiting<M>
    if (queue.readyPlace === place) return
    queue.readyPlace = place
    this.#ready.push({ queue, place })
  }

  #dropIfEmpty({ key, waiting, running, leaving }: KeyQueue<M>): void {
    if (waiting.length === 0 && running === 0 && leaving === 0) this.#queues.delete(key)
  }

  #of(key: OrderKey): KeyQueue<M> {
    let queue = this.#queues.get(key)
    if (queue === undefined) {
      queue = { key, waiting: [], running: 0, leaving: 0, readyPlace: null }
      this.#queues.set(key, queue)
    }
    return queue
  }
}
