// The books: the ledger (the deliveries of each destination, by state), counts of messages per source, and counts over time.

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
}

export interface OldestPending {
  destinationId: string
  atMs: number
}

export type StatKind = 'source' | 'destination' | 'all'

/** Counts to be added to a minute: names as in stat-counts.ts. */
export interface StatRow {
  kind: StatKind
  /** The id of the source or destination; empty for all together. */
  subject: string
  /** Within the minute. */
  atMs: number
  counts: Readonly<Record<string, number>>
}

export interface StatQuery {
  kind: StatKind
  subject: string
  /** Multiples of the step; `toMs` itself is not asked for. */
  fromMs: number
  toMs: number
  /** Whole minutes, or whole hours: those are kept for longer. */
  stepMs: number
}

export interface StatPoint {
  /** Where the step begins: a multiple of it. */
  atMs: number
  counts: Record<string, number>
}

/** A look at everything that is stored, all of it at one moment. */
export interface StoreInspection {
  /** What the database has against its own files; empty when they are whole. With any, nothing else was looked at. */
  problems: string[]
  ledger: LedgerRow[]
  /** The same, counted from the rows: must be equal. */
  recount: LedgerRow[]
  oldestMessageAtMs: number | null
  /** The ids of the keys that stored secrets are encrypted with: see secret-box.ts. */
  secretKeyIds: string[]
  storedBytes: number
}

export interface BooksStore {
  ledger(): Promise<LedgerRow[]>
  /** The same, counted from the rows. */
  recount(): Promise<LedgerRow[]>
  oldestPendingAtMs(destinationId: string): Promise<number | null>
  /** The same of every destination that is owed something, in one question. */
  oldestPending(): Promise<OldestPending[]>
  /** Reads everything there is, beside all other work. Undefined when it is not over by then. */
  inspect(deadlineMs: number): Promise<StoreInspection | undefined>
  rejections(): Promise<RejectionRow[]>
  sourceCounts(): Promise<SourceCounts[]>
  /** Adds to what is there. Rejects with StoreUnavailable when none of it was added. */
  addStats(rows: readonly StatRow[]): Promise<void>
  /** The steps in which anything was counted, in order. */
  stats(query: StatQuery): Promise<StatPoint[]>
}
