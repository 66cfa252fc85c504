// The time that a stop may take, shared by its steps. The limit of a step is counted from the beginning of the stop, so the whole stop stays
// within its limit however many steps are late. A step that is late goes on until the process ends, but nothing waits for it any longer.

import { withTimeout } from './with-timeout.ts'

export class StopBudget {
  readonly #beganAt = performance.now()
  readonly #unfinished: string[] = []
  readonly #errors: unknown[] = []

  /** The steps that were late, in the words of the log. */
  get unfinished(): readonly string[] {
    return this.#unfinished
  }

  /** What steps rejected with. The other steps ran anyway. */
  get errors(): readonly unknown[] {
    return this.#errors
  }

  /** The time until the stop has taken `limitMs`. */
  leftMs(limitMs: number): number {
    return Math.max(0, this.#beganAt + limitMs - performance.now())
  }

  /** Waits for a step until the stop has taken `limitMs`. A step that resolves with false was late by its own account. */
  async wait(step: string, limitMs: number, ended: Promise<unknown>): Promise<void> {
    try {
      if ((await withTimeout(this.leftMs(limitMs), ended, false)) === false) this.#unfinished.push(step)
    } catch (error) {
      this.#errors.push(error)
    }
  }
}
