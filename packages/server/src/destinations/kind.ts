// The interface of a kind of destination, with everything that the stages must know about it. The control API checks and shows settings with it,
// the store encrypts secrets with it, and delivery builds requests and classifies responses with it. Routing, lanes, circuit breakers, retries, the
// ledger, replays and the history do not depend on the kind. A new kind is a folder beside webhook/ and an entry in kinds.ts.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import type { Fields } from '../api/schema.ts'
import type { Destination, Subscription, TraceContext } from '../store/port/model.ts'
import type { GivenSubscription } from './integration/subscriptions.ts'

/** Whether the attempt succeeded, failed and is to be retried, or failed permanently. */
export type Verdict = 'success' | 'temporary' | 'permanent'

export interface RequestAbout {
  /** Identifies the content of the request to the receiver. It is the same on every attempt. */
  id: string
  /** Starts at 1. */
  attempt: number
  replay: boolean
  /** The wall time of the attempt. */
  atMs: number
  /** The trace that all messages of the request share; null if they have none or different ones. */
  trace: TraceContext | null
}

export interface OutgoingRequest {
  method: string
  /** Appended to the path of each target; empty for none. */
  path: string
  /** Names and values alternate. */
  headers: string[]
  body: string
}

/** A message that was shaped for a request. */
export interface Prepared {
  /** Its part of the body. */
  text: string
  /** Appended to the path of each URL; empty for none. */
  path: string
  /** Names and values alternate. */
  headers: readonly string[]
  /** What the transformation printed. */
  logs?: string | null
  /** For an integration: the ids of the subscriptions that match the message. */
  steps?: readonly string[]
}

export type Shaper = (message: JsonObject) => Prepared

/** A message cannot be shaped as the settings demand. The message of the error is a sentence that names the setting. */
export class MappingFailed extends Error {
  override name = 'MappingFailed'
}

/** Encrypts or decrypts a text. `context` is the place in which the text is stored; encryption binds the text to it. */
export type Sealing = (text: string, context: string) => string

/** A destination as it is stored. Everything that may be a credential is encrypted. */
export type StoredDestination = Omit<Destination, 'urls' | 'headers' | 'secrets' | 'settings' | 'subscriptions'> & {
  sealedUrls: readonly string[]
  sealedHeaders: Readonly<Record<string, string>>
  sealedSecrets?: Readonly<Record<string, string>>
  /** `request.body` as JSON, because a mapping may contain a credential. `request` itself then has none. */
  sealedBody?: string
  /** `request.path`, because it may contain a token, as the paths of some bots do. */
  sealedPath?: string
  /** The settings of an integration as JSON. */
  sealedSettings?: string
  /** Its subscriptions as JSON. */
  sealedSubscriptions?: string
}

/** The settings of a request, after the schema has accepted them. */
export type GivenSettings = Omit<Partial<Destination>, 'integration' | 'subscriptions' | 'retry' | 'secrets'> & {
  /** In an update, null removes a secret. */
  secrets?: Readonly<Record<string, string | null>> | undefined
  /** The slug. */
  integration?: string | undefined
  subscriptions?: readonly GivenSubscription[] | undefined
}

/** What the checks of settings need from the rest of the service. */
export interface SettingsContext {
  /** Returns why connecting to a URL is not allowed, or null. */
  checkUrl: (url: string) => string | null
  /** The integration that the settings are for. Null for a webhook, and if the integrations package is not installed. */
  definition: CatalogIntegration | null
}

export interface MoveContext {
  definition: CatalogIntegration | null
  /** Whether the change restores a version that was saved for other servers. */
  isFromElsewhere: boolean
}

export interface SettingsProblem {
  field: string
  problem: string
}

export interface DestinationKind {
  readonly type: Destination['type']

  // ── Settings ──

  /** The settings of this kind, in addition to those that every destination has: `settings` in requests, `shownSettings` in responses. */
  readonly settings: Fields
  readonly shownSettings: Fields
  /** Returns what is wrong with settings before they are completed, or null. */
  givenProblem(given: GivenSettings, before: Destination | undefined): SettingsProblem | null
  /** Fills in what a request may leave out: secrets in an update, presets and ids of subscriptions. */
  completed(given: GivenSettings, before: Destination | undefined, definition: CatalogIntegration | null): Partial<Destination>
  /**
   * Returns the first problem that the schema cannot detect, or null. An update gives the destination as it was, because new settings must fit
   * the ones that stay.
   */
  problem(settings: Partial<Destination>, context: SettingsContext, before: Destination | undefined): SettingsProblem | null
  /**
   * Returns the fields of stored secrets that the change would send to a server that they were not given for. `given` is the request,
   * and `settings` is what the destination gets.
   */
  movedSecrets(given: GivenSettings, settings: Partial<Destination>, before: Destination, about: MoveContext): string[]
  /** Returns the settings as an admin sees them. Secrets are never shown. */
  show(destination: Destination): JsonObject
  /** Returns the settings for viewers and the audit log. Values that may be credentials are hidden. */
  showHidden(destination: Destination): JsonObject

  // ── Secrets ──

  /** The names of settings that can be set but are never shown. */
  readonly secretSettings: readonly (keyof Destination)[]
  /** Returns the names of the secrets that differ. `show` cannot reveal these differences. */
  changedSecrets(before: Destination, after: Destination): string[]
  /** Returns the lower-case names of the configured headers, which may contain credentials. */
  secretHeaders(destination: Destination): ReadonlySet<string>
  /** Converts to the stored form; `fromStored` converts back. Credentials are still in plain text; `withSecrets` encrypts them. */
  toStored(destination: Destination): StoredDestination
  fromStored(stored: StoredDestination): Destination
  /** Encrypts or decrypts every text that may be a credential. */
  withSecrets(stored: StoredDestination, change: Sealing): StoredDestination
  /** Removes every text that may be a credential. The result is what is kept of a deleted destination. */
  withoutSecrets(stored: StoredDestination): StoredDestination

  // ── Delivery ──

  /** Returns the URLs that a message is sent to, with one request each. The delivery succeeds if one of them does. An integration has a single entry, which stands for all its requests. */
  targets(destination: Destination): readonly string[]
  /** The ids of the subscriptions to run for a message; null for a webhook. The delivery succeeds if all of them succeed. A retry runs only those that did not. */
  steps(destination: Destination): readonly Subscription[] | null
  /** The function that shapes a message; null if messages are sent as they are. It throws MappingFailed. */
  shaper(destination: Destination): Shaper | null
  /** `messages` are JSON texts, or the results of the shaper. */
  request(destination: Destination, messages: readonly (string | Prepared)[], batch: boolean, about: RequestAbout): OutgoingRequest
  /** Returns the function that classifies a response by its HTTP status. */
  verdicts(destination: Destination): (status: number) => Verdict
}
