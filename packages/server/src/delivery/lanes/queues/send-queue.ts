// The tasks that wait in memory to be sent: first attempts and retries, each in order. Each kind gets half of the requests allowed in
// flight, and all of them while the other kind has nothing waiting.

import type { Task } from '../../shipments/task.ts'
import { Fifo } from './fifo.ts'

export class SendQueue {
  readonly #fresh = new Fifo<Task>()
  readonly #retries = new Fifo<Task>()
  #retryLast = false

  get hasFresh(): boolean {
    return firstOf(this.#fresh) !== undefined
  }

  get hasRetries(): boolean {
    return firstOf(this.#retries) !== undefined
  }

  push(task: Task): void {
    ;(task.retry ? this.#retries : this.#fresh).push(task)
  }

  clear(): void {
    this.#fresh.clear()
    this.#retries.clear()
  }

  next(allowed: number, inFlightRetries: number): Task | undefined {
    const fresh = firstOf(this.#fresh)
    const retry = firstOf(this.#retries)
    if (fresh === undefined || retry === undefined) return fresh ?? retry
    this.#retryLast = allowed === 1 ? !this.#retryLast : inFlightRetries < Math.floor(allowed / 2)
    return this.#retryLast ? retry : fresh
  }
}

/** The first task that has units left. All units of a task may have been purged while it waited. */
function firstOf(queue: Fifo<Task>): Task | undefined {
  for (;;) {
    const { first } = queue
    if (first === undefined || first.units.length > 0) return first
    queue.dropFirst()
  }
}
