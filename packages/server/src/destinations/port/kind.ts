// The interface of a kind of destination, with everything that the stages must know about it. The control API checks and shows settings with it,
// the store encrypts secrets with it, and delivery builds requests and classifies responses with it. Routing, lanes, circuit breakers, retries, the
// ledger, replays and the history do not depend on the kind. A new kind is a folder beside webhook/ and an entry in kinds.ts.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import type { Fields } from '../../api/schema.ts'
import type {
  CommonDestination,
  Destination,
  DestinationType,
  Subscription,
  Transformation,
  WebhookDestination,
} from '../../model/configuration.ts'
import type { FilterRule, Progress, RequestRecord, SegmentContent, TraceContext } from '../../model/messages.ts'

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
  /** What sending it to one URL takes in memory, if that is more than the bytes of the body. */
  sendingBytes?: number
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

/** What all destinations have in their stored form, in which everything that may be a credential is encrypted. Each kind has its own form. */
export interface StoredDestination {
  id: string
  type: DestinationType
}

/** How texts of a stored destination are converted. */
export interface Encryption {
  /** Encrypts a plain text. */
  encrypt: Sealing
  /** Converts a text that is already encrypted. */
  reencrypt: Sealing
}

/** The settings of a request that all kinds have, after the schema has accepted them. Each kind adds its own. */
export type GivenSettings = Partial<Omit<CommonDestination, 'retry'>> & { type?: DestinationType }

/** What the checks of settings need from the rest of the service. */
export interface SettingsContext {
  /** Returns why connecting to a URL is not allowed, or null. */
  checkUrl: (url: string) => string | null
  /** The integration that the settings are for. Null for a webhook, and if the integrations package is not installed. */
  definition: CatalogIntegration | null
}

export interface MoveContext {
  definition: CatalogIntegration | null
  /** If the change restores a version: the origins that the destination had then. Undefined also if an earlier version of the service saved it. */
  restoredOrigins: readonly string[] | undefined
}

export interface SettingsProblem {
  field: string
  problem: string
}

export interface SettingsWarning {
  /** A stable code. */
  code: 'no_subscription' | 'hook_outputs_missing' | 'integration_problem'
  field: string
  /** A sentence that says what to do. */
  message: string
}

/** Returns the rule by which a message is filtered out, or null if it passes. */
export type FilterJudge = (item: JsonObject, content: SegmentContent) => FilterRule | null

/** What became of the messages of a unit. */
export interface CarriedOut {
  verdict: Verdict
  /** A stable code; null on success. */
  reason: string | null
  /** A sentence for a person; null on success. */
  error: string | null
}

export interface Carrier<D> {
  /** `texts` are the messages as JSON. A rejected promise is a bug of the kind: the messages are retried. */
  carryOut(destination: D, texts: readonly string[], about: RequestAbout): Promise<CarriedOut>
}

export interface RequestBuilder<D> {
  /** `messages` are JSON texts, or the results of the shaper. */
  build(destination: D, messages: readonly (string | Prepared)[], batch: boolean, about: RequestAbout): OutgoingRequest
  /** The settings with which requests are sent. Those of a webhook, because other kinds may have the same. */
  credentials(destination: D): Credentials
  /** The destination with placeholders for its secrets. Requests that are only shown are built with it. */
  masked(destination: D): D
  /** Whether a request that is shown differs from the one that is sent, because it contains placeholders. */
  hidesSecrets(destination: D): boolean
}

/** How the service authenticates itself to a receiver, and which texts of a request are secrets. */
export type Credentials = Pick<WebhookDestination, 'auth' | 'tls' | 'timeoutMs'> &
  Partial<Pick<WebhookDestination, 'secrets' | 'headers' | 'request'>>

/** A line about a destination: a label and a value. A line without a value is left out. */
export type Fact = readonly [label: string, value: unknown]

/** A destination that is not stored yet. */
type NewOf<D> = D extends unknown ? Omit<D, 'id' | 'createdAtMs'> : never

