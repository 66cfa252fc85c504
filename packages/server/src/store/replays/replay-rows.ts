// The rows of replays, as an adapter gives them: jobs and counts, each question a snapshot or a transaction of its own; and what one
// transaction asks that owes deliveries again.

import type { Awaitable, RowOrder } from '../encoding/row-port.ts'
import type { NamedDelivery, OriginRows, RowAndIndex } from '../history/named-deliveries.ts'
import type { NewAuditEntry } from '../port/audit.ts'
import type { FinalStateName, RowId } from '../port/model.ts'
import type { ReplayJob, ReplayJobState, ReplayResult, ReplayStep, ReplayStepResult } from '../port/replays.ts'
import type { ReplayJobRow, ReplayProgress } from './replay-job-row.ts'

// ── Jobs, and what one would be made for ──

/** Rows of a destination that came to a state, by their names. */
export interface CountedRows<Id extends RowId> {
  destinationId: string
  first: Id
  last: Id
  limit: number
}

export interface CountedFailures<Id extends RowId> extends CountedRows<Id> {
  state: FinalStateName
  reason: string | null
  /** Where a later delivery of the message came to one of these, that is the one which is repeated. */
  instead: readonly FinalStateName[]
}

export interface RowCount<Id extends RowId> {
  /** Rows that were looked at, and the last of them. */
  seen: number
  newest: Id | null
  /** Deliveries among them. */
  total: number
  /** Of those, how many have a later delivery of the same message that is pending or was delivered. */
  replayed: number
}

/** A job to be written, with where each of its parts begins. */
export interface NewJobRow<Id extends RowId> {
  job: ReplayJob
  bound: Id
  first: Id
  /** One part each. Null: one part, for deliveries that are named. */
  destinationIds: readonly string[] | null
}

/** What somebody can change of a job. */
export type JobSettings = Pick<ReplayJob, 'state' | 'ratePerSecond' | 'finishedAtMs'>

export type ReplayReply = Extract<ReplayResult, { ok: false }> | (Extract<ReplayResult, { ok: true }> & { destinationId: string })
export type StepRefusal = Extract<ReplayStepResult, { ok: false }>
export type StepReply = StepRefusal | (Extract<ReplayStepResult, { ok: true }> & { destinationIds: readonly string[] })

export interface ReplayJobRows<Id extends RowId> {
  readonly order: RowOrder<Id>
  /** A name after every row that is committed now. */
  bound(): Promise<Id>
  countFailures(rows: CountedFailures<Id>): Promise<RowCount<Id>>
  /** `total` and `replayed` count messages, of which one attempt may have delivered many. */
  countDelivered(rows: CountedRows<Id>): Promise<RowCount<Id>>
  /** Those of them that there are. */
  countNamed(deliveryIds: readonly string[]): Promise<readonly { destinationId: string; replayed: boolean }[]>
  /** Newest first. */
  newest(state: ReplayJobState | undefined, last: Id, limit: number): Promise<readonly ReplayJobRow<Id>[]>
  one(id: string): Promise<ReplayJobRow<Id> | undefined>
  insert(job: NewJobRow<Id>, audit: NewAuditEntry | undefined): Promise<void>
  /** False: its state or its rate is not what it was before, so nothing was changed. */
  change(id: string, before: JobSettings, after: JobSettings, atMs: number, audit: NewAuditEntry | undefined): Promise<boolean>
  /** `replayOne`, in one transaction with the audit entry if it was replayed. */
  replay(deliveryId: string, atMs: number, audit: NewAuditEntry | undefined): Promise<ReplayReply>
  /** `makeStep`, in one transaction. */
  step(step: ReplayStep): Promise<StepReply>
}

// ── Inside one transaction ──

/** Where a part of a job stands: which of the job's states, from which row (or which of the names), from which place in it. */
export interface Place<Id extends RowId> {
  state: number
  next: Id | number
  place: number
}

