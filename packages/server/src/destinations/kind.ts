// A kind of destination, as one interface with everything that a stage must know about it. The control API checks and shows settings with it,
// the store encrypts secrets with it, and delivery writes requests and judges answers with it. Routing, lanes, the breaker, retries, the
// ledger, replays and the history do not depend on the kind. A new kind is a folder beside webhook/ and an entry in kinds.ts.

import type { JsonObject } from '@switchyard/protocol'
import type { Fields } from '../api/schema.ts'
import type { Destination, TraceContext } from '../store/port/model.ts'

/** The delivery succeeded, is to be retried, or has failed for good. */
export type Verdict = 'success' | 'temporary' | 'permanent'

export interface RequestAbout {
  /** Identifies the content of the request to the receiver. It is the same on every attempt. */
  id: string
  /** Starts at 1. */
  attempt: number
  replay: boolean
  /** The wall time of the attempt. */
  atMs: number
  /** The trace that all its messages have; null if they have none or different ones. */
  trace: TraceContext | null
}

export interface OutgoingRequest {
  /** Names and values alternate. */
  headers: string[]
  body: string
}

/** Encrypts or decrypts a text. `context` is the place in which the text is stored; encryption binds the text to it. */
export type Sealing = (text: string, context: string) => string

/** `D` is the destination as the service uses it, `S` as it is stored. */
export interface DestinationKind<D extends Destination, S> {
  readonly type: D['type']

  // ── Settings ──

  /** The settings of this kind, beside those that every destination has: `settings` as requests give them, `shownSettings` as responses show them. */
  readonly settings: Fields
  readonly shownSettings: Fields
  /** The first problem that the schema cannot find, or null. `checkUrl` says why a URL may not be dialled, or null. */
  problem(settings: Partial<D>, checkUrl: (url: string) => string | null): { field: string; problem: string } | null
  /** The settings as an admin sees them. Secrets are never shown. */
  show(destination: D): JsonObject
  /** The settings as viewers and the audit log see them: values that may be credentials are hidden. */
  showHidden(destination: D): JsonObject

  // ── Secrets ──

  /** The names of settings that can be set but are never shown. */
  readonly secretSettings: readonly (keyof D & string)[]
  /** The names of secrets that differ, although `show` gives the same for both. */
  changedSecrets(before: D, after: D): string[]
  /** The names, in lower case, of the headers that come from its settings and may hold credentials. */
  secretHeaders(destination: D): ReadonlySet<string>
  /** Converts to the stored form and back. Everything that may be a credential is still in plain text. */
  toStored(destination: D): S
  fromStored(stored: S): D
  /** Encrypts or decrypts every text that may be a credential. */
  withSecrets(stored: S, change: Sealing): S
  /** Removes all of these texts. This is what is kept of a deleted destination. */
  withoutSecrets(stored: S): S

  // ── Delivery ──

  /** The URLs that a message is sent to, with one request each. One success is enough. */
  targets(destination: D): readonly string[]
  /** `messages` are JSON texts. A batch is sent as an array, even if it has one message. */
  request(destination: D, messages: readonly string[], batch: boolean, about: RequestAbout): OutgoingRequest
  /** Returns the function that judges an answer by its HTTP status. */
  verdicts(destination: D): (status: number) => Verdict
}
