// Wakes a lane when only time has to pass: until a pause ends, the breaker allows its next probe, a failed claim may be made again, a
// retry is due, or the retry window of deliveries ends. No timer is needed for events that call the lane themselves: the end of
// an attempt, a free slot, a response of the store.

import type { Destination } from '../../store/store.ts'
import type { CancelTimer, SetTimer } from '../../timing/timers.ts'
import { type Backlog, earlier } from '../recording/backlog.ts'
import type { Claiming } from './claiming.ts'
import type { CrowdedCheck } from './crowded-check.ts'
import type { ExpiryCheck } from './expiry-check.ts'
import type { Gate } from './gate.ts'
import type { OrderedWaiting } from './queues/ordered-waiting.ts'
import type { SendQueue } from './queues/send-queue.ts'

export interface ScheduleDeps {
  setTimer: SetTimer
  gate: Pick<Gate, 'isHeld' | 'isBlocked' | 'blockedUntilMs' | 'share'>
  claiming: Pick<Claiming, 'notBeforeMs'>
  backlog: Pick<Backlog, 'hasFresh' | 'hasDueRetries' | 'nextRetryAtMs'>
  queue: Pick<SendQueue, 'hasFresh' | 'hasRetries'>
  ordered: Pick<OrderedWaiting, 'hasMore' | 'nextAtMs' | 'hasHead' | 'hasClaimed'>
  expiryCheck: Pick<ExpiryCheck, 'checkIfDue'>
  crowdedCheck: Pick<CrowdedCheck, 'checkIfDue'>
  /** When new messages are loaded into a warehouse; null if that is not known, or they need not wait. */
  loadAtMs: () => number | null
  /** Wakes the lane. */
  wake: () => void
}

/** The longest delay of the timer. Waking the lane early is harmless, because it checks what is due. */
const MAX_TIMER_MS = 60_000

export class Schedule {
  readonly #deps: ScheduleDeps
  #cancel: CancelTimer | null = null
  /** When the timer fires: at the earliest of the times that it was set to. */
  #atMs = Number.POSITIVE_INFINITY

  constructor(deps: ScheduleDeps) {
    this.#deps = deps
  }

  /** Sets the timer that wakes the lane next. */
  set(destination: Destination, nowMs: number): void {
    const { gate, claiming, backlog, expiryCheck, crowdedCheck } = this.#deps
    if (gate.isHeld) return
    const notBeforeMs = Math.max(gate.blockedUntilMs, claiming.notBeforeMs)
    if (notBeforeMs > nowMs && this.#isWaiting(nowMs)) this.#wakeAt(notBeforeMs, nowMs)
    const { nextAtMs, hasHead, hasClaimed } = this.#deps.ordered
    if (nextAtMs !== null && nextAtMs > nowMs) this.#wakeAt(Math.max(nextAtMs, notBeforeMs), nowMs)
    if (hasHead && destination.order?.onFailure === 'skip' && !gate.isBlocked(nowMs))
      this.#wakeAt(crowdedCheck.checkIfDue(destination, nowMs), nowMs)
    const { nextRetryAtMs } = backlog
    if (nextRetryAtMs === null && destination.order == null && !hasClaimed) return
    if (nextRetryAtMs !== null && nextRetryAtMs > nowMs) this.#wakeAt(Math.max(nextRetryAtMs, notBeforeMs), nowMs)
    // A node without a share of the destination leaves expiry to the nodes that send.
    if (gate.share > 0 && gate.isBlocked(nowMs)) this.#wakeAt(expiryCheck.checkIfDue(destination, nowMs), nowMs)
  }

  /** The time of the next attempt of this node; null if nothing is waiting, or if nothing may be sent until the destination or the share is changed. */
  nextAttemptAtMs(nowMs: number): number | null {
    const { gate, backlog, ordered, loadAtMs } = this.#deps
    // A node without a share of the destination sends nothing, and does not know what others have sent.
    if (gate.isHeld || gate.share === 0) return null
    const freshAtMs = backlog.hasFresh ? (loadAtMs() ?? nowMs) : null
    const dueAtMs = this.#isReady(nowMs) ? nowMs : earlier(freshAtMs, backlog.nextRetryAtMs ?? ordered.nextAtMs)
    return dueAtMs === null ? null : Math.max(dueAtMs, gate.blockedUntilMs, nowMs)
  }

  cancel(): void {
    this.#cancel?.()
  }

  #wakeAt(atMs: number, nowMs: number): void {
    if (this.#atMs <= atMs) return
    this.#cancel?.()
    const delayMs = Math.min(Math.max(atMs - nowMs, 1), MAX_TIMER_MS)
    this.#atMs = nowMs + delayMs
    this.#cancel = this.#deps.setTimer(() => {
      this.#atMs = Number.POSITIVE_INFINITY
      this.#deps.wake()
    }, delayMs)
  }

  /** Whether there is work that could be sent if the gate allowed it. */
  #isWaiting(nowMs: number): boolean {
    return this.#deps.backlog.hasFresh || this.#isReady(nowMs)
  }

  /** Whether there is such work besides new messages in the store. */
  #isReady(nowMs: number): boolean {
    const { backlog, queue, ordered } = this.#deps
    return ordered.hasMore || backlog.hasDueRetries(nowMs) || queue.hasFresh || queue.hasRetries
  }
}
