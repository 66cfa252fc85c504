// Runs the work of one destination at a time. What was there when its turn began is run; what comes later waits for the next turn if others wait.

import { failure } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'

export class Turns {
  readonly #run: (work: Work) => void
  #current: string | null = null
  #running = 0
  #waiting: Work[] = []

  constructor(run: (work: Work) => void) {
    this.#run = run
  }

  start(work: Work): void {
    const isTurn = this.#current === null || (this.#current === work.destination.id && this.#waiting.length === 0)
    if (isTurn) this.#begin(work)
    else this.#waiting.push(work)
  }

  /** Has to be called when work that was run has ended. */
  ended(): void {
    this.#running--
    if (this.#running > 0) return
    this.#current = null
    const next = this.#waiting[0]?.destination.id
    if (next === undefined) return
    const begun = this.#waiting.filter(({ destination }) => destination.id === next)
    this.#waiting = this.#waiting.filter(({ destination }) => destination.id !== next)
    for (const work of begun) this.#begin(work)
  }

  /** Ends the work that waits as `aborted`: that of one destination, or all. */
  recall(destinationId: string | null = null): void {
    const recalled = this.#waiting.filter(({ destination }) => destinationId === null || destination.id === destinationId)
    this.#waiting = this.#waiting.filter((work) => !recalled.includes(work))
    for (const work of recalled) {
      queueMicrotask(() => {
        for (const url of work.urls) work.answered(url, failure('aborted'), 0)
      })
    }
  }

  #begin(work: Work): void {
    this.#current = work.destination.id
    this.#running++
    this.#run(work)
  }
}
