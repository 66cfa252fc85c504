// The configuration: what an operator sets, as every stage reads it. A kind of destination adds its own type to DestinationTypes.

import type { JsonObject, TrackingPlan } from '@switchyard/protocol'
import type { Source } from '../api/resources/source.ts'
import type { SourceScope } from '../api/resources/source-scope.ts'

export type { PrivacyRule } from '../api/resources/privacy-path.ts'
export type { Source } from '../api/resources/source.ts'
export type { SourceScope } from '../api/resources/source-scope.ts'

/** The id and the name of the source of messages about the service itself. It has no write keys. */
export const SYSTEM_SOURCE = 'system'

/** What all destinations have, of whatever kind. */
export interface CommonDestination {
  id: string
  name: string
  /** More names by which the `integrations` object of a message may refer to it. Missing in destinations that earlier versions stored. */
  aliases?: readonly string[]
  /** What it was imported from, such as `segment:` and its id there. Missing in destinations that earlier versions stored. */
  origin?: string | null
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
  /** Missing in destinations that earlier versions stored. */
  conditionalFilters?: readonly ConditionalFilter[]
  /** An expression that a message must match (destination subscriptions, FQL), in addition to the filter. Null: every message. */
  subscribe: string | null
  /** The number of the current version of the settings that decide what is sent, from 1. Its kind says which these are. */
  version: number
  retry: RetryPolicy
  /** Null or missing: messages are sent in any order. */
  order?: OrderSettings | null
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
  /** The name that people see. Earlier versions did not save it. */
  title?: string
  /** Whether it can delete a user in its tool. */
  deletes?: boolean
  /** The names of the settings that are not secret. All others are never shown. */
  shownSettings?: readonly string[]
  /** Whether the required fields of its actions were checked when its subscriptions were saved, which earlier versions did not do. */
  fieldsChecked?: boolean
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
  /** How the action changes records of the tool; null if it has no sync modes. Stored subscriptions of earlier versions have none. */
  syncMode?: string | null
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

/** The messages of one key are delivered in the order in which they were accepted: see model/order/order-key.ts. */
export interface OrderSettings {
  /** `user`, `source`, or the path of a field of the message. */
  by: string
  /** What happens to the later messages of a key when one fails or expires. */
  onFailure: 'skip' | 'hold'
  maxWaiting: number
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

export const CONDITIONAL_ACTIONS = ['drop', 'sample', 'drop_properties', 'allow_properties'] as const

/** What happens to messages that match an expression. */
export interface ConditionalFilter {
  name: string | null
  enabled: boolean
  /** A subscribe expression. Null: every message. */
  when: string | null
  action: (typeof CONDITIONAL_ACTIONS)[number]
  /** Of `sample`: the share that is sent, from 0 to 1, and the path of the value that decides; null for the messageId. */
  share: number | null
  path: string | null
  /** Of `drop_properties` and `allow_properties`: keys, by the path of the object that has them. */
  fields: Readonly<Record<string, readonly string[]>> | null
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

/** What a caller of the control API may do, from the lowest role to the highest. A viewer can only read; an editor can also change what belongs to its sources. */
export const ROLES = ['viewer', 'editor', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** The person to whom a token belongs. */
export interface TokenOwner {
  /** Made from issuer and subject. Never part of an API response. */
  personId: string
  subject: string
  email: string | null
}

/** A token of the control API, in addition to the admin token of the settings. Only a hash of the token is stored. */
export interface ControlToken {
  id: string
  name: string
  role: Role
  /** Always `all` for an admin. */
  sources: SourceScope
  /** When the token stops working; null if it does not expire. */
  expiresAtMs: number | null
  /** Null for a token that belongs to nobody. */
  owner: TokenOwner | null
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
