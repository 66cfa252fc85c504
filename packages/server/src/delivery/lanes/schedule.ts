// Wakes a lane when only time has to pass: until a pause ends, the breaker allows its next probe, a failed claim may be made again, a
// retry is due, or the retry window of deliveries ends. No timer is needed for events that call the lane themselves: the end of
// an attempt, a free slot, an answer of the store.

import type { Destination } from '../../store/store.ts'
import { Alarm } from './alarm.ts'
import type { Backlog } from './backlog.ts'
import type { Claiming } from './claiming.ts'
import type { Gate } from './gate.ts'
import type { Overdue } from './overdue.ts'
import type { SetTimer } from './timers.ts'
import type { Waiting } from './waiting.ts'

export interface ScheduleDeps {
  setTimer: SetTimer
  gate: Pick<Gate, 'isHeld' | 'isBlocked' | 'blockedUntilMs' | 'share'>
  claiming: Pick<Claiming, 'notBeforeMs'>
  backlog: Pick<Backlog, 'hasFresh' | 'hasDueRetries' | 'nextRetryAtMs'>
  waiting: Pick<Waiting, 'hasFresh' | 'hasRetries'>
  overdue: Pick<Overdue, 'look'>
  /** Wakes the lane. */
  look: () => void
}

export class Schedule {
  readonly #deps: ScheduleDeps
  readonly #alarm: Alarm

  constructor(deps: ScheduleDeps) {
    this.#deps = deps
    this.#alarm = new Alarm(deps.setTimer, deps.look)
  }

  /** Sets the timer that wakes the lane next. */
  set(destination: Destination, nowMs: number): void {
    const { gate, claiming, backlog, overdue } = this.#deps
    if (gate.isHeld) return
    const notBeforeMs = Math.max(gate.blockedUntilMs, claiming.notBeforeMs)
    if (notBeforeMs > nowMs && this.#isWaiting(nowMs)) this.#alarm.set(notBeforeMs, nowMs)
    const { nextRetryAtMs } = backlog
    if (nextRetryAtMs === null) return
    if (nextRetryAtMs > nowMs) this.#alarm.set(Math.max(nextRetryAtMs, notBeforeMs), nowMs)
    // A node without a share of the destination leaves that to those that send.
    if (gate.share > 0 && gate.isBlocked(nowMs)) this.#alarm.set(overdue.look(destination, nowMs), nowMs)
  }

  /** The time of the next attempt; null if nothing is waiting, or if nothing may be sent until the destination is changed. */
  nextAttemptAtMs(nowMs: number): number | null {
    const { gate, backlog } = this.#deps
    const dueAtMs = gate.isHeld ? null : this.#isWaiting(nowMs) ? nowMs : backlog.nextRetryAtMs
    return dueAtMs === null ? null : Math.max(dueAtMs, gate.blockedUntilMs, nowMs)
  }

  cancel(): void {
    this.#alarm.cancel()
  }

  /** Whether there is something that could be sent, were it allowed. */
  #isWaiting(nowMs: number): boolean {
    const { backlog, waiting } = this.#deps
    return backlog.hasFresh || backlog.hasDueRetries(nowMs) || waiting.hasFresh || waiting.hasRetries
  }
}
