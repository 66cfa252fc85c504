// The data types of the store's port: the configuration, accepted messages, and outcomes of deliveries.

import type { JsonObject, TrackingPlan, Violation } from '@switchyard/protocol'
import type { Source } from '../../api/resources/source.ts'

/** The id of a row in an adapter. Opaque: it can be compared, printed and passed back to the adapter, but not computed with. */
export type RowId = number | string

export type { PrivacyRule } from '../../api/resources/privacy-path.ts'
export type { Source } from '../../api/resources/source.ts'

// ── Configuration ───────────────────────────────────────────────────────────────────────────────────────────────────

/** The id and the name of the source of messages about the service itself. It has no write keys. */
export const SYSTEM_SOURCE = 'system'

/** What all destinations have, of whatever kind. */
export interface CommonDestination {
  id: string
  name: string
  /** A disabled destination gets no new deliveries, and its pending deliveries wait until it is enabled. */
  enabled: boolean
  /** A paused destination gets new deliveries as usual, but no attempts are made until it is resumed. */
  paused: boolean
  sourceIds: readonly string[]
  batch: BatchSettings
  timeoutMs: number
  retryWindowMs: number
  maxInFlight: number
  /** If false, messages whose timestamp is more than 24 h before they were received are not sent. */
  historical: boolean
  /** Whether messages are sent with `context.violations`. Missing in destinations that earlier versions stored. */
  includeViolations?: boolean
  filter: EventFilter
  /** An expression that a message must match (destination subscriptions, FQL), in addition to the filter. Null: every message. */
  subscribe: string | null
  /** The number of the current version of the settings that decide what is sent, from 1. Its kind says which these are. */
  version: number
  retry: RetryPolicy
  /** The id of the destination that gets the messages whose delivery here failed or expired. */
  deadLetter: string | null
  createdAtMs: number
}

/** Sends messages to URLs. */
export interface WebhookDestination extends CommonDestination {
  type: 'webhook'
  urls: readonly string[]
  headers: Readonly<Record<string, string>>
  /** Plain text here, encrypted in the store, and never part of an API response or a log. */
  sharedSecret: string | null
  signingSecrets: readonly string[]
  /** How the request is shaped. Null: the classic webhook. */
  request: RequestSettings | null
  transformation: Transformation | null
  auth: Auth | null
  tls: TlsSettings | null
  /** What the templates and the mapping of `request` read as `secrets`, by name. Plain text here, encrypted in the store, and never shown. */
  secrets: Readonly<Record<string, string>>
}

/** Runs actions of a tool in the catalogue. */
export interface IntegrationDestination extends CommonDestination {
  type: 'integration'
  /** What runs for each message. */
  integration: IntegrationRef
  /** The settings of the integration. Encrypted in the store as a whole; its secrets are never shown. */
  settings: Readonly<JsonObject>
  subscriptions: readonly Subscription[]
}

/** A destination of each kind, by `type`. destinations/kinds.ts must have an entry for each. */
export interface DestinationTypes {
  webhook: WebhookDestination
  integration: IntegrationDestination
}
export type DestinationType = keyof DestinationTypes
export type Destination = DestinationTypes[DestinationType]

export interface IntegrationRef {
  slug: string
  /** The definition's name. The `integrations` object of a message may use it. */
  name: string
  /** Whether it can delete a user in its tool. */
  deletes?: boolean
  /** The names of the settings that are not secret. All others are never shown. */
  shownSettings?: readonly string[]
}

/** When an action of an integration runs, and the mapping that fills its fields. */
export interface Subscription {
  /** Stays the same when the subscription is changed, because a retry lists the subscriptions that succeeded. */
  id: string
  name: string
  action: string
  subscribe: string
  /** In Segment's mapping-kit language. */
  mapping: Readonly<JsonObject>
  enabled: boolean
}

/** The settings of a destination that get a new version when they change, by name. Its kind says which these are. */
export type DestinationContent = Readonly<Record<string, unknown>>

/** How a message becomes an HTTP request. */
export interface RequestSettings {
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** A template that is appended to each URL; empty for none. */
  path: string
  /** Templates, by header name. Encrypted in the store. */
  headers: Readonly<Record<string, string>>
  /** A mapping in Segment's mapping-kit language. Null: the outbound message. */
  body: JsonObject | readonly unknown[] | null
  format: BodyFormat
}

export type BodyFormat = 'json' | 'form' | 'text' | 'ndjson' | { readonly wrap: string }

/** JavaScript that changes or drops messages before the request is shaped. */
export interface Transformation {
  code: string
  timeoutMs: number
  memoryMb: number
}

