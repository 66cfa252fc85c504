// Accepted messages, where they are sent, and the outcomes of their deliveries.

import type { JsonObject, Violation } from '@switchyard/protocol'
import type { OrderKey } from './order/order-key.ts'

/** The id of a row in an adapter. Opaque: it can be compared, printed and passed back to the adapter, but not computed with. */
export type RowId = number | string

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Messages that were accepted together, as a segment stores them. Outgoing messages are built from this. */
export interface SegmentContent {
  sourceId: string
  receivedAtMs: number
  /** The sender's IP address, if it is known. */
  ip: string | null
  /** Whether every message gets the address as `context.ip`; otherwise only those with `context.direct`. */
  browser: boolean
  sentAt: string | null
  /** The context of the batch. Fields of a message's own context override it. */
  context: JsonObject | null
  integrations: JsonObject | null
  /** The caller's trace context, which is passed on with the requests to destinations. */
  trace: TraceContext | null
  /** The messages, by index. Null if a message was a duplicate or was purged. */
  items: readonly (JsonObject | null)[]
  /** How messages differ from the tracking plan of the source, by the index of the message. Found by the service, never read from the request's body. */
  violations?: Readonly<Record<number, readonly Violation[]>> | undefined
  /** Set if the stored bytes are damaged. Then there are no items, and nothing else from the request's body. */
  isUnreadable?: true
}

/** W3C Trace Context as it was received. Both values are valid header values. */
export interface TraceContext {
  traceparent: string
  tracestate: string | null
}

/** Why a message is not sent to a destination. With no destination: why it is not sent anywhere. */
export type SkipReason =
  | 'no_destination'
  | 'destination_disabled'
  | 'destination_deleted'
  | 'integrations_disabled'
  | 'historical'
  | 'filtered'
  | 'quarantined'
  | 'about_destination'

/**
 * The rule of a destination that excluded a message: a rule of its filter, a conditional filter that drops or samples messages, its subscribe expression,
 * or that no subscription of the integration matches.
 */
export const FILTER_RULES = [
  'type_denied',
  'type_not_allowed',
  'event_denied',
  'event_not_allowed',
  'conditional_filter',
  'not_sampled',
  'subscribe',
  'no_subscription',
] as const
export type FilterRule = (typeof FILTER_RULES)[number]

export interface RoutedShipment {
  destinationId: string
  /** Null means every message of the batch. */
  indexes: readonly number[] | null
}

export interface Skip {
  destinationId: string | null
  reason: SkipReason
  /** Only if the reason is `filtered`. */
  rule?: FilterRule | undefined
  indexes: readonly number[] | null
}

/** To which destinations the messages of a batch are sent, and to which they are not, with the reason. */
export interface Routing {
  shipments: readonly RoutedShipment[]
  skips: readonly Skip[]
}

// ── Outcomes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Messages of one segment in a shipment. The id of a delivery is `origin-index`: the id of the shipment that the delivery was first part of, and the
 * index of the message.
 */
export interface Part {
  origin: RowId
  segment: RowId
  indexes: readonly number[]
  /** The key of each message, if they are delivered in order. */
  keys?: readonly OrderKey[] | undefined
}

/** The result of one request, as it is stored: see Outcome in delivery. */
export interface RequestRecord {
  url: string
  startedAtMs: number
  status: number | null
  reason: string | null
  error: string | null
  address: string | null
  dnsMs: number | null
  connectMs: number | null
  tlsMs: number | null
  firstByteMs: number | null
  totalMs: number
  responseStart: string | null
  /** The indexes of the record's messages that the request contained. */
  indexes: readonly number[]
  /** The version of the destination's content that the request was built with. */
  version: number
  /** What the transformation printed. */
  logs: string | null
  /** Only for a request of an integration. */
  step?: RequestStep | undefined
  /** Only if the request contained messages of several records. */
  gathered?: Gathered | undefined
  /** Only of a warehouse, which gets loads and no requests. */
  load?: LoadRecord | undefined
}

/** What an attempt loaded into the tables of a warehouse. */
export interface LoadRecord {
  id: string
  /** The largest first. */
  tables: readonly { table: string; rows: number }[]
  rows: number
  /** As written or sent. */
  bytes: number
  durationMs: number
}

/** The part of a delivery that an integration made a request for. */
export interface RequestStep {
  /** The name of the subscription. */
  subscription: string
  /** Null if the subscription ended without a request. */
  method: string | null
}

/** Everything that a request contained, in order. Stored only with the record of its first part; the other records refer to that one. */
export interface Gathered {
  /** The origin of the first part. `parts` is null in the records of the other parts. */
  lead: RowId
  parts: readonly Part[] | null
}

export type FinalStateName = 'delivered' | 'failed' | 'expired' | 'cancelled'

/**
 * What earlier attempts have achieved; null for nothing. What it means belongs to the kind of the destination: for a webhook the URLs that are still
 * to be tried, for an integration the subscriptions that have succeeded. Stored URLs have no query values: see hidden-url.ts.
 */
export type Progress = readonly string[] | null
