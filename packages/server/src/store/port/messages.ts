// The part of the port that ingest uses: accepts messages.

import type { Routing, RowId, SegmentContent } from '../../model/messages.ts'
import type { NewQuarantined } from './quarantine.ts'

export interface AcceptBatch {
  content: SegmentContent
  /** The bytes from which `content` can be read again: see stored-messages.ts. */
  body: Uint8Array
  /** The messageId of each item, by which duplicates are found. */
  messageIds: readonly string[]
  routing: Routing
  /** Messages that are stored but not sent, whatever routing decided. */
  quarantined?: readonly NewQuarantined[] | undefined
}

export interface AcceptResult {
  /** Null if every message was a duplicate, so that nothing was stored. */
  segment: RowId | null
  /** The indexes of messages that were accepted before. */
  duplicates: readonly number[]
  /** The messages that ordered destinations receive outside the order, because they have no key. Without duplicates. */
  keyless?: readonly KeylessCount[]
}

export interface KeylessCount {
  destinationId: string
  messages: number
}

export interface Rejection {
  /** Null if the write key is unknown. */
  sourceId: string | null
  code: string
  count: number
  /** The start of the rejected body, to help find the cause. */
  sample: string
  atMs: number
}

export interface IngestStore {
  /** Resolves after the commit. Rejects with StoreUnavailable if nothing of the batch was or will be stored. */
  accept(batch: AcceptBatch): Promise<AcceptResult>
  /** Counts the rejection and stores the sample in the background. */
  reject(rejection: Rejection): void
  /** Counts messages of suppressed users that were dropped before they were stored. */
  suppressed(sourceId: string, count: number): void
}

/** The store cannot write at the moment: the disk is full, or the database is unreachable. The caller may retry. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}
