// The events of ingest. app.ts connects the listeners. An event is emitted after it happened. The store keeps its own counts, which
// may be updated a moment later.

import type { AcceptBatch, AcceptResult, Routing, SegmentContent } from '../store/store.ts'

export interface AcceptedEvent {
  sourceId: string
  /** Including duplicates. */
  messages: number
  duplicates: number
  bytes: number
  content: SegmentContent
  /** Indexes of the duplicates. */
  repeated: readonly number[]
  /** Where the messages go, including the duplicates and the messages in quarantine, which go nowhere. */
  routing?: Routing
  quarantined?: AcceptBatch['quarantined']
  keyless?: AcceptResult['keyless']
}

export interface RejectedEvent {
  /** Null if the source is not known, for example because of an unknown write key. */
  sourceId: string | null
  code: string
  messages: number
  sample: string
}

export interface SuppressedEvent {
  sourceId: string
  messages: number
}

/** Accepted messages with a value that the service replaced or that is probably wrong. */
export interface WarnedEvent {
  sourceId: string
  code: string
  messages: number
}

export interface IngestEvents {
  onAccepted(event: AcceptedEvent): void
  onRejected(event: RejectedEvent): void
  onSuppressed(event: SuppressedEvent): void
  onWarned(event: WarnedEvent): void
}
