// Destinations that may have made a host crash or hang. If several had work in it, it is unknown which one it was: from then on, all of them run in a
// separate host, one at a time, until each has repeated what it had in flight. The one that makes the host end while it runs alone is the culprit, and
// stays in the separate host for a while. So a destination loses at most one attempt because of another.
// Pure except for its own state.

import type { Outcome } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'

interface Suspect {
  untilMs: number
  /** The number of messages that it has yet to repeat; infinite for a culprit. */
  toRepeat: number
}

/** Longer than the longest pause between two attempts by default, so a message that makes hosts crash is retried in the separate host, too. */
export const ISOLATED_MS = 15 * 60_000

export class Suspects {
  readonly #now: () => number
  readonly #byId = new Map<string, Suspect>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** A host was lost with this work in flight. Returns the destinations to isolate, and whether there is only one, which is the culprit. */
  lost(work: readonly Pick<Work, 'destination' | 'messages'>[]): { isolated: string[]; isKnown: boolean } {
    const messages = new Map<string, number>()
    for (const { destination, messages: own } of work) messages.set(destination.id, (messages.get(destination.id) ?? 0) + own.length)
    const isolated = [...messages.keys()]
    const isKnown = isolated.length === 1
    for (const [id, count] of messages) {
      const toRepeat = isKnown ? Number.POSITIVE_INFINITY : Math.max(count, this.#byId.get(id)?.toRepeat ?? 0)
      this.#byId.set(id, { untilMs: this.#now() + ISOLATED_MS, toRepeat })
    }
    return { isolated, isKnown }
  }

  /** Whether the destination has to run in the separate host. */
  has(destinationId: string): boolean {
    const suspect = this.#byId.get(destinationId)
    if (suspect === undefined) return false
    if (this.#now() < suspect.untilMs) return true
    this.#byId.delete(destinationId)
    return false
  }

  /** Work of a destination has ended, and its host has not. */
  survived({ destination, attempt, messages }: Pick<Work, 'destination' | 'attempt' | 'messages'>, outcome: Outcome | null): void {
    const suspect = this.#byId.get(destination.id)
    // New messages say nothing about those that were in flight.
    if (suspect === undefined || attempt === 1 || outcome?.reason === 'aborted') return
    suspect.toRepeat -= messages.length
    if (suspect.toRepeat <= 0) this.#byId.delete(destination.id)
  }

  forget(destinationId: string): void {
    this.#byId.delete(destinationId)
  }
}
