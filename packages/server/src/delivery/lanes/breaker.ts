// The circuit breaker of a destination. It opens after a run of failures without a success; then one probe at a time is sent, at growing
// intervals. A success closes it. The number of requests allowed in flight then grows from two with every success, so that the backlog
// does not overload a receiver that has just recovered. Reports from other nodes count too. If another node reports that the receiver
// fails, the breaker opens without failures of its own and leaves most of the probing to one node. If another node reports that the
// receiver has recovered, the breaker closes.
// Pure except for its own state.

import type { BreakerState } from '../events/events.ts'

/** `failedOften`: a failure in a run that has reached FAILURES_TO_OPEN. */
export type BreakerEvent = 'started' | 'succeeded' | 'failed' | 'failedOften' | 'withdrawn' | 'reset' | 'peerFailing' | 'peerRecovered'

type Next = Readonly<Record<BreakerEvent, BreakerState>>

const AFTER_OPEN: Next = {
  started: 'probing',
  succeeded: 'closed',
  failed: 'open',
  failedOften: 'open',
  withdrawn: 'open',
  reset: 'closed',
  peerFailing: 'open',
  peerRecovered: 'closed',
}

/** The table is total: a missing state or event is a compile error. */
export const TRANSITIONS: Readonly<Record<BreakerState, Next>> = {
  closed: {
    started: 'closed',
    succeeded: 'closed',
    failed: 'closed',
    failedOften: 'open',
    withdrawn: 'closed',
    reset: 'closed',
    peerFailing: 'open',
    peerRecovered: 'closed',
  },
  open: AFTER_OPEN,
  probing: { ...AFTER_OPEN, peerFailing: 'probing' },
}

/** Large enough that a brief disturbance of a healthy receiver does not open the breaker. */
export const FAILURES_TO_OPEN = 10
export const FIRST_PROBE_MS = 2_000
export const MAX_PROBE_MS = 60_000
export const RAMP_START = 2
/** A node ignores reports of failures for this long after a success of its own. */
export const TRUST_OWN_SUCCESS_MS = 5_000
/** Multiplies the probe interval of a node while another node probes too, so that many nodes together send little more than one would. */
export const PEER_PROBE_FACTOR = 4

const REPORT_CLOSED_MS = 10_000
/** The maximum age of a report. A reported failure may be older than stated by this much, so it may precede a success on this node. */
const PEER_REPORT_AGE_MS = 2_000

/** What other nodes report about the receiver. */
export interface PeerReport {
  /** Milliseconds until the next probe by a node that saw failures itself (the latest if there are several); null if there is no such node. */
  openForMs: number | null
  /** How long ago a request of one of those nodes last failed. */
  failedAgoMs: number
  /** How long ago a node saw the receiver recover; null if not recently. */
  closedAgoMs: number | null
}

export class Breaker {
  readonly #random: () => number
  #state: BreakerState = 'closed'
  #failures = 0
  #probes = 0
  #probeAtMs = 0
  #ramp = Number.POSITIVE_INFINITY
  #succeededAtMs = Number.NEGATIVE_INFINITY
  #failedAtMs = Number.NEGATIVE_INFINITY
  /** When a report from another node last opened the breaker. */
  #openedByPeerAtMs = Number.NEGATIVE_INFINITY
  #closedAtMs = Number.NEGATIVE_INFINITY
  #openedAtMs = Number.NEGATIVE_INFINITY
  #probeFactor = 1

  constructor(random: () => number) {
    this.#random = random
  }

  get state(): BreakerState {
    return this.#state
  }

  /** When the next probe may be sent; null while closed. */
  get probeAtMs(): number | null {
    return this.#state === 'closed' ? null : this.#probeAtMs
  }

  /** When the breaker left the closed state; null while closed. */
  get openSinceMs(): number | null {
    return this.#state === 'closed' ? null : this.#openedAtMs
  }

