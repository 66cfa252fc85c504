// Reads the counts for a scrape from the store, where they are exact and survive a restart. The result is cached for a second, so that
// several scrapers, or a frequent one, cause one read. A deadline keeps a store that hangs from blocking the scrape. There is never
// more than one read at a time.

import type { LedgerRow, OldestPending, OrderCountsRow, RejectionRow, SourceCounts, Store } from '../store/store.ts'
import { singleFlight } from '../timing/single-flight.ts'
import { withTimeout } from '../timing/with-timeout.ts'

export interface StoreCounts {
  ledger: LedgerRow[]
  oldest: OldestPending[]
  sources: SourceCounts[]
  rejections: RejectionRow[]
  /** Null if they could not be read in time: with very many keys that wait, it takes longer than the rest. */
  order: OrderCountsRow[] | null
}

export interface CountsStore {
  books: Pick<Store['books'], 'ledger' | 'oldestPending' | 'sourceCounts' | 'rejections'>
  order: Pick<Store['order'], 'allCounts'>
}

export interface StoreCountsOptions {
  /** How long a result is cached. */
  cacheMs?: number
  deadlineMs?: number
}

const CACHE_MS = 1_000
const DEADLINE_MS = 2_000

/** Returns a function that reads the counts. It returns null if the store cannot be read before the deadline. */
export function createStoreCounts(
  { books, order }: CountsStore,
  { cacheMs = CACHE_MS, deadlineMs = DEADLINE_MS }: StoreCountsOptions = {},
) {
  let cached: { counts: StoreCounts; untilMs: number } | null = null
  const readOrder = singleFlight(() => order.allCounts())
  const readAll = singleFlight(async (): Promise<StoreCounts> => {
    const [ledger, oldest, sources, rejections, keys] = await Promise.all([
      books.ledger(),
      books.oldestPending(),
      books.sourceCounts(),
      books.rejections(),
      withTimeout(
        deadlineMs / 2,
        readOrder().catch(() => null),
        null,
      ),
    ])
    const counts = { ledger, oldest, sources, rejections, order: keys }
    cached = { counts, untilMs: performance.now() + cacheMs }
    return counts
  })
  return async (): Promise<StoreCounts | null> => {
    if (cached !== null && performance.now() < cached.untilMs) return cached.counts
    return withTimeout(
      deadlineMs,
      readAll().catch(() => null),
      null,
    )
  }
}
