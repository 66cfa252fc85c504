// The row port of the books.

import type { Awaitable } from '../encoding/row-port.ts'
import type { LedgerRow, OldestPending, QuarantinedCount, RejectionRow, SourceCounts, StatQuery } from '../port/books.ts'

export interface BookRows {
  /** The ids of all destinations that are not deleted, oldest first. */
  destinations(): Awaitable<readonly string[]>
  /** Has a row for each destination that ever had a delivery. */
  ledger(): Awaitable<readonly LedgerRow[]>
  recount(): Awaitable<readonly LedgerRow[]>
  /** When the oldest pending delivery was created, for those of these destinations that have one. */
  oldestOf(destinationIds: readonly string[]): Awaitable<readonly OldestPending[]>
  /** The most recent rejection first. */
  rejections(): Awaitable<RejectionRow[]>
  sourceCounts(): Awaitable<SourceCounts[]>
  recountQuarantined(): Awaitable<QuarantinedCount[]>
  /** Counts per minute or per hour, ordered by subject and time. */
  stats(
    query: Omit<StatQuery, 'subject'>,
    subjects: readonly string[],
    step: number,
  ): Awaitable<readonly { subject: string; at: number; doc: string }[]>
}

/** The rows that an inspection of the whole store reads, from one snapshot. */
export interface InspectedRows extends Pick<BookRows, 'ledger' | 'recount' | 'sourceCounts' | 'recountQuarantined'> {
  /** False if an earlier version of the service wrote the store. It is inspected as it is. */
  hasQuarantine(): Awaitable<boolean>
  /** The problems that the database itself finds in its files or its schema. */
  problems(): Awaitable<string[]>
  oldestMessageAtMs(): Awaitable<number | null>
  /** All texts that may contain encrypted secrets. */
  textsWithSecrets(): Awaitable<readonly string[]>
  storedBytes(): Awaitable<number>
}
