// From where on a destination's waiting rows are looked at. The index of waiting rows begins with rows that were taken already until the
// server has cleaned it, which it cannot while somebody looks at an old snapshot: passing over them again with every look would
// take longer and longer. So a look begins where the last one ended, and now and then at the front, where what was given back lies;
// the longer that took, the later again.

import { rowIdAt } from '../schema/ids.ts'

const FRONT = '0'
const FRONT_EVERY_MS = 2_000
/** Of the time that nodes have, no more than this part goes into looks from the front. */
const FRONT_SHARE = 0.02
/** But a look may take long because the server is slow, and what another node gave back is seen from the front alone. */
const FRONT_AT_LEAST_EVERY_MS = 30_000
/** What is new now is named later than this, whoever names it. */
const SKEW_MS = 60_000

interface Place {
  after: string
  frontAt: number
}

export class ScanPositions {
  readonly #scanPositions = new Map<string, Place>()
  readonly #serverMs: () => number
  readonly #now: () => number

  constructor(serverMs: () => number, now: () => number = () => performance.now()) {
    this.#serverMs = serverMs
    this.#now = now
  }

  /** Rows after this one are to be looked at; '0': all. */
  from(destinationId: string): string {
    const place = this.#scanPositions.get(destinationId)
    return place === undefined || place.frontAt <= this.#now() ? FRONT : place.after
  }

  /** A look from `from` came as far as `last`; null: it found nothing. */
  looked(destinationId: string, from: string, last: string | null, tookMs: number): void {
    const before = this.#scanPositions.get(destinationId)
    // forget() was called since this look began, so the look did not see the rows that were released.
    if (before === undefined && from !== FRONT) return
    // Nothing there: what comes from now on has a later name.
    const after = last ?? (from === FRONT ? rowIdAt(this.#serverMs() - SKEW_MS) : from)
    const frontAt = from === FRONT || before === undefined ? this.#now() + pauseAfter(tookMs) : before.frontAt
    this.#scanPositions.set(destinationId, { after, frontAt })
  }

  /** Something may have been given back: the next look begins at the front. */
  forget(destinationId: string): void {
    this.#scanPositions.delete(destinationId)
  }

  clear(): void {
    this.#scanPositions.clear()
  }
}

function pauseAfter(tookMs: number): number {
  return Math.min(FRONT_AT_LEAST_EVERY_MS, Math.max(FRONT_EVERY_MS, tookMs / FRONT_SHARE))
}
