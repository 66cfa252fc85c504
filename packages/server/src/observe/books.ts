// What a scrape reads from the store: the books, which are exact and outlive the process. Kept for a moment, so that several
// scrapers, or one in a hurry, cost one reading; and waited for only so long, so that a store that hangs does not hang the
// scrape. While one reading is under way there is never a second.

import type { LedgerRow, OldestPending, RejectionRow, SourceCounts, Store } from '../store/store.ts'
import { within } from '../timing/within.ts'

export interface Books {
  ledger: LedgerRow[]
  oldest: OldestPending[]
  sources: SourceCounts[]
  rejections: RejectionRow[]
}

export type BookStore = Pick<Store['books'], 'ledger' | 'oldestPending' | 'sourceCounts' | 'rejections'>

export interface BooksOptions {
  /** How long a reading is good for. */
  keptMs?: number
  deadlineMs?: number
}

const KEPT_MS = 1_000
const DEADLINE_MS = 2_000

export class BookReader {
  readonly #store: BookStore
  readonly #keptMs: number
  readonly #deadlineMs: number
  #reading: Promise<Books> | null = null
  #kept: { books: Books; untilMs: number } | null = null

  constructor(store: BookStore, { keptMs = KEPT_MS, deadlineMs = DEADLINE_MS }: BooksOptions = {}) {
    this.#store = store
    this.#keptMs = keptMs
    this.#deadlineMs = deadlineMs
  }

  /** Null when the store cannot be read, or not in time. */
  async read(): Promise<Books | null> {
    if (this.#kept !== null && performance.now() < this.#kept.untilMs) return this.#kept.books
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = null
    })
    return within(
      this.#deadlineMs,
      this.#reading.catch(() => null),
      null,
    )
  }

  async #readAll(): Promise<Books> {
    const store = this.#store
    const [ledger, oldest, sources, rejections] = await Promise.all([
      store.ledger(),
      store.oldestPending(),
      store.sourceCounts(),
      store.rejections(),
    ])
    const books = { ledger, oldest, sources, rejections }
    this.#kept = { books, untilMs: performance.now() + this.#keptMs }
    return books
  }
}
