// Decides whether requests may be sent to the destination now, and how many. This depends on whether it is enabled and not paused, on its
// breaker, on the receiver's Retry-After, and on this node's share of the limit. The gate neither sends nor holds shipments: when they may
// no longer be sent, the lane releases them.

import { mostInFlight } from '../../destinations/kinds.ts'
import type { OrderKey } from '../../model/order/order-key.ts'
import type { DeliveryStore, Destination } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { DeliveryEvents } from '../events/events.ts'
import type { UnitOutcome } from '../shipments/part-record.ts'
import { Breaker, type PeerReport } from './breaker.ts'

export interface GateDeps {
  store: Pick<DeliveryStore, 'share'>
  clock: Pick<Clock, 'scheduleMs'>
  random: () => number
  events: Pick<DeliveryEvents, 'breaker'>
  /** Returns the current version of the destination. */
  destination: () => Destination
  /** Why this node holds the deliveries of a destination; see Hold. */
  holdOf: (destination: Destination) => Hold | null
  /** Called when new work can no longer be sent: the lane is to release the shipments that it has not started. */
  onBlocked: () => void
}

/**
 * A reason of this node for which nothing is sent, although the destination is enabled and not paused. Deliveries stay pending, and other nodes may
 * send them. `problem` is a sentence; null while the node still finds out whether there is one.
 */
export interface Hold {
  problem: string | null
}

export class Gate {
  readonly #deps: GateDeps
  /** Told directly when a request was started, and when one ended without a result that says anything about the receiver. */
  readonly breaker: Breaker
  #pausedUntilMs = 0
  /** The keys of ordered requests that have failed since the last success. */
  readonly #failedKeys = new Set<OrderKey>()
  #stopped = false

  constructor(deps: GateDeps) {
    this.#deps = deps
    this.breaker = new Breaker(deps.random)
  }

  // ── What may be sent ──

  get isStopped(): boolean {
    return this.#stopped
  }

  /** Nothing is sent until the destination is changed, or the reason of this node is gone. */
  get isHeld(): boolean {
    return this.#stopped || !this.maySend
  }

  get maySend(): boolean {
    const { enabled, paused } = this.#deps.destination()
    return enabled && !paused && this.hold === null
  }

  get hold(): Hold | null {
    return this.#deps.holdOf(this.#deps.destination())
  }

  /** The breaker is not closed, so one request at a time is sent. */
  get onlyProbes(): boolean {
    return this.breaker.state !== 'closed'
  }

  /** This node's share of the destination's limit of requests in flight. */
  get share(): number {
    const destination = this.#deps.destination()
    return this.#deps.store.share(destination.id, mostInFlight(destination))
  }

  /** How many requests may be in flight now. */
  allowance(nowMs: number): number {
    return nowMs < this.#pausedUntilMs ? 0 : this.breaker.allowance(nowMs, this.share)
  }

  /** Whether new work could not be sent now and would only take up memory. */
  isBlocked(nowMs: number): boolean {
    return this.isHeld || this.onlyProbes || nowMs < this.#pausedUntilMs || this.share === 0
  }

  /** The end of the time in which Retry-After or the circuit breaker forbids requests. It is in the past if neither does. */
  get blockedUntilMs(): number {
    return Math.max(this.#pausedUntilMs, this.breaker.state === 'open' ? (this.breaker.probeAtMs ?? 0) : 0)
  }

  mayProbe(nowMs: number): boolean {
    return !this.isHeld && this.breaker.state === 'open' && nowMs >= this.blockedUntilMs
  }

  // ── Reports about the receiver ──

  succeeded(): void {
    this.#failedKeys.clear()
    this.#change(() => this.breaker.succeeded(this.share, this.#deps.clock.scheduleMs()))
  }

  /** Judges the receiver by the results of all URLs. `key`: that of all messages of an ordered request. */
  judge(results: readonly UnitOutcome[], key: OrderKey | null = null): void {
    const hasFailed =
      results.every(({ outcome }) => outcome.verdict !== 'success') && results.some(({ outcome }) => outcome.verdict === 'temporary')
    // A permanent rejection of this message comes from a receiver that works.
    if (hasFailed) this.#failed(results, key)
    else this.succeeded()
  }

  /** What other nodes found out about the receiver. */
  onPeerReport(report: PeerReport, isFirst: boolean): void {
    this.#change(() => {
      const before = this.breaker.state
      this.breaker.onPeerReport(report, isFirst, this.#deps.clock.scheduleMs())
      if (before === 'closed' && this.onlyProbes) this.#deps.onBlocked()
    })
  }

  /** Called when the URLs change, because then it is another receiver. */
  reset(): void {
    this.#change(() => this.breaker.reset())
    this.#pausedUntilMs = 0
  }

  /** Ends a pause that Retry-After or the circuit breaker has caused. If the next request fails, it begins again. */
  retryNow(): void {
    this.#pausedUntilMs = 0
    this.breaker.probeNow(this.#deps.clock.scheduleMs())
  }

  stop(): void {
    this.#stopped = true
  }

  #failed(results: readonly UnitOutcome[], key: OrderKey | null): void {
    const { clock, destination, onBlocked } = this.#deps
    const now = clock.scheduleMs()
    this.#change(() => {
      // A key that fails again and again says something about the key, not about the receiver.
      if (key !== null && !this.onlyProbes && this.#failedKeys.has(key)) this.breaker.withdrawn()
      else this.breaker.failed(now)
      if (key !== null) this.#failedKeys.add(key)
      for (const { outcome } of results) {
        if (outcome.retryAfterMs === null || outcome.verdict !== 'temporary') continue
        if (key !== null && outcome.status !== 429 && outcome.status !== 503) continue
        this.#pausedUntilMs = Math.max(this.#pausedUntilMs, now + Math.min(outcome.retryAfterMs, destination().retryWindowMs))
      }
      if (this.isBlocked(now)) onBlocked()
    })
  }

  /** Makes a change, and emits an event if it opened or closed the breaker. */
  #change(make: () => void): void {
    const before = this.breaker.state
    make()
    const after = this.breaker.state
    if ((before === 'closed') !== (after === 'closed')) this.#deps.events.breaker(this.#deps.destination(), after)
  }
}
