// The store's port: the only thing the stages share, grouped by the stage that uses it. An adapter keeps the invariants:
// what accept() resolved with is durable together with the work it owes; for each destination
// owed = delivered + pending + failed + expired + cancelled at every commit; a shipment that another has claimed cannot
// be settled. No SQL, no HTTP and no policy here: when to retry and whether to give up is delivery's knowledge.

import type { JsonObject } from '@switchyard/protocol'
import type { ControlStore } from './port/control-store.ts'
import type { Configuration, FinalStateName, Part, Plan, RequestRecord, RowId, SegmentContent } from './port/model.ts'
import type { Channel, Nodes, ServerFacts } from './port/nodes.ts'
import type { OAuthStore, SecretStore } from './port/secrets.ts'

export * from './port/control-store.ts'
export type * from './port/from-stored.ts'
export * from './port/model.ts'
export * from './port/nodes.ts'
export * from './port/secrets.ts'

// ── Ingest ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface AcceptBatch {
  content: SegmentContent
  /** The bytes that `content` can be read from again: see stored-messages.ts. */
  body: Uint8Array
  /** Of each item, the identity that duplicates share. */
  messageIds: readonly string[]
  plan: Plan
}

export interface AcceptResult {
  /** Null when every message was a duplicate and nothing was stored. */
  segment: RowId | null
  /** Indexes of the messages that had been accepted before. */
  duplicates: readonly number[]
}

export interface Rejection {
  /** Null when the write key was not known. */
  sourceId: string | null
  code: string
  count: number
  /** The start of what was rejected, for whoever looks for the cause. */
  sample: string
  atMs: number
}

export interface IngestStore {
  /** Resolves after the commit; rejects with StoreUnavailable when nothing of it was or will be stored. */
  accept(batch: AcceptBatch): Promise<AcceptResult>
  /** Counted and sampled soon, not waited for. */
  reject(rejection: Rejection): void
  /** Messages of suppressed users, dropped before they were stored. */
  suppressed(sourceId: string, count: number): void
}

/** The store cannot take anything now: disk full, database away. The caller may try again. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}

/** What was to be settled is no longer held by this process: its time ran out, and another has it or had it. */
export class NotHeld extends Error {
  override name = 'NotHeld'
}

// ── Delivery ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Deliveries to one destination that are attempted together. */
export interface Shipment {
  id: RowId
  /** Which claim of it this is: the fence against settling what another has taken. */
  claim: number
  destinationId: string
  /** Attempts made so far. */
  attempt: number
  /** In schedule time, as dueAtMs: see clock.ts. Null before the first attempt. */
  firstAttemptAtMs: number | null
  dueAtMs: number
  /** A batch, sent and retried as one request. */
  unit: boolean
  /** The URLs that are left to try; null: all that the destination has. From the store they come without the values of queries: see hidden-url.ts. */
  urls: readonly string[] | null
  replay: boolean
  parts: readonly Part[]
}

export interface ClaimedShipment {
  shipment: Shipment
  /** By segment. A segment that is gone (purged whole) is missing. */
  contents: ReadonlyMap<RowId, SegmentContent>
  /** Bytes of the segments as stored: what holding it in memory is charged with. */
  bytes: number
}

export type ShipmentDraft = Omit<Shipment, 'id' | 'claim' | 'replay'> & { replay: boolean }

export interface FinalState {
  state: FinalStateName
  reason: string | null
  indexes: readonly number[]
}

/** What happened to the messages of one part in one attempt. */
export interface AttemptRecord {
  origin: RowId
  segment: RowId
  /** The attempt's number, from 1; 0 when none was made (cancelled, expired while waiting). */
  attempt: number
  replay: boolean
  atMs: number
  requests: readonly RequestRecord[]
  finals: readonly FinalState[]
}

/** A claimed shipment that is not over: it stays held under the same claim, with fewer deliveries. */
export interface KeptShipment {
  /** As it was before. */
  shipment: Shipment
  /** What is left of it, at least one delivery. */
  parts: readonly Part[]
}

/**
 * One atomic change: claimed shipments go, or are kept with what is left of them; what is owed another attempt is stored as new
 * shipments, held by nobody; and what happened is recorded. The next settlement of a shipment that was kept is made when this
 * one has ended.
 */
export interface Settlement {
  destinationId: string
  done: readonly Shipment[]
  kept: readonly KeptShipment[]
  remaining: readonly ShipmentDraft[]
  records: readonly AttemptRecord[]
}

export interface ClaimRequest {
  destinationId: string
  nowMs: number
  /** Most shipments that were never attempted. */
  maxFresh: number
  /** Most shipments that wait for a retry and are due. */
  maxRetries: number
  /** Stops after the shipment that passes this. */
  maxBytes: number
}

export interface Claim {
  shipments: readonly ClaimedShipment[]
  /** Whether there are more fresh ones than were asked for. */
  moreFresh: boolean
  /** When the next unclaimed retry is due; null when none waits. */
  nextRetryAtMs: number | null
}

/** Takes a message as it was accepted, or only the fields that tell whose it is: type, userId, previousId. */
export type IsDeleted = (sourceId: string, segment: RowId, message: JsonObject) => boolean

/** The taker of new work, so that the usual way is accept → deliver from memory → settle, with nothing read back. */
export interface Taker {
  /** Asked before the commit: whether the new shipment is to be taken at once rather than left in the store. */
  wants(destinationId: string, bytes: number): boolean
  /** After the commit, what was wanted. */
  take(claimed: ClaimedShipment): void
  /** The commit failed: what was wanted does not exist. */
  lost(destinationId: string, bytes: number): void
  /** Messages of these users were deleted: those that are not in flight must not be sent any more. */
  deleted(isDeleted: IsDeleted): void
  /** New work that was not asked for came to the store: retries by replay, deletions, shipments left in the store. */
  wake(destinationId: string): void
  /** This process's shares of destinations' limits may be others than before: see DeliveryStore.share. */
  reshare?(): void
  /** What this process holds is no longer its own. What was not started is forgotten, not given back: others may have it. */
  fenced?(): void
}

export interface DeliveryStore {
  attach(taker: Taker): void
  claim(request: ClaimRequest): Promise<Claim>
  /** Retries whose first attempt lies before a time, due or not: those whose window is over. */
  claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): Promise<readonly ClaimedShipment[]>
  /** Gives back what was claimed and not attempted. */
  release(shipments: readonly Shipment[]): void
  /** Resolves after the commit. Tries again by itself while the store is unavailable. Rejects with NotHeld. */
  settle(settlement: Settlement): Promise<void>
  /** How many of the requests that may be in flight to a destination at once are this process's: all, where it is alone. */
  share(destinationId: string, maxInFlight: number): number
}

// ── The whole ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Store {
  /** As of the last commit that this process knows of. */
  configuration(): Configuration
  /** Called after every change, and not for the state at the start. */
  onConfiguration(listener: (configuration: Configuration) => void): void
  ingest: IngestStore
  delivery: DeliveryStore
  control: ControlStore
  oauth: OAuthStore
  secrets: SecretStore
  /** Only where several processes share the store. */
  nodes?: Nodes
  channel?: Channel
  /** Only where the store is a server of its own. */
  serverFacts?(): Promise<ServerFacts>
  /** Whether a commit can be made now, tried by making one; what /readyz answers. */
  check(): Promise<{ ok: true } | { ok: false; message: string }>
  /** Drops whole days that are older than retention, in small steps. Called by a timer of the app, or by a test. */
  dropExpired(nowMs: number): Promise<void>
  /** Commits what was given before and closes. */
  close(): Promise<void>
}
