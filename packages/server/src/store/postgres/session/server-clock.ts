// The server's clock, as far as it is known here: by answers that say what time it was there between the question and the answer. The
// quickest of them knows it best, and is believed until a later one is as exact, or shows that a clock was set.

/** How much less is known of a clock with every millisecond. Those of computers are wrong by a tenth of it. */
const DRIFT = 0.000_5

export class ServerClock {
  #offsetMs = 0
  /** Off by no more than this when it was learnt. */
  #errorMs = Number.POSITIVE_INFINITY
  #learntAt = 0

  nowMs(): number {
    return this.#offsetMs + performance.now()
  }

  /** Asked and answered by performance.now(). */
  learn(serverMs: number, askedAt: number, answeredAt: number): void {
    const offsetMs = serverMs - (askedAt + answeredAt) / 2
    const errorMs = (answeredAt - askedAt) / 2
    const knownErrorMs = this.#errorMs + (answeredAt - this.#learntAt) * DRIFT
    const isImpossible = Math.abs(offsetMs - this.#offsetMs) > errorMs + knownErrorMs
    if (errorMs > knownErrorMs && !isImpossible) return
    this.#offsetMs = offsetMs
    this.#errorMs = errorMs
    this.#learntAt = answeredAt
  }
}
