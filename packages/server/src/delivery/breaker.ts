// Whether and how much a destination may be tried. After a run of failures with no success it opens: one probe at a time,
// further and further apart. A success closes it, and what may be in flight at once then grows with every success from
// two, so that a receiver that has just come back is not knocked over by what had piled up. Pure but for its own state.

export type BreakerState = 'closed' | 'open' | 'probing'

/** A run long enough not to be one bad moment of a receiver that is otherwise well. */
const FAILURES_TO_OPEN = 10
const FIRST_PROBE_MS = 2_000
const MAX_PROBE_MS = 60_000
const RAMP_START = 2

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
    if (this.#state === 'open') this.#state = 'probing'
  }

  succeeded(maxInFlight: number): void {
    if (this.#state !== 'closed') this.#ramp = RAMP_START
    else if (this.#ramp < maxInFlight) this.#ramp++
    else this.#ramp = Number.POSITIVE_INFINITY
    this.#state = 'closed'
    this.#failures = 0
    this.#probes = 0
  }

  /** True when this failure has opened it. */
  failed(nowMs: number): boolean {
    this.#failures++
    if (this.#state === 'closed' && this.#failures < FAILURES_TO_OPEN) return false
    const opened = this.#state === 'closed'
    // What was in flight when it opened fails too, and is no probe.
    if (opened || this.#state === 'probing') {
      const stepMs = Math.min(FIRST_PROBE_MS * 2 ** this.#probes, MAX_PROBE_MS)
      this.#probeAtMs = nowMs + stepMs * (0.75 + this.#random() * 0.5)
      this.#probes++
    }
    this.#state = 'open'
    return opened
  }

  /** The probe said nothing about the receiver: it was stopped from our side, or there was nothing to send. */
  withdrawn(): void {
    if (this.#state === 'probing') this.#state = 'open'
  }

  /** A destination with other URLs is another receiver. */
  reset(): void {
    this.#state = 'closed'
    this.#failures = 0
    this.#probes = 0
    this.#ramp = Number.POSITIVE_INFINITY
  }
}
