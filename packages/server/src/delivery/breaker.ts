// Whether and how much a destination may be tried. After a run of failures with no success it opens: one probe at a time,
// further and further apart. A success closes it, and what may be in flight at once then grows with every success from
// two, so that a receiver that has just come back is not knocked over by what had piled up. Pure but for its own state.

export type BreakerState = 'closed' | 'open' | 'probing'

/** `failedOften`: a failure that makes the run long enough. */
export type BreakerEvent = 'started' | 'succeeded' | 'failed' | 'failedOften' | 'withdrawn' | 'reset'

/** Total: a state or an event without an answer does not compile. */
export const TRANSITIONS: Readonly<Record<BreakerState, Readonly<Record<BreakerEvent, BreakerState>>>> = {
  closed: { started: 'closed', succeeded: 'closed', failed: 'closed', failedOften: 'open', withdrawn: 'closed', reset: 'closed' },
  open: { started: 'probing', succeeded: 'closed', failed: 'open', failedOften: 'open', withdrawn: 'open', reset: 'closed' },
  probing: { started: 'probing', succeeded: 'closed', failed: 'open', failedOften: 'open', withdrawn: 'open', reset: 'closed' },
}

/** A run long enough not to be one bad moment of a receiver that is otherwise well. */
export const FAILURES_TO_OPEN = 10
export const FIRST_PROBE_MS = 2_000
export const MAX_PROBE_MS = 60_000
export const RAMP_START = 2

export class Breaker {
  readonly #random: () => number
  #state: BreakerState = 'closed'
  #failures = 0
  #probes = 0
  #probeAtMs = 0
  #ramp = Number.POSITIVE_INFINITY

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

  /** How many requests may be in flight now. */
  allowance(nowMs: number, maxInFlight: number): number {
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

  succeeded(maxInFlight: number): void {
    if (this.#state !== 'closed') this.#ramp = RAMP_START
    else if (this.#ramp < maxInFlight) this.#ramp++
    else this.#ramp = Number.POSITIVE_INFINITY
    this.#failures = 0
    this.#probes = 0
    this.#on('succeeded')
  }

  failed(nowMs: number): void {
    this.#failures++
    const before = this.#state
    this.#on(this.#failures >= FAILURES_TO_OPEN ? 'failedOften' : 'failed')
    // What was in flight when it opened fails too, and is no probe.
    if (before !== 'open' && this.#state === 'open') {
      const stepMs = Math.min(FIRST_PROBE_MS * 2 ** this.#probes, MAX_PROBE_MS)
      this.#probeAtMs = Math.ceil(nowMs + stepMs * (0.75 + this.#random() * 0.5))
      this.#probes++
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

  #on(event: BreakerEvent): void {
    this.#state = TRANSITIONS[this.#state][event]
  }
}
