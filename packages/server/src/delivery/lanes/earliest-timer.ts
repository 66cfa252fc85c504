// One timer for several points in time: it fires at the earliest of those that it was set to.

import type { CancelTimer, SetTimer } from '../../timing/timers.ts'

/** The longest delay of the timer. Firing early is harmless, because the callback checks what is due. */
const MAX_TIMER_MS = 60_000

export class EarliestTimer {
  readonly #setTimer: SetTimer
  readonly #fire: () => void
  #cancel: CancelTimer | null = null
  #atMs = Number.POSITIVE_INFINITY

  constructor(setTimer: SetTimer, fire: () => void) {
    this.#setTimer = setTimer
    this.#fire = fire
  }

  set(atMs: number, nowMs: number): void {
    if (this.#atMs <= atMs) return
    this.#cancel?.()
    const delayMs = Math.min(Math.max(atMs - nowMs, 1), MAX_TIMER_MS)
    this.#atMs = nowMs + delayMs
    this.#cancel = this.#setTimer(() => {
      this.#atMs = Number.POSITIVE_INFINITY
      this.#fire()
    }, delayMs)
  }

  cancel(): void {
    this.#cancel?.()
  }
}