/** Which senders carry out the deliveries of a kind, and how. */
type CarryingOut<D> =
  | {
      /** In threads of the service. */
      readonly place: 'thread'
      /** Null if its deliveries are requests to its targets. */
      readonly carrier: Carrier<D> | null
      /** How its requests are built. Previews, tests and the history show them also if a carrier sends something else. */
      readonly requests: RequestBuilder<D>
    }
  | {
      /** In host processes, which run the code of integrations. Only that code knows its requests. */
      readonly place: 'host'
      readonly carrier: null
      readonly requests: null
    }
  | {
      /** In a loader process, as loads: sets of messages that stay the same when they are repeated. */
      readonly place: 'loader'
      readonly carrier: null
      readonly requests: null
    }

/** `D` is a destination of the kind, `Given` its settings in a request, and `Stored` its stored form. */
export type DestinationKind<
  D extends Destination = Destination,
  Given extends GivenSettings = GivenSettings,
  Stored extends StoredDestination = StoredDestination,
> = KindAnswers<D, Given, Stored> & CarryingOut<D>

interface KindAnswers<D extends Destination, Given extends GivenSettings, Stored extends StoredDestination> {
  readonly type: D['type']
  /** How sentences name it, such as `a webhook` and `webhooks`. */
  readonly noun: { readonly one: string; readonly many: string }
  /** The package that it needs, which may not be installed. A destination is refused if it is missing. */
  readonly package?: 'warehouse'

  // ── Settings ──

  /** The settings of this kind, in addition to those that every destination has: `settings` in requests, `shownSettings` in responses. */
  readonly settings: Fields
  readonly shownSettings: Fields
  /** The longest timeout of an attempt, which is also the default. */
  readonly maxTimeoutMs: number
  /** The slug of the integration in the catalogue whose definition the settings are checked against; null for none. */
  slug(settings: Given | D): string | null
  /** Returns what is wrong with settings before they are completed, or null. */
  givenProblem(given: Given, before: D | undefined): SettingsProblem | null
  /** Fills in what a request may leave out: secrets in an update, presets and ids of subscriptions. */
  completed(given: Given, before: D | undefined, definition: CatalogIntegration | null): Partial<D>
  /**
   * Returns the first problem that the schema cannot detect, or null. An update gives the destination as it was, because new settings must fit
   * the ones that stay.
   */
  problem(settings: Partial<D>, context: SettingsContext, before: D | undefined): SettingsProblem | null
  /**
   * Returns the fields of stored secrets that the change would send to a server that they were not given for. `given` is the request,
   * and `settings` is what the destination gets.
   */
  movedSecrets(given: Given, settings: Partial<D>, before: D, about: MoveContext): string[]
  /** Returns the settings as editors and admins see them. Secrets are never shown. */
  show(destination: D): JsonObject
  /** Returns the settings for viewers and the audit log. Values that may be credentials are hidden. */
  showHidden(destination: D): JsonObject
  /** The settings that get a new version when they change, because they decide what is sent. */
  readonly content: {
    /** Their values in destinations that were stored before they had versions. */
    readonly first: Readonly<Record<string, unknown>>
    /** How versions show them: null in the versions of other kinds. */
    readonly shown: Fields
  }
  /** The servers that it sends to. A version records them. Empty if they are not known. */
  origins(destination: D): string[]
  /** What two destinations of the kind have in common if both send a message to the same receiver, such as `the same URL`; null if they do not. */
  sameReceiver(one: NewOf<D>, other: NewOf<D>): string | null
  /** What is missing in the settings so that it can run, as far as its definition tells; null for nothing. */
  setupProblem(destination: D, definition: CatalogIntegration): SettingsProblem | null
  /** What no longer fits its definition, so that messages would fail; null if it fits. */
  misfit(destination: D, definition: CatalogIntegration): SettingsProblem | null
  /** What the caller should know about a destination that was created or changed, although it was accepted. The definition is null if there is none. */
  warnings(destination: D, definition: CatalogIntegration | null): readonly SettingsWarning[]
  /** Whether its settings are such that no message is sent to it. */
  isInactive(destination: D): boolean
  /** Whether it can be the dead-letter destination of others. */
  readonly acceptsDeadLetters: boolean

