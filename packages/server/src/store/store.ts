// The store's port: the only thing the stages share, grouped by the stage that uses it. An adapter keeps the invariants:
// what accept() resolved with is durable together with the work it owes; for each destination
// owed = delivered + pending + failed + expired + cancelled at every commit; a shipment that another has claimed cannot
// be settled. No SQL, no HTTP and no policy here: when to retry and whether to give up is delivery's knowledge.

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
  createdAtMs: number
}

export interface BatchSettings {
  /** 1 means off: one message per request. */
  size: number
  bytes: number
  lingerMs: number
}

/** Everything that the hot paths need to know, replaced as a whole when something changes. */
export interface Configuration {
  sources: ReadonlyMap<string, Source>
  destinations: ReadonlyMap<string, Destination>
  /** Source id → users whose new messages are dropped. */
  suppressions: ReadonlyMap<string, ReadonlySet<string>>
}

export type NewSource = Omit<Source, 'id' | 'createdAtMs'>
export type NewDestination = Omit<Destination, 'id' | 'createdAtMs'>

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
  /** By their index. Null where a message was a duplicate or has been purged. */
  items: readonly (JsonObject | null)[]
}

/** Why a message is not owed to a destination; without a destination, why it is owed to nobody. */
export type SkipReason = 'no_destination' | 'destination_disabled' | 'destination_deleted' | 'integrations_disabled' | 'historical'

export interface PlannedShipment {
  destinationId: string
  /** Null: every message of the batch. */
  indexes: readonly number[] | null
}

export interface Skip {
  destinationId: string | null
  reason: SkipReason
  indexes: readonly number[] | null
}

/** Where the messages of a batch go, and where not and why. */
export interface Plan {
  shipments: readonly PlannedShipment[]
  skips: readonly Skip[]
}

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

// ── Delivery ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Messages of one segment in a shipment. A delivery is named by the shipment that first owed it and its index. */
export interface Part {
  origin: RowId
  segment: RowId
  indexes: readonly number[]
}

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
  /** The URLs that are left to try; null: all that the destination has. */
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
}

export type FinalStateName = 'delivered' | 'failed' | 'expired' | 'cancelled'

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
  atMs: number
  requests: readonly RequestRecord[]
  finals: readonly FinalState[]
}

/** One atomic change: claimed shipments go, what is still owed takes their place, and what happened is recorded. */
export interface Settlement {
  destinationId: string
  done: readonly Shipment[]
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

/** The taker of new work, so that the usual way is accept → deliver from memory → settle, with nothing read back. */
export interface Taker {
  /** Asked before the commit: whether the new shipment is to be taken at once rather than left in the store. */
  wants(destinationId: string, bytes: number): boolean
  /** After the commit, what was wanted. */
  take(claimed: ClaimedShipment): void
  /** The commit failed: what was wanted does not exist. */
  lost(destinationId: string, bytes: number): void
  /** Messages that must not be sent any more. */
  purged(segment: RowId, indexes: readonly number[]): void
  /** New work that was not asked for came to the store: retries by replay, deletions, shipments left in the store. */
  wake(destinationId: string): void
}

export interface DeliveryStore {
  attach(taker: Taker): void
  claim(request: ClaimRequest): Promise<Claim>
  /** Retries whose first attempt lies before a time, due or not: those whose window is over. */
  claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): Promise<readonly ClaimedShipment[]>
  /** Gives back what was claimed and not attempted. */
  release(shipments: readonly Shipment[]): void
  /** Resolves after the commit. Tries again by itself while the store is unavailable. */
  settle(settlement: Settlement): Promise<void>
}

// ── Control ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface LedgerRow {
  destinationId: string
  owed: number
  delivered: number
  pending: number
  failed: number
  expired: number
  cancelled: number
}

export interface Page<T> {
  data: T[]
  next: string | null
}

export interface PageRequest {
  limit: number
  cursor: string | null
}

