// The input and the results of running an integration.

import type { JsonObject } from '@switchyard/protocol'

/** An integration with its settings, ready to run. */
export interface Integration {
  /** Runs one action for some messages: `performBatch` if there are several and the action has it, otherwise one by one. Never rejects. */
  run(step: Step, messages: readonly JsonObject[], options: RunOptions): Promise<RunResult>
  /** Deletes the user of a `delete` message in the tool; null if the integration cannot. */
  readonly erase: ((message: JsonObject, options: RunOptions) => Promise<RunResult>) | null
  /** The actions that read or set values that the actions of one message share, so that they run one after the other; missing: none. */
  readonly transactional?: ReadonlySet<string>
  /** The actions that keep values for later messages; missing: none. */
  readonly stateful?: ReadonlySet<string>
  /** Asks the tool which values a field of an action can have. Never rejects. */
  choices?(lookup: FieldLookup, options: RunOptions): Promise<FoundChoices>
}

export interface FieldLookup {
  action: string
  /** `list_id`, `object_details.object_type` or `associations[0].object_type`. For an object with `x-dynamic: keys`, its name. */
  field: string
  /** Of the subscription. The constants in it are what the answer may depend on, such as the type of object whose properties are wanted. */
  mapping: JsonObject
  syncMode?: string | undefined
  /** The `nextPage` of the answer before; missing: the first page. */
  page?: string | undefined
}

export interface FoundChoices {
  /** Why there are none, if it is not a success. */
  result: StepResult
  choices: readonly Choice[]
  /** Null if there are no more. */
  nextPage: string | null
}

export interface Choice {
  value: string | number | boolean
  label: string
  description?: string
}

export interface Step {
  action: string
  /** In Segment's mapping-kit language. */
  mapping: JsonObject
  /** Missing: that of the mapping, or the default of the action. */
  syncMode?: string | undefined
  /** Ids by which actions keep what they have read, such as the schema of an object. */
  ids?: { subscription: string; destination: string }
}

export interface RunOptions {
  /** Ends requests and waits when the deadline is over. */
  signal: AbortSignal
  /** Dials nothing: each request is recorded with its headers and body and gets an empty answer. */
  isPreview?: boolean
  /** Records headers and bodies, as a preview does. */
  isDetailed?: boolean
  /** The action may change the messages: nothing else reads them. */
  ownsMessages?: boolean
  /** False: no access token is requested. A tool may replace the refresh token then, and nobody would store the new one. */
  renewsTokens?: boolean
  /** For each message, what the actions for it share. With these, messages run one by one unless the mapping asks for batches, which share nothing. */
  transactions?: readonly Transaction[]
  /** What the action keeps for later messages. Missing: it keeps nothing. */
  state?: ActionState
}

/** The entries of one subscription. */
export interface ActionState {
  get(key: string): string | undefined
  /** Other runs see the entry at once. `undo` takes it back, if it was not replaced. */
  set(key: string, value: string, ttlMs: number): { entry: StateEntry; undo: () => void }
}

export interface StateEntry {
  key: string
  value: string
  setAtMs: number
  expiresAtMs: number
}

export interface KeptEntry extends StateEntry {
  /** The message whose run left it; null for a batch of several. */
  position: number | null
}

/** Values that an action leaves for those that run after it for the same message, such as the id of a record that it created. */
export type Transaction = Map<string, string>

export interface RunResult {
  /** One for each message, in order. */
  results: readonly StepResult[]
  /** The HTTP requests that were made, with secrets removed. Only the first 50 are kept; if there were more, `logs` says so. */
  requests: readonly RecordedRequest[]
  /** What the integration logged, with secrets removed; null if nothing. */
  logs: string | null
  /** What was kept for later messages; missing if nothing. */
  state?: readonly KeptEntry[]
}

export type StepResult =
  | { kind: 'success' }
  /** The answer to the request that decided. */
  | { kind: 'status'; status: number; retryAfter: string | null; message: string }
  /** A failure of the network; `code` as Node.js has it. */
  | { kind: 'network'; code: string; message: string }
  /** `retryAfter`: what the tool asked for, if it answered and a retry may help. */
  | { kind: 'failed'; code: FailureCode; message: string; retryAfter?: string }

export type FailureCode =
  /** RetryableError of the library, or an IntegrationError with a status that the library retries. */
  | 'integration_retry'
  | 'timeout'
  /** Any other IntegrationError, or an error that the library does not know. */
  | 'integration_failed'
  /** PayloadValidationError, or the schema of the action. */
  | 'invalid_payload'
  | 'invalid_authentication'

export interface RecordedRequest {
  /** Positions of the messages that the request was made for. */
  positions: readonly number[]
  method: string
  url: string
  startedAtMs: number
  totalMs: number
  status: number | null
  /** The code of the network error; null if there was a complete answer. */
  error: string | null
  /** The start of the answer's body. */
  responseStart: string | null
  /** Only in a preview or a test. */
  headers: Readonly<Record<string, string>> | null
  body: string | null
}

/** The tokens that the tool returned to replace an expired access token. */
export interface Tokens {
  accessToken: string
  /** Often a new one; the old one is then no longer valid. */
  refreshToken: string | undefined
  /** The one with which they were requested. */
  usedRefreshToken: string | undefined
}

/** `settings.oauth` of an integration that uses OAuth 2. Some definitions read their credentials from other settings, and need none of these. */
export interface OAuthSettings {
  clientId: string
  clientSecret: string
  refreshToken: string
  accessToken: string
}
