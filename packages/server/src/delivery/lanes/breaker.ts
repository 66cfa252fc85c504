// Whether and how much a destination may be tried. After a run of failures with no success it opens: one probe at a time,
// further and further apart. A success closes it, and what may be in flight at once then grows with every success from
// two, so that a receiver that has just come back is not knocked over by what had piled up. What other nodes found out counts:
// one that hears of a failing receiver opens without failures of its own, leaves most of the probing to the first of them, and
// closes when one of them found it well again.
// Pure but for its own state.

export type BreakerState = 'closed' | 'open' | 'probing'

/** `failedOften`: a failure that makes the run long enough. */
export type BreakerEvent = 'started' | 'succeeded' | 'failed' | 'failedOften' | 'withdrawn' | 'reset' | 'peerFailing' | 'peerRecovered'

/** Total: a state or an event without an answer does not compile. */
export const TRANSITIONS: Readonly<Record<BreakerState, Readonly<Record<BreakerEvent, BreakerState>>>> = {
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
  open: {
    started: 'probing',
    succeeded: 'closed',
    failed: 'open',
    failedOften: 'open',
    withdrawn: 'open',
    reset: 'closed',
    peerFailing: 'open',
    peerRecovered: 'closed',
  },
  probing: {
    started: 'probing',
    succeeded: 'closed',
    failed: 'open',
    failedOften: 'open',
    withdrawn: 'open',
    reset: 'closed',
    peerFailing: 'probing',
    peerRecovered: 'closed',
  },
}

/** A run long enough not to be one bad moment of a receiver that is otherwise well. */
export const FAILURES_TO_OPEN = 10
export const FIRST_PROBE_MS = 2_000
export const MAX_PROBE_MS = 60_000
export const RAMP_START = 2
/** A node that has had a success so lately believes that, and not what another says. */
export const TRUST_OWN_SUCCESS_MS = 5_000
/** How much further apart the probes of a node are while another probes as well: so much that many nodes ask little more than one. */
export const PEER_PROBE_FACTOR = 4

const REPORT_CLOSED_MS = 10_000
/** What another tells may be so old: what it calls new may have been before what happened here. */
const PEER_REPORT_AGE_MS = 2_000

/** What other nodes say of the receiver. */
export interface PeerReport {
  /** In how many milliseconds it is probed by those that found it failing themselves; null: none is open for that reason. */
  openForMs: number | null
  /** How long ago one of those last had a request fail. */
  failedAgoMs: number
  /** How long ago one of them found it well again; null: not lately. */
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
  /** When it last failed, and when it was last opened for what others said. */
  #failedAtMs = Number.NEGATIVE_INFINITY
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

  /** When the next probe may be made; null while closed. */
  get probeAtMs(): number | null {
    return this.#state === 'closed' ? null : this.#probeAtMs
  }

  /** Since when it is not closed; null while it is. */
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
    // What was in flight when it opened fails too, and is no probe.
    if (before !== 'open' && this.#state === 'open') {
      const stepMs = Math.min(FIRST_PROBE_MS * 2 ** this.#probes, MAX_PROBE_MS)
      this.#probeIn(stepMs * this.#probeFactor, nowMs)
      this.#probes++
    }
  }

  /** `isFirst`: of the nodes that may send to it, the one that probes as if it were alone. */
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

  /** What other nodes may hear of it: what this one found out itself, and not what it heard. */
  report(nowMs: number): PeerReport {
    const closedAgoMs = nowMs - this.#closedAtMs
    return {
      openForMs: this.#state === 'closed' || this.#failures === 0 ? null : Math.max(0, this.#probeAtMs - nowMs),
      failedAgoMs: nowMs - this.#failedAtMs,
      closedAgoMs: this.#state === 'closed' && closedAgoMs < REPORT_CLOSED_MS ? closedAgoMs : null,
    }
  }

  /** The request said nothing about the receiver: it was stopped from our side. */
  withdrawn(): void {
    this.#on('withdrawn')
  }

  /** A destination with other URLs is another receiver. */
  reset(): void {
    this.#failures = 0
    this.#probes = 0
    this.#ramp = Number.POSITIVE_INFINITY
    this.#on('reset')
  }

  #probeIn(stepMs: number, nowMs: number): void {
    this.#probeAtMs = Math.ceil(nowMs + stepMs * (0.75 + this.#random() * 0.5))
  }

  #on(event: BreakerEvent): void {
    this.#state = TRANSITIONS[this.#state][event]
  }
}
