// The part of the store's port that operators use, through the control API, the dashboard and the command line. Changes
// that a person makes carry an Audit, so that who did what is in the same transaction as what was done.

import type { JsonObject } from '@switchyard/protocol'
import type { ChangeOf, FromStored } from './from-stored.ts'
import type {
  ControlToken,
  Destination,
  FilterRule,
  FinalStateName,
  NewControlToken,
  NewDestination,
  NewOAuthApp,
  NewSource,
  OAuthApp,
  Part,
  RequestRecord,
  RowId,
  SegmentContent,
  SkipReason,
  Source,
} from './model.ts'

// ── Who did what ────────────────────────────────────────────────────────────────────────────────────────────────────

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
  event?: string | undefined
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
  skips: { destinationId: string | null; reason: SkipReason; rule?: FilterRule }[]
}

export interface MessageTrail extends StoredMessage {
  /** How often its messageId came again within a day and was dropped as a duplicate. */
  repeats: { count: number; lastAtMs: number } | null
}

export type DeliveryState = 'pending' | FinalStateName

export interface DeliveryFilter {
  destinationId?: string | undefined
  state?: DeliveryState | undefined
  reason?: string | undefined
  /** Of a message of this user: by userId, anonymousId or previousId. */
  userId?: string | undefined
  /** Of a message with this event. */
  event?: string | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** What the message of a delivery says of itself; all null when it is no longer stored. */
export interface MessageNames {
  messageId: string | null
  type: string | null
  event: string | null
  userId: string | null
  anonymousId: string | null
}

export interface CauseFilter {
  destinationId?: string | undefined
  state?: Exclude<FinalStateName, 'delivered'> | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** Deliveries that came to the same end for the same reason. */
export interface FailureCause {
  destinationId: string
  state: Exclude<FinalStateName, 'delivered'>
  reason: string | null
  count: number
  firstAtMs: number
  lastAtMs: number
  /** The newest of them. */
  deliveryId: string
  /** Whether older ones of the same destination and state were not looked at. */
  isPartial: boolean
}

export interface FailureCauses {
  /** The one with the newest failure first. */
  causes: FailureCause[]
  /** How many failures were looked at. */
  looked: number
}

export interface DeliveryRow extends MessageNames {
  /** `origin-index`. */
  id: string
  destinationId: string
  segment: RowId
  index: number
  state: DeliveryState
  reason: string | null
  /** Attempts made. */
  attempts: number
  replay: boolean
  /** When it came to its state; of a pending one, when it is due (null: at once). */
  atMs: number | null
  /** Of a replay: the delivery that it repeats, and the job that it belongs to if one made it. */
  replayOf: string | null
  replayJobId: string | null
  /** The newest delivery of the message to the same destination, if that is a later one. */
  replayedBy: string | null
}

export interface DeliveryDetail extends DeliveryRow {
  /** With the message, and those of its segment that were in the same last request; null when it was purged. */
  content: SegmentContent | null
  history: (RequestRecord & { attempt: number })[]
  /** When it came to be owed. */
  owedAtMs: number
  /** Where the last request carried messages of several calls: all of them, in order, as far as they are still stored. */
  gathered: readonly GatheredPart[] | null
}

export interface GatheredPart extends Part {
  /** With the messages that the request carried; null when they are no longer stored, or all together too large. */
  content: SegmentContent | null
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

export interface OldestPending {
  destinationId: string
  atMs: number
}

// ── Counts over time ────────────────────────────────────────────────────────────────────────────────────────────────

export type StatKind = 'source' | 'destination' | 'all'

/** Counts to be added to a minute: names as in stat-counts.ts. */
export interface StatRow {
  kind: StatKind
  /** The id of the source or destination; empty for all together. */
  subject: string
  /** Within the minute. */
  atMs: number
  counts: Readonly<Record<string, number>>
}

export interface StatQuery {
  kind: StatKind
  subject: string
  /** Multiples of the step; `toMs` itself is not asked for. */
  fromMs: number
  toMs: number
  /** Whole minutes, or whole hours: those are kept for longer. */
  stepMs: number
}

export interface StatPoint {
  /** Where the step begins: a multiple of it. */
  atMs: number
  counts: Record<string, number>
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

export interface DeletionFilter {
  state?: DeletionState | undefined
  userId?: string | undefined
}

export interface DeletionTarget {
  /** As it was given; of a request that ended before the retention time, its pseudonym. */
  userId: string
  sourceId: string
  /** Null: the source has no enabled destination, and there is only the purge. */
  destinationId: string | null
  deliveryId: string | null
  state: DeletionState
}

export interface DeletionDetail extends DeletionSummary {
  /** How many of its targets are in each state. */
  targetCounts: Record<DeletionState, number>
  /** The first 1,000 of them, as of the same moment. */
  firstTargets: Page<DeletionTarget>
}

/** A user whose new messages a source drops. */
export interface Suppression {
  userId: string
  sourceId: string
  since: number
}

export interface NewSuppressions {
  userIds: readonly string[]
  /** Null: every source there is. */
  sourceIds: readonly string[] | null
}

export interface SuppressionFilter {
  userId?: string | undefined
  sourceId?: string | undefined
}

export type ReplayResult =
  | { ok: true; deliveryId: string }
  | { ok: false; reason: 'not_found' | 'still_pending' | 'message_gone' | 'destination_gone' }

// ── Replays of many ─────────────────────────────────────────────────────────────────────────────────────────────────

export type ReplayJobState = 'running' | 'paused' | 'finished' | 'cancelled'

/** Which deliveries: those that match, or those that are named. */
export type ReplaySelection =
  | {
      /** Null: of every destination there is. */
      destinationId: string | null
      states: readonly FinalStateName[]
      reason: string | null
      /** When the delivery came to its state. */
      fromMs: number | null
      toMs: number | null
    }
  | { deliveryIds: readonly string[] }

export interface NewReplayJob {
  selection: ReplaySelection
  /** Null: as fast as delivery takes them. */
  ratePerSecond: number | null
  createdBy: Actor | null
}

/** Why a delivery of the job was not sent again. */
export type ReplaySkipReason = 'already_replayed' | 'not_found' | 'still_pending' | 'message_gone' | 'destination_gone'

export interface ReplayJob extends NewReplayJob {
  id: string
  state: ReplayJobState
  /** How many it was made for. What came to its state later is not part of it. */
  total: number
  replayed: number
  skipped: Readonly<Partial<Record<ReplaySkipReason, number>>>
  /** What became of those that were replayed; the rest of them is pending. */
  ended: Readonly<Record<FinalStateName, number>>
  /** Changes with every step: what the next one is told, so that no two are made from the same place. */
  position: number
  createdAtMs: number
  /** When it came to its end. Null before. */
  finishedAtMs: number | null
}

export interface ReplayCount {
  total: number
  /** Of those, how many are pending again or were delivered since, and would be skipped. */
  alreadyReplayed: number
  byDestination: { destinationId: string; total: number; alreadyReplayed: number }[]
}

export interface ReplayJobChange {
  state?: Exclude<ReplayJobState, 'finished'> | undefined
  ratePerSecond?: number | null | undefined
}

export interface ReplayStep {
  id: string
  /** Of the job, as it was last seen. */
  position: number
  /** Most deliveries to owe again. */
  limit: number
  /** No more is owed to a destination while so much of the job waits for its first attempt there. */
  maxWaiting: number
  /**
   * Who makes the job's steps, by a name that no other has. It leads the job from its first step until LEAD_MS after its last, and
   * other runners are refused: so the pace that it keeps is that of all nodes together. Steps of nobody are not refused for it.
   */
  runner?: string | undefined
}

export type ReplayStepResult =
  /** `blocked`: nothing more can be done now, as what was replayed waits or the destination is disabled. */
  | { ok: true; job: ReplayJob; replayed: number; blocked: boolean }
  /** Another step was made from there, the job is not running, or another runner leads it. */
  | { ok: false; reason: 'moved' | 'not_running' | 'led' }

/** A look at everything that is stored, all of it at one moment. */
export interface StoreInspection {
  /** What the database has against its own files; empty when they are whole. With any, nothing else was looked at. */
  problems: string[]
  ledger: LedgerRow[]
  /** The same, counted from the rows: must be equal. */
  recount: LedgerRow[]
  oldestMessageAtMs: number | null
  /** The ids of the keys that stored secrets are encrypted with: see secret-box.ts. */
  secretKeyIds: string[]
  storedBytes: number
}

// ── The port ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Throws to refuse the deletion of the resource as it is stored. */
export type Check<Thing> = (before: Thing) => void

export interface ControlStore {
  createSource(source: FromStored<NewSource>, audit?: Audit<Source>): Promise<Source>
  /** Undefined when there is no such source. Rejects with WriteKeyTaken. */
  updateSource(id: string, change: ChangeOf<Source, NewSource>, audit?: Audit<Source>): Promise<Source | undefined>
  deleteSource(id: string, audit?: Audit<Source>, check?: Check<Source>): Promise<boolean>
  createDestination(destination: FromStored<NewDestination>, audit?: Audit<Destination>): Promise<Destination>
  updateDestination(id: string, change: ChangeOf<Destination, NewDestination>, audit?: Audit<Destination>): Promise<Destination | undefined>
  /** What it is still owed is cancelled, with the reason. */
  deleteDestination(id: string, audit?: Audit<Destination>, check?: Check<Destination>): Promise<boolean>
  createOAuthApp(app: FromStored<NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp>
  updateOAuthApp(id: string, change: ChangeOf<OAuthApp, NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp | undefined>
  deleteOAuthApp(id: string, audit?: Audit<OAuthApp>, check?: Check<OAuthApp>): Promise<boolean>

  createToken(token: FromStored<NewControlToken>, audit?: Audit<ControlToken>): Promise<ControlToken>
  deleteToken(id: string, audit?: Audit<ControlToken>): Promise<boolean>
  /** When each token was last used, as far as that was told; those never used are left out. */
  tokenUses(): Promise<{ id: string; atMs: number }[]>
  /** Written down soon. Does nothing to a token that is gone, and never sets a time back. */
  useToken(id: string, atMs: number): Promise<void>

  /** Small values that are not part of the configuration: token hashes, the identity of the installation. */
  getSetting(name: string): Promise<string | undefined>
  setSetting(name: string, value: string): Promise<void>

  ledger(): Promise<LedgerRow[]>
  /** The same, counted from the rows. */
  recount(): Promise<LedgerRow[]>
  oldestPendingAtMs(destinationId: string): Promise<number | null>
  /** Reads everything there is, beside all other work. Undefined when it is not over by then. */
  inspect(deadlineMs: number): Promise<StoreInspection | undefined>
  /** The same of every destination that is owed something, in one question. */
  oldestPending(): Promise<OldestPending[]>

  messages(filter: MessageFilter, page: PageRequest): Promise<Page<StoredMessage>>
  /** By `segment-index`, or by messageId: the newest one that has it. */
  message(id: string): Promise<StoredMessage | undefined>
  /** Every message of this id or messageId, newest first and no more than 20; also one whose content was purged, whose item is null. */
  trails(id: string): Promise<MessageTrail[]>
  deliveries(filter: DeliveryFilter, page: PageRequest): Promise<Page<DeliveryRow>>
  delivery(id: string): Promise<DeliveryDetail | undefined>
  /** What did not end as delivered, by cause: of FAILURES_LOOKED_AT at most, the newest of each destination and state. */
  failureCauses(filter: CauseFilter): Promise<FailureCauses>
  /** Owes the message to the destination once more, as a delivery of its own. */
  replay(deliveryId: string, audit?: Audit<{ deliveryId: string }>): Promise<ReplayResult>

  /** What a job made of this now would be made for. */
  countReplay(selection: ReplaySelection): Promise<ReplayCount>
  createReplay(job: NewReplayJob, audit?: Audit<ReplayJob>): Promise<ReplayJob>
  updateReplay(
    id: string,
    change: ReplayJobChange,
    audit?: Audit<ReplayJob>,
  ): Promise<{ ok: true; job: ReplayJob } | { ok: false; reason: 'not_found' | 'over' }>
  /** Newest first. */
  replays(filter: { state?: ReplayJobState | undefined }, page: PageRequest): Promise<Page<ReplayJob>>
  replayJob(id: string): Promise<ReplayJob | undefined>
  /** A little of a job, in one transaction: the next of its deliveries are owed again or skipped, and the job says so. */
  replayStep(step: ReplayStep): Promise<ReplayStepResult>

  rejections(): Promise<RejectionRow[]>
  sourceCounts(): Promise<SourceCounts[]>

  /** Adds to what is there. Rejects with StoreUnavailable when none of it was added. */
  addStats(rows: readonly StatRow[]): Promise<void>
  /** The steps in which anything was counted, in order. */
  stats(query: StatQuery): Promise<StatPoint[]>

  createDeletion(deletion: FromStored<NewDeletion>, audit?: Audit<NewDeletion & { id: string }>): Promise<DeletionDetail>
  deletions(filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionSummary>>
  deletion(id: string): Promise<DeletionDetail | undefined>
  /** Per user, source and destination; none when there is no such deletion. */
  deletionTargets(id: string, filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionTarget>>
  suppressions(filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>>
  /** Drops the users' new messages from now on; says how many were not dropped before. Rejects for a source that is not there. */
  createSuppressions(suppressions: FromStored<NewSuppressions>, audit?: Audit<NewSuppressions>): Promise<number>
  deleteSuppression(userId: string, sourceId: string | null, audit?: Audit<{ userId: string; sourceId: string | null }>): Promise<number>

  /** The name under which a user stands in what is kept for long: the audit log, and deletion requests that ended long ago. */
  pseudonym(userId: string): Promise<string>
  /** What was changed, by whom, newest first. Kept for 400 days, or as long as messages if they are kept longer. */
  audit(filter: AuditFilter, page: PageRequest): Promise<Page<AuditEntry>>
  /** Writes down what was done that changes nothing here: a login, a test. */
  noteAudit(entry: NewAuditEntry): Promise<void>
}

/** A cursor that no list gave out. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}

export class WriteKeyTaken extends Error {
  override name = 'WriteKeyTaken'
}
