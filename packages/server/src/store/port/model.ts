// The nouns of the store's port: what is configured, what is accepted, what became of it. Data only.

import type { JsonObject } from '@switchyard/protocol'

/** An adapter's own name for a row. Opaque: compared, printed and handed back, never computed with. */
export type RowId = number | string

// ── Configuration ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface Source {
  id: string
  name: string
  enabled: boolean
  writeKeys: readonly string[]
  requireOAuth: boolean
  createdAtMs: number
}

export interface Destination {
  id: string
  type: 'webhook'
  name: string
  /** A disabled destination is sent nothing new, and what it is still owed is held. */
  enabled: boolean
  /** A paused destination is owed what comes as ever, and nothing is attempted until it is resumed. */
  paused: boolean
  sourceIds: readonly string[]
  urls: readonly string[]
  headers: Readonly<Record<string, string>>
  /** Plain here, encrypted in the store, and never in an answer or a log. */
  sharedSecret: string | null
  signingSecrets: readonly string[]
  batch: BatchSettings
  timeoutMs: number
  retryWindowMs: number
  maxInFlight: number
  /** False: messages whose timestamp lies more than 24 h before they were received are not sent. */
  historical: boolean
  filter: EventFilter
  createdAtMs: number
}

/** Which messages a destination is sent. An empty `allow` lets everything through that `deny` does not name. */
export interface EventFilter {
  types: NameFilter
  /** By the event's exact name; for track alone, since no other type has an event. */
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

/** An application that gets access tokens by signing assertions with one of its keys. Its id is the client id. */
export interface OAuthApp {
  id: string
  name: string
  /** The sources that its tokens may send to. */
  sourceIds: readonly string[]
  keys: readonly OAuthKey[]
  /** Access tokens issued before this are refused. Null: none was revoked. */
  revokedBeforeMs: number | null
  createdAtMs: number
}

export interface OAuthKey {
  id: string
  publicKeyPem: string
  createdAtMs: number
}

/** What a control token may do: a viewer only looks. */
export type Role = 'admin' | 'viewer'

/** A token of the control API beside the one of the settings. Of the token itself only a hash is known. */
export interface ControlToken {
  id: string
  name: string
  role: Role
  /** Never in an answer. */
  hash: string
  createdAtMs: number
}

/** Everything that the hot paths need to know, replaced as a whole when something changes. */
export interface Configuration {
  sources: ReadonlyMap<string, Source>
  destinations: ReadonlyMap<string, Destination>
  /** Source id → users whose new messages are dropped. */
  suppressions: ReadonlyMap<string, ReadonlySet<string>>
  oauthApps: ReadonlyMap<string, OAuthApp>
  tokens: ReadonlyMap<string, ControlToken>
}

export type NewSource = Omit<Source, 'id' | 'createdAtMs'>
export type NewDestination = Omit<Destination, 'id' | 'createdAtMs'>
export type NewOAuthApp = Omit<OAuthApp, 'id' | 'createdAtMs'>
export type NewControlToken = Omit<ControlToken, 'id' | 'createdAtMs'>

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The messages that were accepted together, as a segment holds them. What a message looks like on its way out is made from this. */
export interface SegmentContent {
  sourceId: string
  receivedAtMs: number
  /** The sender's address, where it is known. */
  ip: string | null
  /** Whether every message gets the address as `context.ip`; otherwise only those with `context.direct`. */
  browser: boolean
  sentAt: string | null
  /** The batch's own, under each message's. */
  context: JsonObject | null
  integrations: JsonObject | null
  /** The caller's trace, which the webhooks' requests carry on. */
  trace: TraceContext | null
  /** By their index. Null where a message was a duplicate or has been purged. */
  items: readonly (JsonObject | null)[]
  /** The stored bytes are damaged: there are no items, and nothing else from the request either. */
  isUnreadable?: true
}

/** W3C Trace Context, as it came: both are valid header values. */
export interface TraceContext {
  traceparent: string
  tracestate: string | null
}

/** Why a message is not owed to a destination; without a destination, why it is owed to nobody. */
export type SkipReason =
  | 'no_destination'
  | 'destination_disabled'
  | 'destination_deleted'
  | 'integrations_disabled'
  | 'historical'
  | 'filtered'

/** Which rule of a destination's filter kept a message back. */
export const FILTER_RULES = ['type_denied', 'type_not_allowed', 'event_denied', 'event_not_allowed'] as const
export type FilterRule = (typeof FILTER_RULES)[number]

export interface PlannedShipment {
  destinationId: string
  /** Null: every message of the batch. */
  indexes: readonly number[] | null
}

export interface Skip {
  destinationId: string | null
  reason: SkipReason
  /** Of `filtered`. */
  rule?: FilterRule | undefined
  indexes: readonly number[] | null
}

/** Where the messages of a batch go, and where not and why. */
export interface Plan {
  shipments: readonly PlannedShipment[]
  skips: readonly Skip[]
}

// ── Outcomes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Messages of one segment in a shipment. A delivery is named by the shipment that first owed it and its index. */
export interface Part {
  origin: RowId
  segment: RowId
  indexes: readonly number[]
}

/** What became of an attempt: delivery's Outcome, as it is kept. */
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
  /** Which of the record's messages the request carried. */
  indexes: readonly number[]
  /** Of a request that carried messages of several records. */
  gathered?: Gathered | undefined
}

/** All that a request carried, in order. Kept with the record of its first part alone; the others' say whose that is. */
export interface Gathered {
  /** The origin of the first part. */
  lead: RowId
  parts: readonly Part[] | null
}

export type FinalStateName = 'delivered' | 'failed' | 'expired' | 'cancelled'