export interface MessageFilter {
  sourceId?: string | undefined
  type?: string | undefined
  userId?: string | undefined
  messageId?: string | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

export interface StoredMessage {
  /** `segment-index`. */
  id: string
  segment: RowId
  index: number
  content: SegmentContent
  /** Where it was owed and where not and why, as planned when it was accepted. */
  deliveries: { id: string; destinationId: string }[]
  skips: { destinationId: string | null; reason: SkipReason }[]
}

export type DeliveryState = 'pending' | FinalStateName

export interface DeliveryFilter {
  destinationId?: string | undefined
  state?: DeliveryState | undefined
  reason?: string | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

export interface DeliveryRow {
  /** `origin-index`. */
  id: string
  destinationId: string
  messageId: string | null
  segment: RowId
  index: number
  state: DeliveryState
  reason: string | null
  /** Attempts made. */
  attempts: number
  replay: boolean
  /** When it came to its state; of a pending one, when it is due (null: at once). */
  atMs: number | null
}

export interface DeliveryDetail extends DeliveryRow {
  /** With the message, and those of its segment that were in the same last request; null when it was purged. */
  content: SegmentContent | null
  history: (RequestRecord & { attempt: number })[]
}

export interface RejectionRow {
  sourceId: string | null
  code: string
  count: number
  lastAtMs: number
  lastSample: string
}

export interface SourceCounts {
  sourceId: string
  accepted: number
  duplicates: number
  rejected: number
  suppressed: number
}

export interface NewDeletion {
  userIds: readonly string[]
  /** Null: every source there is. */
  sourceIds: readonly string[] | null
  suppress: boolean
}

export type DeletionState = 'pending' | 'running' | 'finished' | 'failed'

export interface DeletionSummary {
  id: string
  createdAtMs: number
  suppress: boolean
  userCount: number
  sourceIds: readonly string[]
  state: DeletionState
  /** Messages purged so far. */
  purged: number
}

export interface DeletionTarget {
  userId: string
  sourceId: string
  /** Null: the source has no enabled destination, and there is only the purge. */
  destinationId: string | null
  deliveryId: string | null
  state: DeletionState
}

export interface DeletionDetail extends DeletionSummary {
  targets: DeletionTarget[]
}

export type ReplayResult =
  | { ok: true; deliveryId: string }
  | { ok: false; reason: 'not_found' | 'still_pending' | 'message_gone' | 'destination_gone' }

export interface ControlStore {
  createSource(source: NewSource): Promise<Source>
  /** Undefined when there is no such source. Rejects with WriteKeyTaken. */
  updateSource(id: string, change: Partial<NewSource>): Promise<Source | undefined>
  deleteSource(id: string): Promise<boolean>
  createDestination(destination: NewDestination): Promise<Destination>
  updateDestination(id: string, change: Partial<NewDestination>): Promise<Destination | undefined>
  /** What it is still owed is cancelled, with the reason. */
  deleteDestination(id: string): Promise<boolean>

  /** Small values that are not part of the configuration: token hashes, the identity of the installation. */
  getSetting(name: string): Promise<string | undefined>
  setSetting(name: string, value: string): Promise<void>

  ledger(): Promise<LedgerRow[]>
  /** The same, counted from the rows. */
  recount(): Promise<LedgerRow[]>
  oldestPendingAtMs(destinationId: string): Promise<number | null>

  messages(filter: MessageFilter, page: PageRequest): Promise<Page<StoredMessage>>
  /** By `segment-index`, or by messageId: the newest one that has it. */
  message(id: string): Promise<StoredMessage | undefined>
  deliveries(filter: DeliveryFilter, page: PageRequest): Promise<Page<DeliveryRow>>
  delivery(id: string): Promise<DeliveryDetail | undefined>
  /** Owes the message to the destination once more, as a delivery of its own. */
  replay(deliveryId: string): Promise<ReplayResult>

  rejections(): Promise<RejectionRow[]>
  sourceCounts(): Promise<SourceCounts[]>

  createDeletion(deletion: NewDeletion): Promise<DeletionDetail>
  deletions(page: PageRequest): Promise<Page<DeletionSummary>>
  deletion(id: string): Promise<DeletionDetail | undefined>
  suppressions(page: PageRequest): Promise<Page<{ userId: string; sourceId: string; since: number }>>
  deleteSuppression(userId: string, sourceId: string | null): Promise<number>
}

/** A cursor that no list gave out. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}

export class WriteKeyTaken extends Error {
  override name = 'WriteKeyTaken'
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
  /** Whether a commit can be made now, tried by making one; what /readyz answers. */
  check(): Promise<{ ok: true } | { ok: false; message: string }>
  /** Drops whole days that are older than retention, in small steps. Called by a timer of the app, or by a test. */
  dropExpired(nowMs: number): Promise<void>
  /** Commits what was given before and closes. */
  close(): Promise<void>
}
