// The events of ingest. app.ts connects the listeners. An event is emitted after the fact; the store has counted the same, or
// will.

import type { SegmentContent } from '../store/store.ts'

export interface AcceptedEvent {
  sourceId: string
  /** Duplicates included. */
  messages: number
  duplicates: number
  bytes: number
  content: SegmentContent
  /** Indexes of the duplicates. */
  repeated: readonly number[]
}

export interface RejectedEvent {
  /** Null: the write key was not known. */
  sourceId: string | null
  code: string
  messages: number
  sample: string
}

export interface SuppressedEvent {
  sourceId: string
  messages: number
}

export interface IngestEvents {
  onAccepted(event: AcceptedEvent): void
  onRejected(event: RejectedEvent): void
  onSuppressed(event: SuppressedEvent): void
}
