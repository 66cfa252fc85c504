// How old message keys are, by the time that the service has run. The clock cannot say: at a restart it may have been set, by days,
// and keys that look old to it are minutes old. What is measured by running time alone is remembered for the time asked for at
// least, and longer by the time that the service was down, which does no harm. Once an hour it is noted how far the segments had
// come; what lies before a note that is old enough is old.

import { msOfRowId, rowIdAt } from './ids.ts'

const NOTE_EVERY_MS = 3_600_000

export const KEY_AGE_SETTING = 'key_age'

interface Ages {
  /** How long the service has run, in all. */
  ranMs: number
  /** Oldest first: how long it had run when this was the newest segment. */
  notes: [ranMs: number, newest: number][]
}

export class KeyAge {
  readonly #keptMs: number
  readonly #now: () => number
  readonly #ages: Ages
  #countedAt: number

  /** `stored` is what `mark` gave before. Without it, from a version before this, the segments' own times have to do. */
  constructor(stored: string | undefined, newestSegment: number, keptMs: number, now: () => number = () => performance.now()) {
    this.#keptMs = keptMs
    this.#now = now
    this.#countedAt = now()
    this.#ages = stored === undefined ? agesBy(newestSegment, keptMs) : (JSON.parse(stored) as Ages)
  }

  /** Segments up to this one are old enough to be forgotten. */
  get oldUpTo(): number {
    this.#count()
    let upTo = 0
    for (const [ranMs, newest] of this.#ages.notes) if (this.#isOld(ranMs)) upTo = newest
    return upTo
  }

  /** To be stored now and then: what was not stored did not pass, for the next start. */
  mark(newestSegment: number): string {
    this.#count()
    const { notes, ranMs } = this.#ages
    if (ranMs - (notes.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY) >= NOTE_EVERY_MS) notes.push([ranMs, newestSegment])
    while (notes.length > 1 && this.#isOld((notes[1] as Ages['notes'][number])[0])) notes.shift()
    return JSON.stringify(this.#ages)
  }

  #isOld(ranMs: number): boolean {
    return this.#ages.ranMs - ranMs >= this.#keptMs
  }

  #count(): void {
    const now = this.#now()
    this.#ages.ranMs += now - this.#countedAt
    this.#countedAt = now
  }
}

function agesBy(newestSegment: number, keptMs: number): Ages {
  const before = msOfRowId(newestSegment) - keptMs
  return { ranMs: keptMs, notes: before > 0 ? [[0, rowIdAt(before)]] : [] }
}
