// What this stage is told: by ingest and delivery, which declare the same as hooks of their own. The stages do not know each
// other; app.ts hands these in, and the compiler holds the two sides together.

import type { Destination, SegmentContent } from '../store/store.ts'

export interface Accepted {
  sourceId: string
  /** Duplicates included. */
  messages: number
  duplicates: number
  bytes: number
  content: SegmentContent
  /** Indexes of the duplicates. */
  repeated: readonly number[]
}

export interface Rejected {
  /** Null: the write key was not known. */
  sourceId: string | null
  code: string
  messages: number
  sample: string
}

export interface Suppressed {
  sourceId: string
  messages: number
}

export interface AttemptedMessage {
  messageId: string | null
  sourceId: string
  type: string | null
  /** As it is sent; null for one that cannot be written. */
  json: string | null
  receivedAtMs: number
}

/** One request to one URL that has ended. The ids are those of its first message. */
export interface Attempted {
  destination: Destination
  deliveryId: string
  messageId: string | null
  sourceId: string
  count: number
  messages: readonly AttemptedMessage[]
  /** From 1. */
  attempt: number
  replay: boolean
  traceId: string | null
  url: string
  startedAtMs: number
  outcome: {
    verdict: Verdict
    reason: string | null
    status: number | null
    error: string | null
    timings: { totalMs: number }
  }
}

export type Verdict = 'success' | 'temporary' | 'permanent'

export interface Delivered {
  destination: Destination
  messages: readonly AttemptedMessage[]
  replay: boolean
  /** When the first answer was there, in wall time. */
  atMs: number
}

export interface Settled {
  destination: Destination
  delivered: number
  failed: number
  expired: number
  cancelled: number
  retried: number
}

export type BreakerState = 'closed' | 'open' | 'probing'

/** What those who watch may want to hear; each hears what it has a method for. */
export interface Watcher {
  accepted?(event: Accepted): void
  rejected?(event: Rejected): void
  suppressed?(event: Suppressed): void
  attempted?(event: Attempted): void
  delivered?(event: Delivered): void
  settled?(event: Settled): void
  breaker?(destination: Destination, state: BreakerState): void
  trouble?(destination: Destination, error: unknown): void
}
