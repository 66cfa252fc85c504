// Estimates the server's clock from answers that contain the server's time. The estimate is exact to half of the round trip, so the
// answer with the shortest one is used until a later answer is as exact, or shows that a clock was set.

/** How much the uncertainty grows per millisecond. Real clocks drift by about a tenth of this. */
const DRIFT = 0.000_5

export class ServerClock {
  #offsetMs = 0
  /** The largest possible error at the time of the measurement. */
  #errorMs = Number.POSITIVE_INFINITY
  #measuredAt = 0

  nowMs(): number {
    return this.#offsetMs + performance.now()
  }

  /** `askedAt` and `answeredAt` are values of performance.now(). */
  learn(serverMs: number, askedAt: number, answeredAt: number): void {
    const offsetMs = serverMs - (askedAt + answeredAt) / 2
    const errorMs = (answeredAt - askedAt) / 2
    const knownErrorMs = this.#errorMs + (answeredAt - this.#measuredAt) * DRIFT
    const isImpossible = Math.abs(offsetMs - this.#offsetMs) > errorMs + knownErrorMs
    if (errorMs > knownErrorMs && !isImpossible) return
    this.#offsetMs = offsetMs
    this.#errorMs = errorMs
    this.#measuredAt = answeredAt
  }
}
