// The rows of the books, as an adapter gives them.

import type { Awaitable } from '../encoding/row-port.ts'
import type { LedgerRow, OldestPending, RejectionRow, SourceCounts, StatQuery } from '../port/books.ts'

export interface BookRows {
  /** The ids of all destinations that are not deleted, oldest first. */
  destinations(): Awaitable<readonly string[]>
  /** Of destinations that were ever owed something. */
  ledger(): Awaitable<readonly LedgerRow[]>
  recount(): Awaitable<readonly LedgerRow[]>
  /** When the oldest delivery that is pending came to be owed; of those of these destinations that have any. */
  oldestOf(destinationIds: readonly string[]): Awaitable<readonly OldestPending[]>
  /** The one that was refused last comes first. */
  rejections(): Awaitable<RejectionRow[]>
  sourceCounts(): Awaitable<SourceCounts[]>
  /** Counts by the minute or by the hour, in the order of their time. */
  stats(query: StatQuery, step: number): Awaitable<readonly { at: number; doc: string }[]>
}

/** All rows of one moment, for a look at everything that is stored. */
export interface InspectedRows extends Pick<BookRows, 'ledger' | 'recount'> {
  /** What the database has against its own files or its schema. */
  problems(): Awaitable<string[]>
  oldestMessageAtMs(): Awaitable<number | null>
  /** Everything that may hold a secret that is encrypted. */
  textsWithSecrets(): Awaitable<readonly string[]>
  storedBytes(): Awaitable<number>
}
