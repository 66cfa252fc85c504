// What a scrape reads from the store: the counts, which are exact and outlive the process. Kept for a moment, so that several
// scrapers, or one in a hurry, cost one reading; and waited for only so long, so that a store that hangs does not hang the
// scrape. While one reading is under way there is never a second.

import type { LedgerRow, OldestPending, RejectionRow, SourceCounts, Store } from '../store/store.ts'
import { withTimeout } from '../timing/with-timeout.ts'

export interface StoreCounts {
  ledger: LedgerRow[]
  oldest: OldestPending[]
  sources: SourceCounts[]
  rejections: RejectionRow[]
}

export type CountsStore = Pick<Store['books'], 'ledger' | 'oldestPending' | 'sourceCounts' | 'rejections'>

export interface StoreCountsOptions {
  /** How long a reading is good for. */
  keptMs?: number
  deadlineMs?: number
}

const KEPT_MS = 1_000
const DEADLINE_MS = 2_000

export class StoreCountsReader {
  readonly #store: CountsStore
  readonly #keptMs: number
  readonly #deadlineMs: number
  #reading: Promise<StoreCounts> | null = null
  #kept: { counts: StoreCounts; untilMs: number } | null = null

  constructor(store: CountsStore, { keptMs = KEPT_MS, deadlineMs = DEADLINE_MS }: StoreCountsOptions = {}) {
    this.#store = store
    this.#keptMs = keptMs
    this.#deadlineMs = deadlineMs
  }

  /** Null when the store cannot be read, or not in time. */
  async read(): Promise<StoreCounts | null> {
    if (this.#kept !== null && performance.now() < this.#kept.untilMs) return this.#kept.counts
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = null
    })
    return withTimeout(
      this.#deadlineMs,
      this.#reading.catch(() => null),
      null,
    )
  }

  async #readAll(): Promise<StoreCounts> {
    const store = this.#store
    const [ledger, oldest, sources, rejections] = await Promise.all([
      store.ledger(),
      store.oldestPending(),
      store.sourceCounts(),
      store.rejections(),
    ])
    const counts = { ledger, oldest, sources, rejections }
    this.#kept = { counts, untilMs: performance.now() + this.#keptMs }
    return counts
  }
}
