// Who waits for what. A flush closes the period of calls before it and waits until that period and all earlier ones are
// over; so flushes may overlap and each still waits for everything called before it. Counts are per period and periods
// end in order, so that neither messages nor flushes are ever walked: a flush costs the same beside ten thousand others.

import type { FlushResult } from '../call/params.ts'
import { MAX_TIMER_MS } from '../timer-limit.ts'

export interface Period {
  /** Messages without an outcome. */
  pending: number
  /** Other things that a flush waits for: callbacks that still run, a spool that is still read. */
  busy: number
  delivered: number
  failed: number
  number: number
}

interface Waiting {
  /** The last period it waits for. */
  upTo: number
  resolve: () => void
}

export class FlushPeriods {
  /** Periods that are not over, oldest first; the last is the current one. */
  #open: Period[] = [emptyPeriod(0)]
  /** Sums of all periods before those. */
  #over = { delivered: 0, failed: 0 }
  /** Sums that resolved flushes have told. */
  #told = { delivered: 0, failed: 0 }
  /** In the order of their calls, and so of their periods. */
  #waiting: Waiting[] = []
  /** Those that do not wait for what is busy. */
  #waitingForMessages: Waiting[] = []
  #pending = 0

  /** The period that a call made now belongs to. */
  get current(): Period {
    return this.#open.at(-1) as Period
  }

  get pending(): number {
    return this.#pending
  }

  /** Whether a flush has been called since this period's calls. */
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

  /** A message that will have no outcome here: it is left to a later start. */
  leave(period: Period): void {
    period.pending--
    this.#pending--
    if (period.pending === 0) this.#advance()
  }

  /** Something else that a flush of this period waits for; call the function given when it is over. */
  occupy(period: Period): () => void {
    period.busy++
    return () => {
      period.busy--
      if (period.busy === 0) this.#advance()
    }
  }

  /**
   * Closes the current period and resolves when nothing called so far is on the way, or at the timeout. `forBusy` is
   * false for a flush that a callback calls: it would wait for that callback, and the callback for it.
   */
  close(timeoutMs: number | undefined, forBusy = true): Promise<FlushResult> {
    const upTo = this.#closeCurrent()
    const before = { ...this.#told }
    const report = (): FlushResult => {
      const sums = this.#sumsUpTo(upTo)
      this.#told.delivered = Math.max(this.#told.delivered, sums.delivered)
      this.#told.failed = Math.max(this.#told.failed, sums.failed)
      return { delivered: sums.delivered - before.delivered, failed: sums.failed - before.failed, pending: sums.pending }
    }
    if (this.#isOver(upTo, forBusy)) return Promise.resolve(report())
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

  /** Gives the number of the last period that has had calls. */
  #closeCurrent(): number {
    const { current } = this
    if (current.pending + current.busy + current.delivered + current.failed === 0) return current.number - 1
    this.#open.push(emptyPeriod(current.number + 1))
    this.#advance()
    return current.number
  }

  #isOver(upTo: number, forBusy: boolean): boolean {
    for (const period of this.#open) {
      if (period.number > upTo) return true
      if (period.pending > 0 || (forBusy && period.busy > 0)) return false
    }
    return true
  }

  #advance(): void {
    // The current period stays open, however little there is in it.
    while (this.#open.length > 1 && isOver(this.#open[0] as Period)) {
      const { delivered, failed } = this.#open.shift() as Period
      this.#over.delivered += delivered
      this.#over.failed += failed
      // Before the next period is added: a flush does not report calls that were made after it.
      const { number } = this.#open[0] as Period
      resolveWhile(this.#waiting, ({ upTo }) => upTo < number)
      resolveWhile(this.#waitingForMessages, ({ upTo }) => upTo < number)
    }
    resolveWhile(this.#waitingForMessages, ({ upTo }) => this.#isOver(upTo, false))
  }

  #sumsUpTo(number: number): FlushResult {
    const sums = { ...this.#over, pending: 0 }
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

function isOver(period: Period): boolean {
  return period.pending === 0 && period.busy === 0
}

function emptyPeriod(number: number): Period {
  return { pending: 0, busy: 0, delivered: 0, failed: 0, number }
}
