// What the control API needs of delivery, declared by its consumer: the two stages do not know each other, app.ts hands
// delivery's implementation in.

import type { JsonObject } from '@switchyard/protocol'
import type { Destination, RequestRecord, SegmentContent } from '../../store/store.ts'

/** A request made for a test: like any other, but of no stored message. */
export type TestAttempt = Omit<RequestRecord, 'indexes'>

/** A request as it went out. Its headers hold what the destination's settings gave. */
export interface SentRequest {
  headers: Record<string, string>
  body: string
}

export type BreakerState = 'closed' | 'open' | 'probing'

export interface Percentiles {
  p50: number
  p95: number
  p99: number
}

export interface UrlHealth {
  url: string
  inFlight: number
  /** Share of the recent attempts that succeeded, 0 to 1; null when there was none. */
  success: number | null
  latencyMs: Percentiles | null
}

export interface DestinationHealth extends Omit<UrlHealth, 'url'> {
  breaker: BreakerState
  /** In schedule time: since when the breaker is not closed here; null when it is. */
  openSinceMs: number | null
  /** In schedule time, see clock.ts. When something waits and nothing is due earlier; null when nothing waits. */
  nextAttemptAtMs: number | null
  urls: readonly UrlHealth[]
}

export interface RequestAbout {
  deliveryId: string
  /** The attempt's number, from 1. */
  attempt: number
  replay: boolean
  /** Wall time of the attempt: signatures carry it. */
  atMs: number
}

/** What dialling a URL came to, without a request being sent. */
export interface DialReport {
  /** Null when it can be dialled. */
  reason: string | null
  /** A sentence for a person; null when it can be dialled. */
  error: string | null
  address: string | null
  dnsMs: number | null
  connectMs: number | null
  tlsMs: number | null
  certificateExpiresAtMs: number | null
}

/** Looks the name up, asks the address guard, connects, shakes hands, and closes. Never rejects. */
export type DialCheck = (url: string, timeoutMs: number) => Promise<DialReport>

export interface ControlDelivery {
  /** Posts the message now, once to each URL, past breaker and queue. Nothing is stored. */
  test(destinationId: string, message: JsonObject): Promise<{ request: SentRequest; attempts: readonly TestAttempt[] } | undefined>
  /** Undefined: no attempt was made since the start. */
  health(destinationId: string): DestinationHealth | undefined
  /** The request as an attempt sends it, made again from what is stored: the messages of one call, or of several in turn. */
  describeRequest(
    destination: Destination,
    parts: readonly { content: SegmentContent; indexes: readonly number[] }[],
    about: RequestAbout,
  ): SentRequest
}
