// How long a destination waits after code that ran into its limits. Such code may waste some CPU time at once, and then a share of a core, so
// that it does not keep a core busy. No single wait is longer than MAX_WAIT_MS: a message ends at most one second after its timeout.

/** Code that runs into its limits may use this much CPU time at once, and then this share of a core. */
const BURST_MS = 500
const SHARE = 0.1
/** With the 100 ms after which a blocked thread is killed, and the 100 ms that its owner may need to notice, a second. */
export const MAX_WAIT_MS = 800

export class OverrunDebt {
  /** CPU time that was wasted, less what the destination may waste since. */
  #ms = 0
  #atMs: number

  constructor(nowMs: number) {
    this.#atMs = nowMs
  }

  add(wastedMs: number, nowMs: number): void {
    const left = Math.max(0, this.#ms - (nowMs - this.#atMs) * SHARE)
    this.#ms = Math.min(left + wastedMs, BURST_MS + MAX_WAIT_MS * SHARE)
    this.#atMs = nowMs
  }

  /** When the next message may start. */
  get readyMs(): number {
    return this.#atMs + Math.max(0, this.#ms - BURST_MS) / SHARE
  }
}
