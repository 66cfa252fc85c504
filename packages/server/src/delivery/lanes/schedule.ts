// When a lane has to look again for what time alone brings: the end of a pause, the breaker's next probe, a claim after one that
// failed, a retry that becomes due, deliveries that run out of their window. An attempt that ends, a slot that becomes free and an
// answer of the store each lead to the lane by themselves, and have no timer.

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
  /** It is time to look again. */
  look: () => void
}

export class Schedule {
  readonly #deps: ScheduleDeps
  readonly #alarm: Alarm

  constructor(deps: ScheduleDeps) {
    this.#deps = deps
    this.#alarm = new Alarm(deps.setTimer, deps.look)
  }

  /** Has the lane look again in time. */
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

  /** When something is tried next; null when nothing waits, or nothing may be sent until somebody changes the destination. */
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
