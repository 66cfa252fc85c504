// A kind of destination: everything that a stage has to know of one, as one interface. Control checks and shows settings with it, the
// store encrypts with it, and delivery writes requests and judges answers with it. Routing, lanes, the breaker, retries, the ledger,
// replays and the history know no kinds. A new kind is a folder beside webhook/ and an entry in kinds.ts.

import type { JsonObject } from '@switchyard/protocol'
import type { Fields } from '../api/schema.ts'
import type { Destination, TraceContext } from '../store/port/model.ts'

/** What an answer means for the delivery: it is over, is tried again, or has failed for good. */
export type Verdict = 'success' | 'temporary' | 'permanent'

export interface RequestAbout {
  /** Names the request's content to the receiver: the same on every attempt at it. */
  id: string
  /** From 1. */
  attempt: number
  replay: boolean
  /** Wall time. */
  atMs: number
  /** That of all its messages; null where they have none, or several. */
  trace: TraceContext | null
}

export interface OutgoingRequest {
  /** Names and values in turn. */
  headers: string[]
  body: string
}

/** A text for another one. The context is the place that the text is bound to when it is encrypted. */
export type Sealing = (text: string, context: string) => string

/** `D` is the destination as the service uses it, `S` as it is stored. */
export interface DestinationKind<D extends Destination, S> {
  readonly type: D['type']

  // ── Settings ──

  /** The settings that it has beside those of every destination: what is taken, and what is answered. */
  readonly settings: Fields
  readonly shownSettings: Fields
  /** What is wrong with settings beyond their form, by field. `checkUrl` says why a URL may not be dialled, or null. */
  problem(settings: Partial<D>, checkUrl: (url: string) => string | null): { field: string; problem: string } | null
  /** As an admin sees them. Secrets are never shown. */
  show(destination: D): JsonObject
  /** As viewers and the audit log see them: what may be a credential is hidden. */
  showHidden(destination: D): JsonObject

  // ── Secrets ──

  /** Settings that are taken and never shown, by the name of the setting. */
  readonly secretSettings: readonly (keyof D & string)[]
  /** Names of what differs and does not show: the two look alike. */
  changedSecrets(before: D, after: D): string[]
  /** Its own headers in a request hold credentials: their names, in lower case. */
  secretHeaders(destination: D): ReadonlySet<string>
  /** As it is stored, with everything that may be a credential still in plain text; and back. */
  toStored(destination: D): S
  fromStored(stored: S): D
  /** Changes every text that may be a credential. */
  withSecrets(stored: S, change: Sealing): S
  /** Without any of them: what is kept of a deleted destination. */
  withoutSecrets(stored: S): S

  // ── Delivery ──

  /** Where a message is sent, one request each. One success is enough. */
  targets(destination: D): readonly string[]
  /** `messages` are JSON texts. A batch is sent as an array, of one message too. */
  request(destination: D, messages: readonly string[], batch: boolean, about: RequestAbout): OutgoingRequest
  /** Judges an answer by its status. */
  verdicts(destination: D): (status: number) => Verdict
}