/** When a failed attempt is repeated. How long it is repeated is `retryWindowMs`. */
export interface RetryPolicy {
  initialMs: number
  maxMs: number
  factor: number
  /** HTTP statuses that are retried although they usually are not. */
  retryStatuses: readonly number[]
  /** HTTP statuses that are not retried although they usually are. */
  failStatuses: readonly number[]
}

/** How the service authenticates itself to the receiver. Passwords, tokens and secrets are encrypted in the store and never shown. */
export type Auth =
  | { type: 'basic'; username: string; password: string }
  | { type: 'bearer'; token: string }
  | {
      type: 'oauth2'
      tokenUrl: string
      clientId: string
      clientSecret: string
      scope: string | null
      audience: string | null
      /** Where the credentials are in the token request: HTTP Basic, or the body. */
      credentials: 'basic' | 'body'
    }

/** In PEM. The certificate and its key identify the service to the receiver; `ca` replaces the usual certificate authorities. */
export interface TlsSettings {
  certificate: string | null
  privateKey: string | null
  ca: string | null
}

/** The settings that a destination has if it uses none of the features that came after the first version. */
export const CLASSIC = {
  subscribe: null,
  version: 1,
  retry: { initialMs: 5_000, maxMs: 600_000, factor: 2, retryStatuses: [], failStatuses: [] },
  deadLetter: null,
} as const satisfies Partial<CommonDestination>

/** The settings of a webhook that uses none of the features that came after the first version. */
export const CLASSIC_WEBHOOK = {
  ...CLASSIC,
  request: null,
  transformation: null,
  auth: null,
  tls: null,
  secrets: {},
} as const satisfies Partial<WebhookDestination>

/** Which messages a destination receives. If `allow` is empty, everything is sent that is not in `deny`. */
export interface EventFilter {
  types: NameFilter
  /** By exact event name. Applies only to track messages, because no other type has an event. */
  events: NameFilter
}

export interface NameFilter {
  allow: readonly string[]
  deny: readonly string[]
}

export const NO_FILTER: EventFilter = { types: { allow: [], deny: [] }, events: { allow: [], deny: [] } }

export interface BatchSettings {
  /** 1 means off: one message per request. */
  size: number
  bytes: number
  lingerMs: number
}

/** An application that obtains access tokens with assertions that it signs with one of its keys. Its id is the client id. */
export interface OAuthApp {
  id: string
  name: string
  /** The sources to which its tokens may send messages. */
  sourceIds: readonly string[]
  keys: readonly OAuthKey[]
  /** Access tokens that were issued before this time are rejected. Null if none were revoked. */
  revokedBeforeMs: number | null
  createdAtMs: number
}

export interface OAuthKey {
  id: string
  publicKeyPem: string
  createdAtMs: number
}

/** A tracking plan that is attached to sources. A source has at most one. */
export interface StoredPlan extends TrackingPlan {
  id: string
  sourceIds: readonly string[]
  /** From 1, one more after each change of the plan's content. */
  version: number
  createdAtMs: number
}

/** What a control token may do. A viewer can only read. */
export type Role = 'admin' | 'viewer'

/** A token of the control API, in addition to the admin token of the settings. Only a hash of the token is stored. */
export interface ControlToken {
  id: string
  name: string
  role: Role
  /** Never part of an API response. */
  hash: string
  createdAtMs: number
}

/** The configuration that the hot paths read. It is replaced as a whole when something changes. */
export interface Configuration {
  sources: ReadonlyMap<string, Source>
  destinations: ReadonlyMap<string, Destination>
  /** For each source id, the users whose new messages are dropped. */
  suppressions: ReadonlyMap<string, ReadonlySet<string>>
  oauthApps: ReadonlyMap<string, OAuthApp>
  tokens: ReadonlyMap<string, ControlToken>
  plans: ReadonlyMap<string, StoredPlan>
}

export type NewSource = Omit<Source, 'id' | 'createdAtMs'>
export type NewDestination = { [Type in DestinationType]: Omit<DestinationTypes[Type], 'id' | 'createdAtMs'> }[DestinationType]
export type NewOAuthApp = Omit<OAuthApp, 'id' | 'createdAtMs'>
export type NewPlan = Omit<StoredPlan, 'id' | 'createdAtMs' | 'version'>
export type NewControlToken = Omit<ControlToken, 'id' | 'createdAtMs'>

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

/** The rule of a destination that excluded a message: a rule of its filter, its subscribe expression, or that no subscription of the integration matches. */
export const FILTER_RULES = [
  'type_denied',
  'type_not_allowed',
  'event_denied',
  'event_not_allowed',
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
