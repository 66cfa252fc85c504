// Who waits for what. A flush closes the period of calls before it and waits until that period and all earlier ones
// have no message left on the way; so flushes may overlap and each still waits for everything called before it.
// Counts are per period: a message is one increment and one decrement, and there is no list of messages to walk.

import type { FlushResult } from '../call/params.ts'
import { MAX_TIMER_MS } from '../timer-limit.ts'

export interface Period {
  pending: number
  delivered: number
  failed: number
  /** What earlier flushes have reported of this period, so that no message is reported as new twice. */
  reportedDelivered: number
  reportedFailed: number
}

export class FlushPeriods {
  #current = emptyPeriod()
  /** Closed periods with messages on the way or results that no flush has reported. */
  #closed: Period[] = []
  readonly #waiting = new Set<() => void>()
  #pending = 0

  /** The period that a call made now belongs to. */
  get current(): Period {
    return this.#current
  }

  get pending(): number {
    return this.#pending
  }

  /** Whether a flush has been called since this period's calls. */
  isClosed(period: Period): boolean {
    return period !== this.#current
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
    if (period.pending === 0) for (const check of this.#waiting) check()
  }

  /** Takes back a begin that was no message. */
  drop(period: Period): void {
    period.pending--
    this.#pending--
  }

  /** Closes the current period and resolves when nothing called so far is on the way, or at the timeout. */
  close(timeoutMs: number | undefined): Promise<FlushResult> {
    if (this.#current.pending + this.#current.delivered + this.#current.failed > 0) {
      this.#closed.push(this.#current)
      this.#current = emptyPeriod()
    }
    const covered = this.#closed.map((period) => ({ period, delivered: period.reportedDelivered, failed: period.reportedFailed }))
    const report = (): FlushResult => {
      const result = { delivered: 0, failed: 0, pending: 0 }
      for (const { period, delivered, failed } of covered) {
        result.delivered += period.delivered - delivered
        result.failed += period.failed - failed
        result.pending += period.pending
        period.reportedDelivered = period.delivered
        period.reportedFailed = period.failed
      }
      this.#closed = this.#closed.filter(
        (period) => period.pending > 0 || period.delivered > period.reportedDelivered || period.failed > period.reportedFailed,
      )
      return result
    }
    const isDone = (): boolean => covered.every(({ period }) => period.pending === 0)
    if (isDone()) return Promise.resolve(report())
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined
      const finish = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(check)
        resolve(report())
      }
      const check = (): void => {
        if (isDone()) finish()
      }
      this.#waiting.add(check)
      if (timeoutMs !== undefined && !Number.isNaN(timeoutMs)) timer = setTimeout(finish, Math.min(timeoutMs, MAX_TIMER_MS))
    })
  }
}

function emptyPeriod(): Period {
  return { pending: 0, delivered: 0, failed: 0, reportedDelivered: 0, reportedFailed: 0 }
}
