// Determines what each flush waits for. A flush closes the current period of calls and waits until that period and all earlier
// ones are complete. So flushes may overlap, and each waits for all calls made before it. Counts are kept per period and periods
// complete in order, so no list of messages or flushes is scanned: ten thousand waiting flushes do not make another one slower.

import type { FlushResult } from '../call/params.ts'
import { MAX_TIMER_MS } from '../timer-limit.ts'

export interface Period {
  /** Messages without an outcome. */
  pending: number
  /** Number of other things that a flush waits for: running callbacks and plugins, and the recovery of the spool. */
  busy: number
  delivered: number
  failed: number
  number: number
}

interface Waiting {
  /** Number of the last period that the flush waits for. */
  upTo: number
  resolve: () => void
}

export class FlushPeriods {
  /** Periods that are not complete, oldest first; the last is the current one. */
  #open: Period[] = [emptyPeriod(0)]
  /** Sums of all completed periods. */
  #completed = { delivered: 0, failed: 0 }
  /** Sums that earlier flushes have reported. */
  #reported = { delivered: 0, failed: 0 }
  /** Waiting flushes, in the order of their calls and therefore of their periods. */
  #waiting: Waiting[] = []
  /** Waiting flushes that wait only for messages, and not for `busy`. */
  #waitingForMessages: Waiting[] = []
  #pending = 0

  /** The period that a call made now belongs to. */
  get current(): Period {
    return this.#open.at(-1) as Period
  }

  get pending(): number {
    return this.#pending
  }

  /** Whether a flush has closed this period. */
  isClosed(period: Period): boolean {
    return period !== this.current
  }

  begin(period: Period, count = 1): void {
    period.pending += count
    this.#pending += count
  }

  end(period: Period, delivered: number, failed: number): void {
    period.pending -= delivered + failed
    period.delivered += delivered
    period.failed += failed
    this.#pending -= delivered + failed
    if (period.pending === 0) this.#advance()
  }

  /** Removes a message without an outcome: it stays in the spool, and the next start delivers it. */
  leave(period: Period): void {
    period.pending--
    this.#pending--
    if (period.pending === 0) this.#advance()
  }

  /** Makes flushes of this period wait until the returned function is called. */
  occupy(period: Period): () => void {
    period.busy++
    return () => {
      period.busy--
      if (period.busy === 0) this.#advance()
    }
  }

  /**
   * Closes the current period. Resolves when no message of a call made so far is pending, or at the timeout. `forBusy` is
   * false for a flush that a callback calls, because flush and callback would wait for each other.
   */
  close(timeoutMs: number | undefined, forBusy = true): Promise<FlushResult> {
    const upTo = this.#closeCurrent()
    const before = { ...this.#reported }
    const report = (): FlushResult => {
      const sums = this.#sumsUpTo(upTo)
      this.#reported.delivered = Math.max(this.#reported.delivered, sums.delivered)
      this.#reported.failed = Math.max(this.#reported.failed, sums.failed)
      const stored = sums.delivered - before.delivered
      return withFormerName({ stored, failed: sums.failed - before.failed, pending: sums.pending })
    }
    if (this.#isComplete(upTo, forBusy)) return Promise.resolve(report())
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined
      const waiting: Waiting = {
        upTo,
        resolve: () => {
          clearTimeout(timer)
          resolve(report())
        },
      }
      const queue = forBusy ? this.#waiting : this.#waitingForMessages
      queue.push(waiting)
      if (timeoutMs === undefined || Number.isNaN(timeoutMs)) return
      const giveUp = (): void => {
        queue.splice(queue.indexOf(waiting), 1)
        waiting.resolve()
      }
      timer = setTimeout(giveUp, Math.min(timeoutMs, MAX_TIMER_MS))
    })
  }

  /** Closes the current period unless it is empty. Returns the number of the last period that has had calls. */
  #closeCurrent(): number {
    const { current } = this
    if (current.pending + current.busy + current.delivered + current.failed === 0) return current.number - 1
    this.#open.push(emptyPeriod(current.number + 1))
    this.#advance()
    return current.number
  }

  #isComplete(upTo: number, forBusy: boolean): boolean {
    for (const period of this.#open) {
      if (period.number > upTo) return true
      if (period.pending > 0 || (forBusy && period.busy > 0)) return false
    }
    return true
  }

  #advance(): void {
    // The current period stays open, even if nothing in it is pending.
    while (this.#open.length > 1 && isComplete(this.#open[0] as Period)) {
      const { delivered, failed } = this.#open.shift() as Period
      this.#completed.delivered += delivered
      this.#completed.failed += failed
      // Resolve before the sums of the next period are added, so that a flush does not report later calls.
      const { number } = this.#open[0] as Period
      resolveWhile(this.#waiting, ({ upTo }) => upTo < number)
      resolveWhile(this.#waitingForMessages, ({ upTo }) => upTo < number)
    }
    resolveWhile(this.#waitingForMessages, ({ upTo }) => this.#isComplete(upTo, false))
  }

  #sumsUpTo(number: number): Pick<Period, 'delivered' | 'failed' | 'pending'> {
    const sums = { ...this.#completed, pending: 0 }
    for (const period of this.#open) {
      if (period.number > number) break
      sums.delivered += period.delivered
      sums.failed += period.failed
      sums.pending += period.pending
    }
    return sums
  }
}

function resolveWhile(queue: Waiting[], isDue: (waiting: Waiting) => boolean): void {
  while (queue[0] && isDue(queue[0])) queue.shift()?.resolve()
}

function isComplete(period: Period): boolean {
  return period.pending === 0 && period.busy === 0
}

function emptyPeriod(number: number): Period {
  return { pending: 0, busy: 0, delivered: 0, failed: 0, number }
}

/** Adds the former name of `stored`. Not enumerable, so that a printed result does not claim that destinations have the messages. */
export function withFormerName<Counts extends { stored: number }>(counts: Counts): Counts & { readonly delivered: number } {
  return Object.defineProperty(counts, 'delivered', { value: counts.stored }) as Counts & { readonly delivered: number }
}
