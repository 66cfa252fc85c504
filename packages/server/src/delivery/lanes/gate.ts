// Whether the destination may be sent to now, and how much: whether it is switched on, what its breaker says, how long the receiver
// asked us to wait, and this node's share of the limit. Sends and holds nothing; what is no longer allowed is handed back by the lane.

import type { DeliveryStore, Destination } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { DeliveryEvents } from '../events.ts'
import type { UnitOutcome } from '../shipments/work.ts'
import { Breaker, type BreakerState, type Heard } from './breaker.ts'

export interface GateDeps {
  store: Pick<DeliveryStore, 'share'>
  clock: Pick<Clock, 'scheduleMs'>
  random: () => number
  events: Pick<DeliveryEvents, 'breaker'>
  /** As it is now. */
  destination: () => Destination
  /** New work has become of no use: what has not been started is to be handed back. */
  blocked: () => void
}

export class Gate {
  readonly #deps: GateDeps
  readonly #breaker: Breaker
  #pausedUntilMs = 0
  #stopped = false

  constructor(deps: GateDeps) {
    this.#deps = deps
    this.#breaker = new Breaker(deps.random)
  }

  // ── What may go ──

  get isStopped(): boolean {
    return this.#stopped
  }

  /** Nothing is sent until somebody changes the destination. */
  get isHeld(): boolean {
    return this.#stopped || !maySend(this.#deps.destination())
  }

  /** The breaker is not closed: one request at a time. */
  get onlyProbes(): boolean {
    return this.#breaker.state !== 'closed'
  }

  /** What may be in flight from this node, of what may be in flight from all. */
  get share(): number {
    const { id, maxInFlight } = this.#deps.destination()
    return this.#deps.store.share(id, maxInFlight)
  }

  /** How many requests may be in flight now. */
  allowance(nowMs: number): number {
    return nowMs < this.#pausedUntilMs ? 0 : this.#breaker.allowance(nowMs, this.share)
  }

  /** Whether new work is of no use now: it would lie in memory. */
  isBlocked(nowMs: number): boolean {
    return this.isHeld || this.onlyProbes || nowMs < this.#pausedUntilMs || this.share === 0
  }

  /** Until when the receiver's pause and the breaker allow nothing; in the past when they do. */
  get blockedUntilMs(): number {
    return Math.max(this.#pausedUntilMs, this.#breaker.state === 'open' ? (this.#breaker.probeAtMs ?? 0) : 0)
  }

  mayProbe(nowMs: number): boolean {
    return !this.isHeld && this.#breaker.state === 'open' && nowMs >= this.blockedUntilMs
  }

  get breaker(): BreakerState {
    return this.#breaker.state
  }

  get openSinceMs(): number | null {
    return this.#breaker.openSinceMs
  }

  /** For other nodes: see heard(). */
  get news(): Heard {
    return this.#breaker.news(this.#deps.clock.scheduleMs())
  }

  // ── What it learns ──

  started(): void {
    this.#breaker.started()
  }

  /** The request said nothing about the receiver. */
  withdrawn(): void {
    this.#breaker.withdrawn()
  }

  succeeded(): void {
    this.#change(() => this.#breaker.succeeded(this.share, this.#deps.clock.scheduleMs()))
  }

  /** What the answers of all URLs say about the receiver. */
  judge(results: readonly UnitOutcome[]): void {
    const hasFailed =
      results.every(({ outcome }) => outcome.verdict !== 'success') && results.some(({ outcome }) => outcome.verdict === 'temporary')
    // An answer that refuses this message for good comes from a receiver that is alive.
    if (hasFailed) this.#failed(results)
    else this.succeeded()
  }

  /** What other nodes found out about the receiver. */
  heard(heard: Heard, isFirst: boolean): void {
    this.#change(() => {
      const before = this.#breaker.state
      this.#breaker.heard(heard, isFirst, this.#deps.clock.scheduleMs())
      if (before === 'closed' && this.onlyProbes) this.#deps.blocked()
    })
  }

  /** Other URLs are another receiver. */
  reset(): void {
    this.#change(() => this.#breaker.reset())
    this.#pausedUntilMs = 0
  }

  stop(): void {
    this.#stopped = true
  }

  #failed(results: readonly UnitOutcome[]): void {
    const { clock, destination, blocked } = this.#deps
    const now = clock.scheduleMs()
    this.#change(() => {
      this.#breaker.failed(now)
      for (const { outcome } of results) {
        if (outcome.retryAfterMs === null) continue
        this.#pausedUntilMs = Math.max(this.#pausedUntilMs, now + Math.min(outcome.retryAfterMs, destination().retryWindowMs))
      }
      if (this.isBlocked(now)) blocked()
    })
  }

  /** Makes a change that may open or close the breaker, and tells of it. */
  #change(make: () => void): void {
    const before = this.#breaker.state
    make()
    const after = this.#breaker.state
    if ((before === 'closed') !== (after === 'closed')) this.#deps.events.breaker(this.#deps.destination(), after)
  }
}

export function maySend({ enabled, paused }: Destination): boolean {
  return enabled && !paused
}