  // ── Secrets ──

  /** The names of settings that can be set but are never shown. */
  readonly secretSettings: readonly string[]
  /** Returns the names of the secrets that differ. `show` cannot reveal these differences. */
  changedSecrets(before: D, after: D): string[]
  /** Returns the lower-case names of the configured headers, which may contain credentials. `constant`: only those with the same value in all requests. */
  secretHeaders(destination: D, which: 'all' | 'constant'): ReadonlySet<string>
  /** The destination with which a request is built that a viewer sees: what viewers must not see is replaced. */
  hidden(destination: D): D
  /** Its mappings, whose constants may be credentials. */
  mappings(destination: D): readonly Readonly<JsonObject>[]
  /** Converts to the stored form; `fromStored` converts back. Credentials are still in plain text; `withSecrets` encrypts them. */
  toStored(destination: D): Stored
  fromStored(stored: Stored): D
  /** Encrypts or decrypts every text that may be a credential. */
  withSecrets(stored: Stored, change: Sealing): Stored
  /** Removes every text that may be a credential. The result is what is kept of a deleted destination. */
  withoutSecrets(stored: Stored): Stored
  /** Converts what an earlier version stored, perhaps with credentials in plain text, to the present form. */
  upgraded(stored: Stored, encryption: Encryption): Stored

  // ── Routing ──

  /** Returns the rule of the kind itself by which messages are filtered out; null if every message passes. */
  filter(destination: D): FilterJudge | null
  /** Whether it can delete a user at its receiver. */
  deletesUsers(destination: D): boolean

  /** The names by which the `integrations` object of a message may refer to it, besides its own name and aliases. */
  sharedNames(destination: D): readonly string[]

  // ── Delivery ──

  /** How many requests may be in flight even if the setting allows more; missing if only the setting counts. */
  mostInFlight?(destination: D): number
  /** How much longer than its timeout an attempt may take; missing if it may not. */
  extraMs?(destination: D): number
  /** The message in the form that the receiver gets, before a transformation. */
  message(content: SegmentContent, index: number): JsonObject
  /** Returns the URLs that a message is sent to, with one request each. The delivery succeeds if one of them does. An integration has a single entry, which stands for all its requests. */
  targets(destination: D): readonly string[]
  /** The targets that are still to be tried, as indexes. */
  targetsLeft(destination: D, progress: Progress): readonly number[]
  /** The steps that have succeeded and are not run again; null for none. */
  stepsDone(progress: Progress): readonly string[] | null
  /** The progress after an attempt that failed as a whole, for now, at these targets. */
  progressAfter(before: Progress, retried: readonly string[]): Progress
  /** Whether a batch that failed is retried as the same batch. Otherwise each of its messages has a progress of its own. */
  readonly keepsBatches: boolean
  /** The code that changes or drops messages; null for none. */
  transformation(settings: Partial<D>): Transformation | null
  /** What may run for a message; null if nothing but requests to the targets. The delivery succeeds if all that match succeed. A retry runs only those that did not. */
  steps(destination: D): readonly Subscription[] | null
  /** The function that shapes a message; null if messages are sent as they are. It throws MappingFailed. */
  shaper(destination: D): Shaper | null
  /** Whether a test succeeded that made these attempts. */
  hasPassed(attempts: readonly Pick<RequestRecord, 'reason' | 'step'>[]): boolean
  /** Returns the function that classifies a response by its HTTP status. */
  verdicts(destination: D): (status: number) => Verdict

  // ── Command line ──

  /** What the command line says about a destination, as the API returned it. */
  readonly facts: {
    /** Where its messages go, for the list of destinations. */
    receiver(shown: JsonObject): unknown
    settings(shown: JsonObject): readonly Fact[]
    /** What it makes of a message. */
    content(shown: JsonObject): readonly Fact[]
  }
}