  /** How many requests may be in flight now. */
  allowance(nowMs: number, maxInFlight: number): number {
    if (maxInFlight === 0) return 0
    switch (this.#state) {
      case 'closed':
        return Math.min(maxInFlight, this.#ramp)
      case 'open':
        return nowMs >= this.#probeAtMs ? 1 : 0
      case 'probing':
        return 1
    }
  }

  started(): void {
    this.#on('started')
  }

  succeeded(maxInFlight: number, nowMs: number): void {
    this.#succeededAtMs = nowMs
    if (this.#state !== 'closed') {
      this.#ramp = RAMP_START
      this.#closedAtMs = nowMs
    } else if (this.#ramp < maxInFlight) this.#ramp++
    else this.#ramp = Number.POSITIVE_INFINITY
    this.#failures = 0
    this.#probes = 0
    this.#on('succeeded')
  }

  failed(nowMs: number): void {
    this.#failures++
    this.#failedAtMs = nowMs
    const before = this.#state
    this.#on(this.#failures >= FAILURES_TO_OPEN ? 'failedOften' : 'failed')
    if (before === 'closed') this.#openedAtMs = nowMs
    // Requests that were in flight when the breaker opened fail too, but are not probes.
    if (before !== 'open' && this.#state === 'open') {
      const stepMs = Math.min(FIRST_PROBE_MS * 2 ** this.#probes, MAX_PROBE_MS)
      this.#probeIn(stepMs * this.#probeFactor, nowMs)
      this.#probes++
    }
  }

  /** `isFirst`: whether this is the one node that probes at the normal rate while other nodes probe too. */
  onPeerReport({ openForMs, failedAgoMs, closedAgoMs }: PeerReport, isFirst: boolean, nowMs: number): void {
    this.#probeFactor = isFirst || openForMs === null ? 1 : PEER_PROBE_FACTOR
    if (this.#state === 'closed') {
      const failedAtMs = nowMs - failedAgoMs - PEER_REPORT_AGE_MS
      if (openForMs === null || nowMs - this.#succeededAtMs < TRUST_OWN_SUCCESS_MS || failedAtMs <= this.#succeededAtMs) return
      this.#openedByPeerAtMs = nowMs
      this.#openedAtMs = nowMs
      this.#probes = 1
      this.#probeIn(Math.max(openForMs, FIRST_PROBE_MS) * this.#probeFactor, nowMs)
      this.#on('peerFailing')
    } else if (closedAgoMs !== null && nowMs - closedAgoMs > Math.max(this.#failedAtMs, this.#openedByPeerAtMs)) {
      this.#succeededAtMs = nowMs - closedAgoMs
      this.#failures = 0
      this.#probes = 0
      this.#ramp = RAMP_START
      this.#on('peerRecovered')
    }
  }

  /** The report to other nodes. It contains only what this node observed itself, not what others reported. */
  report(nowMs: number): PeerReport {
    const closedAgoMs = nowMs - this.#closedAtMs
    return {
      openForMs: this.#state === 'closed' || this.#failures === 0 ? null : Math.max(0, this.#probeAtMs - nowMs),
      failedAgoMs: nowMs - this.#failedAtMs,
      closedAgoMs: this.#state === 'closed' && closedAgoMs < REPORT_CLOSED_MS ? closedAgoMs : null,
    }
  }

  /** The request was aborted by this node, so it says nothing about the receiver. */
  withdrawn(): void {
    this.#on('withdrawn')
  }

  /** Called when the URLs change, because the destination is then a different receiver. */
  reset(): void {
    this.#failures = 0
    this.#probes = 0
    this.#ramp = Number.POSITIVE_INFINITY
    this.#on('reset')
  }

  /** Allows a probe at once, for example because somebody knows that the receiver works again. */
  probeNow(nowMs: number): void {
    if (this.#state === 'open') this.#probeAtMs = nowMs
  }

  #probeIn(stepMs: number, nowMs: number): void {
    this.#probeAtMs = Math.ceil(nowMs + stepMs * (0.75 + this.#random() * 0.5))
  }

  #on(event: BreakerEvent): void {
    this.#state = TRANSITIONS[this.#state][event]
  }
}
