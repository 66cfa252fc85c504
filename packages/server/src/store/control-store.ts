// The part of the store's port that operators use, through the control API, the dashboard and the command line. Changes
// that a person makes carry an Audit, so that who did what is in the same transaction as what was done.

import type { JsonObject } from '@switchyard/protocol'
import type {
  Destination,
  FinalStateName,
  NewDestination,
  NewSource,
  RequestRecord,
  RowId,
  SegmentContent,
  SkipReason,
  Source,
} from './model.ts'

// ── Who did what ────────────────────────────────────────────────────────────────────────────────────────────────────

export type Role = 'admin' | 'viewer'

/** Who makes a change: a control token. */
export interface Actor {
  id: string
  name: string
}

export interface NewAuditEntry {
  actor: Actor
  /** The thing and what was done to it: `source.update`. */
  action: string
  /** The thing's id. */
  subject: string | null
  /** As answers show it, so without secrets; null where there was nothing before, or is nothing after. */
  before: JsonObject | null
  after: JsonObject | null
}

export interface AuditEntry extends NewAuditEntry {
  id: string
  atMs: number
}

/** Says what to write down about a change. It is written in the change's own transaction, and not if nothing was changed. */
export type Audit<T> = (after: T | null, before: T | null) => NewAuditEntry

export interface AuditFilter {
  actorId?: string | undefined
  action?: string | undefined
  subject?: string | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

// ── What is asked ───────────────────────────────────────────────────────────────────────────────────────────────────

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

// ── The port ────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ControlStore {
  createSource(source: NewSource, audit?: Audit<Source>): Promise<Source>
  /** Undefined when there is no such source. Rejects with WriteKeyTaken. */
  updateSource(id: string, change: Partial<NewSource>, audit?: Audit<Source>): Promise<Source | undefined>
  deleteSource(id: string, audit?: Audit<Source>): Promise<boolean>
  createDestination(destination: NewDestination, audit?: Audit<Destination>): Promise<Destination>
  updateDestination(id: string, change: Partial<NewDestination>, audit?: Audit<Destination>): Promise<Destination | undefined>
  /** What it is still owed is cancelled, with the reason. */
  deleteDestination(id: string, audit?: Audit<Destination>): Promise<boolean>

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
  replay(deliveryId: string, audit?: Audit<{ deliveryId: string }>): Promise<ReplayResult>

  rejections(): Promise<RejectionRow[]>
  sourceCounts(): Promise<SourceCounts[]>

  createDeletion(deletion: NewDeletion, audit?: Audit<NewDeletion & { id: string }>): Promise<DeletionDetail>
  deletions(page: PageRequest): Promise<Page<DeletionSummary>>
  deletion(id: string): Promise<DeletionDetail | undefined>
  suppressions(page: PageRequest): Promise<Page<{ userId: string; sourceId: string; since: number }>>
  deleteSuppression(userId: string, sourceId: string | null, audit?: Audit<{ userId: string; sourceId: string | null }>): Promise<number>

  /** What was changed, by whom, newest first. */
  audit(filter: AuditFilter, page: PageRequest): Promise<Page<AuditEntry>>
}

/** A cursor that no list gave out. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}

export class WriteKeyTaken extends Error {
  override name = 'WriteKeyTaken'
}