export interface PartRow<Id extends RowId> extends Place<Id> {
  /** Null: the deliveries that are named. */
  destination: Id | null
  /** Replayed and not attempted yet. */
  waiting: number
  /** The destination is disabled: it is owed nothing more until it is enabled. A paused one is owed as ever. */
  held: boolean
  over: boolean
}

export interface JobStanding {
  state: ReplayJobState
  position: number
  /** Whether another runner than the one that asks leads it. */
  led: boolean
}

export interface FailedDelivery<Id extends RowId> extends Omit<NamedDelivery<Id>, 'destination'> {
  id: Id
  reason: string | null
}

/** Other deliveries of the same message to the same destination. */
export interface SameMessage<Id extends RowId> {
  /** Whether another is pending, or was delivered later. */
  standing: boolean
  /** Whether the job has made one, however it ended. */
  ofJob: boolean
  newest: Id | null
  /** What the delivery itself repeats. */
  parent: RowAndIndex<Id> | undefined
}

/** Messages of one segment, owed to one destination as one shipment. */
export interface OwedAgain<Id extends RowId> {
  destination: Id
  segment: Id
  /** Of the segment, as stored. */
  bytes: number
  entries: readonly { index: number; replayOf: string }[]
}

export interface ReplayRows<Id extends RowId> extends OriginRows<Id> {
  readonly order: RowOrder<Id>

  /** Held until the transaction is over: steps are made one at a time. */
  job(step: Pick<ReplayStep, 'id' | 'runner'>): Awaitable<(ReplayJobRow<Id> & JobStanding) | undefined>
  /** Those that are not over, in the order of their turns, with what is waiting now. */
  parts(job: Id): Awaitable<readonly Omit<PartRow<Id>, 'over'>[]>
  /** With what was owed in this turn. */
  saveParts(job: ReplayJobRow<Id>, parts: readonly (PartRow<Id> & { owed: number })[]): Awaitable<void>
  /** Without progress, only who leads it. Answers with the job as it is then. */
  saveJob(job: ReplayJobRow<Id>, progress: ReplayProgress | undefined, runner: string | undefined): Awaitable<ReplayJobRow<Id>>

  /** Oldest first. */
  failures(rows: { destination: Id; state: FinalStateName; first: Id; last: Id; limit: number }): Awaitable<readonly FailedDelivery<Id>[]>
  /** Oldest first, with the size of the doc; 0: it delivered nothing. */
  attempts(rows: {
    destination: Id
    first: Id
    last: Id
    limit: number
  }): Awaitable<readonly { id: Id; origin: Id; segment: Id; bytes: number }[]>
  /** JSON of AttemptDoc, by the names of attempts. */
  attemptDocs(attempts: readonly Id[]): Awaitable<readonly { id: Id; doc: string }[]>
  /** Of the attempts that ended something: those of one origin after those of another, in their order. Who has enough stops. */
  docs(origins: readonly Id[]): Iterable<{ origin: Id; doc: string }> | AsyncIterable<{ origin: Id; doc: string }>

  /** Held against deletion until the transaction is over: whoever deletes one then cancels what it is owed. */
  destinations(nums: readonly Id[]): Awaitable<readonly { num: Id; id: string; deleted: boolean }[]>
  /** In the order of the deliveries. */
  sameMessages(deliveries: readonly NamedDelivery<Id>[], job: { num: Id; bound: Id }): Awaitable<readonly SameMessage<Id>[]>
  /** Their stored sizes. Held against being dropped until the transaction is over; those that are not found are gone. */
  segments(seqs: readonly Id[]): Awaitable<readonly { seq: Id; bytes: number }[]>
  bodies(seqs: readonly Id[]): Awaitable<readonly { seq: Id; absent: readonly number[]; body: Uint8Array }[]>
  /** Whether there are deletion requests, so that messages may have been purged. */
  hasDeletions(): Awaitable<boolean>

  /** The shipments' names. In each, every delivery has its own name. A delete message that is owed again opens its request again. */
  owe(shipments: readonly OwedAgain<Id>[], job: Id | null, atMs: number): Awaitable<readonly Id[]>
}
