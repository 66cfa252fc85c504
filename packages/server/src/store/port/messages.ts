// The store as ingest uses it: accepting messages.

import type { Plan, RowId, SegmentContent } from './model.ts'

export interface AcceptBatch {
  content: SegmentContent
  /** The bytes that `content` can be read from again: see stored-messages.ts. */
  body: Uint8Array
  /** Of each item, the identity that duplicates share. */
  messageIds: readonly string[]
  plan: Plan
}

export interface AcceptResult {
  /** Null when every message was a duplicate and nothing was stored. */
  segment: RowId | null
  /** Indexes of the messages that had been accepted before. */
  duplicates: readonly number[]
}

export interface Rejection {
  /** Null when the write key was not known. */
  sourceId: string | null
  code: string
  count: number
  /** The start of what was rejected, for whoever looks for the cause. */
  sample: string
  atMs: number
}

export interface IngestStore {
  /** Resolves after the commit; rejects with StoreUnavailable when nothing of it was or will be stored. */
  accept(batch: AcceptBatch): Promise<AcceptResult>
  /** Counted and sampled soon, not waited for. */
  reject(rejection: Rejection): void
  /** Messages of suppressed users, dropped before they were stored. */
  suppressed(sourceId: string, count: number): void
}

/** The store cannot take anything now: disk full, database away. The caller may try again. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}
