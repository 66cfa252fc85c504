// What waits in memory to be sent: first attempts and retries, each in their order. They have half of what is allowed each,
// and all of it while the other has nothing waiting.

import type { Work } from '../shipments/work.ts'
import { Fifo } from './fifo.ts'

export class Waiting {
  readonly #fresh = new Fifo<Work>()
  readonly #retries = new Fifo<Work>()
  #retryLast = false

  get hasFresh(): boolean {
    return firstOf(this.#fresh) !== undefined
  }

  get hasRetries(): boolean {
    return firstOf(this.#retries) !== undefined
  }

  push(work: Work): void {
    ;(work.retry ? this.#retries : this.#fresh).push(work)
  }

  clear(): void {
    this.#fresh.clear()
    this.#retries.clear()
  }

  next(allowed: number, inFlightRetries: number): Work | undefined {
    const fresh = firstOf(this.#fresh)
    const retry = firstOf(this.#retries)
    if (fresh === undefined || retry === undefined) return fresh ?? retry
    this.#retryLast = allowed === 1 ? !this.#retryLast : inFlightRetries < Math.floor(allowed / 2)
    return this.#retryLast ? retry : fresh
  }
}

/** The first that has units left: they may all have been purged while it waited. */
function firstOf(queue: Fifo<Work>): Work | undefined {
  for (;;) {
    const { first } = queue
    if (first === undefined || first.units.length > 0) return first
    queue.dropFirst()
  }
}
