// Which messages a list of deliveries is asked for, where it is asked for a user or an event: the rows of deliveries do not
// say, so their segments are looked at, each once. A user is known from the keys, and most bodies are not read.

import { type Seed, sourceSeed, userHash } from '../../encoding/fingerprint.ts'
import { candidates } from '../../encoding/segment-keys.ts'
import { chosenIn, isOfMessages, MessageBudget } from '../../history/message-budget.ts'
import type { DeliveryFilter } from '../../store.ts'
import type { Rows, SegmentRow } from './rows.ts'

const NONE: ReadonlySet<number> = new Set()

export class MessageChoice {
  readonly #rows: Rows
  readonly #filter: DeliveryFilter
  readonly #budget = new MessageBudget()
  readonly #chosen = new Map<number, ReadonlySet<number>>()

  private constructor(rows: Rows, filter: DeliveryFilter) {
    this.#rows = rows
    this.#filter = filter
  }

  /** Undefined when every message is meant. */
  static of(rows: Rows, filter: DeliveryFilter): MessageChoice | undefined {
    return isOfMessages(filter) ? new MessageChoice(rows, filter) : undefined
  }

  /** Then the page is over, with what it has. */
  get isSpent(): boolean {
    return this.#budget.isSpent
  }

  has(segment: number, index: number): boolean {
    let chosen = this.#chosen.get(segment)
    if (chosen === undefined) {
      chosen = this.#look(segment)
      this.#chosen.set(segment, chosen)
    }
    return chosen.has(index)
  }

  #look(segment: number): ReadonlySet<number> {
    const { userId } = this.#filter
    let possible: number[] | undefined
    if (userId !== undefined) {
      const row = this.#rows.get('SELECT source, keys FROM segments WHERE seq = ?', segment) as
        | Pick<SegmentRow, 'source' | 'keys'>
        | undefined
      this.#budget.spend(row?.keys.length ?? 0)
      if (row === undefined) return NONE
      possible = candidates(row.keys, new Set([this.#userHash(row.source, userId)]))
      if (possible.length === 0) return NONE
    }
    const row = this.#rows.segment(segment)
    this.#budget.spend(row?.body.length ?? 0)
    return row === undefined ? NONE : chosenIn(this.#rows.contentOf(row), this.#filter, possible)
  }

  #userHash(source: number, userId: string): number {
    let hash = this.#hashes.get(source)
    if (hash === undefined) {
      this.#seed ??= JSON.parse(this.#rows.setting('dedup_seed') as string) as Seed
      hash = userHash(userId, sourceSeed(this.#rows.sources.id(source), this.#seed))
      this.#hashes.set(source, hash)
    }
    return hash
  }
  readonly #hashes = new Map<number, number>()
  #seed: Seed | undefined
}
