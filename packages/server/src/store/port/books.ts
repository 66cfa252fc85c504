// The books are the counts that the store keeps: the ledger (the number of deliveries of each destination, by state), counts of messages
// per source, and counts over time.

export interface LedgerRow {
  destinationId: string
  owed: number
  delivered: number
  pending: number
  failed: number
  expired: number
  cancelled: number
}

export interface RejectionRow {
  sourceId: string | null
  code: string
  count: number
  lastAtMs: number
  lastSample: string
}

export interface SourceCounts {
  sourceId: string
  accepted: number
  duplicates: number
  rejected: number
  suppressed: number
  /** Accepted messages that are in quarantine now, that were released from it, and that were deleted from it. */
  quarantined: number
  released: number
  deleted: number
}

/** The number of messages of a source that are in quarantine. */
export type QuarantinedCount = Pick<SourceCounts, 'sourceId' | 'quarantined'>

export interface OldestPending {
  destinationId: string
  atMs: number
  /** When the first attempt for any of the pending deliveries was made, in schedule time; null if none was attempted. The first retry window began then. */
  firstAttemptAtMs: number | null
}

export type StatKind = 'source' | 'destination' | 'all'

/** Counts to add to a minute. The names of counts are defined in stat-counts.ts. */
export interface StatRow {
  kind: StatKind
  /** The id of the source or destination; empty if `kind` is 'all'. */
  subject: string
  /** Any time within the minute. */
  atMs: number
  counts: Readonly<Record<string, number>>
}

export interface StatQuery {
  kind: StatKind
  subject: string
  /** `fromMs` and `toMs` are multiples of the step. `toMs` is exclusive. */
  fromMs: number
  toMs: number
  /** A multiple of a minute. Multiples of an hour reach further back, because counts per hour are kept for longer. */
  stepMs: number
}

export interface StatPoint {
  /** The start of the step, which is a multiple of `stepMs`. */
  atMs: number
  counts: Record<string, number>
}

/** The result of an inspection of the whole store, from one snapshot. */
export interface StoreInspection {
  /** The problems that the database found in its own files. Empty if they are intact. If there are any, nothing else was inspected. */
  problems: string[]
  ledger: LedgerRow[]
  /** The same counts, computed from the rows. Must be equal to `ledger`. */
  recount: LedgerRow[]
  /** The number of messages in quarantine by the counts of the sources, and computed from the rows. Sources without any may be missing. */
  quarantined: QuarantinedCount[]
  quarantineRecount: QuarantinedCount[]
  oldestMessageAtMs: number | null
  /** The ids of the keys with which stored secrets are encrypted: see secret-box.ts. */
  secretKeyIds: string[]
  storedBytes: number
}

export interface BooksStore {
  ledger(): Promise<LedgerRow[]>
  /** The same counts, computed from the rows. */
  recount(): Promise<LedgerRow[]>
  /** Undefined if no delivery is pending. */
  oldestPendingOf(destinationId: string): Promise<OldestPending | undefined>
  /** The same for every destination that has pending deliveries, in one query. */
  oldestPending(): Promise<OldestPending[]>
  /** Reads the whole store without blocking other work. Returns undefined if it is not complete by the deadline. */
  inspect(deadlineMs: number): Promise<StoreInspection | undefined>
  rejections(): Promise<RejectionRow[]>
  sourceCounts(): Promise<SourceCounts[]>
  /** The messages that are in quarantine, computed from the rows. Sources without any are left out. */
  recountQuarantined(): Promise<QuarantinedCount[]>
  /** Adds to the stored counts. Rejects with StoreUnavailable if nothing was added. */
  addStats(rows: readonly StatRow[]): Promise<void>
  /** The steps that have counts, ordered by time. */
  stats(query: StatQuery): Promise<StatPoint[]>
  /** The same for several subjects, in one query. Subjects without counts are left out. */
  statsOf(query: Omit<StatQuery, 'subject'> & { subjects: readonly string[] }): Promise<{ subject: string; points: StatPoint[] }[]>
}
