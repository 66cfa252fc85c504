// The age of message keys, measured by how long the service has run. The clock cannot be used: between two starts it may have been changed by
// days, so keys that look old by the clock may be minutes old. By running time, keys are kept for at least the deduplication time, plus the
// downtime of the service, which does no harm. Once an hour the newest segment is recorded; segments up to a record that is old enough are
// old.

import { msOfRowId, rowIdAt } from '../schema/row-ids.ts'

const NOTE_EVERY_MS = 3_600_000

export const KEY_AGE_SETTING = 'key_age'

interface Ages {
  /** How long the service has run in total. */
  ranMs: number
  /** Oldest first: how long the service had run when `newest` was the newest segment. */
  notes: [ranMs: number, newest: number][]
}

export class KeyAge {
  readonly #keptMs: number
  readonly #now: () => number
  readonly #ages: Ages
  #countedAt: number

  /** `stored` is an earlier result of `mark`. Stores of earlier versions have none; then the times of the segments are used. */
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

  /** The state as JSON, which must be stored regularly. The next start does not count running time that was not stored. */
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
