// Replays: send one delivery again, or many deliveries as a job.

import type { FinalStateName } from '../../model/messages.ts'
import type { Actor, Audit } from './audit.ts'
import type { Page, PageRequest } from './pages.ts'

export type ReplayResult =
  | { ok: true; deliveryId: string }
  | { ok: false; reason: 'not_found' | 'still_pending' | 'message_gone' | 'destination_gone' | 'holds_no_key' }

export type ReplayJobState = 'running' | 'paused' | 'finished' | 'cancelled'

/** Messages of the archive of a lake, by when they were received. */
export interface ArchiveSelection {
  /** The lake. */
  destinationId: string
  afterMs: number
  /** Exclusive. */
  beforeMs: number
  sourceId?: string | undefined
  event?: string | undefined
  userId?: string | undefined
}

/** The deliveries of a job: those that match a filter, those with the given ids, or new ones of messages from an archive. */
export type ReplaySelection = {
  /** If true, deliveries whose message was delivered again since are part of the job, too. A job sends each message once in any case. */
  includeReplayed?: boolean | undefined
  /** Only deliveries of messages of these sources; others count as unknown. Undefined: of all sources. */
  sourceIds?: readonly string[] | undefined
} & (
  | {
      /** Null means all destinations. */
      destinationId: string | null
      states: readonly FinalStateName[]
      reason: string | null
      /** The time range in which the delivery ended. */
      fromMs: number | null
      toMs: number | null
    }
  | { deliveryIds: readonly string[] }
  | { destinationId: string; archive: ArchiveSelection }
)

export interface NewReplayJob {
  selection: ReplaySelection
  /** Null means as fast as delivery can send them. */
  ratePerSecond: number | null
  createdBy: Actor | null
  /** For messages from an archive: about how many there are. */
  expected?: number | undefined
}

/** Why a delivery of the job was skipped. */
export type ReplaySkipReason =
  | 'already_replayed'
  | 'not_found'
  | 'still_pending'
  | 'message_gone'
  | 'destination_gone'
  | 'already_loaded'
  // Only of messages from an archive:
  | 'user_suppressed'
  | 'user_deleted'
  | 'filtered'
  | 'integrations_disabled'
  | 'historical'
  | 'unreadable'

/** How far a job with messages from an archive is. */
export interface ArchiveProgress {
  /** Opaque. Null at the beginning. */
  cursor: string | null
  /** When the last message that was replayed or skipped was received. */
  reachedMs: number | null
  /** Why the archive cannot be read. */
  problem: { code: string; message: string } | null
}

/** A message of an archive, in the order of the archive. */
export interface ArchivedMessage {
  sourceId: string
  receivedAtMs: number
  /** As an item of a segment, in JSON. Null if it is skipped. */
  text: string | null
  skip: ReplaySkipReason | null
  /** Where the archive continues after it. */
  cursor: string
}

export interface ReplayJob extends Omit<NewReplayJob, 'expected'> {
  id: string
  state: ReplayJobState
  /** The number of deliveries that matched when the job was created. Deliveries that match later are not part of the job. */
  total: number
  replayed: number
  skipped: Readonly<Partial<Record<ReplaySkipReason, number>>>
  /** The final states of the replayed deliveries. The others are pending. */
  ended: Readonly<Record<FinalStateName, number>>
  /** Changes with every step. The next step must give the current value, so that no two steps start from the same position. */
  position: number
  createdAtMs: number
  /** Null until the job has ended. */
  finishedAtMs: number | null
  /** Null if the job is not about an archive. */
  archive: ArchiveProgress | null
}

export interface ReplayJobFilter {
  state?: ReplayJobState | undefined
  /** Only jobs that are limited to some of these sources. */
  sourceIds?: readonly string[] | undefined
}

export interface ReplayCount {
  total: number
  /** How many of them are pending again or were delivered since. They would be skipped; with `includeReplayed`, only those that are pending. */
  alreadyReplayed: number
  byDestination: { destinationId: string; total: number; alreadyReplayed: number }[]
}

export interface ReplayJobChange {
  state?: Exclude<ReplayJobState, 'finished'> | undefined
  ratePerSecond?: number | null | undefined
}

export interface ReplayStep {
  id: string
  /** The position of the job, as last read. */
  position: number
  /** The maximum number of deliveries to replay. */
  limit: number
  /** A destination gets no more replays while this many deliveries of the job wait for their first attempt there. */
  maxWaiting: number
  /**
   * The unique name of the runner that makes this step. A runner leads the job from its first step until LEAD_MS after its last one, and steps of
   * other runners are rejected meanwhile. So the rate that the leader keeps is the rate of all nodes together. Steps without a runner are not
   * rejected for this reason.
   */
  runner?: string | undefined
  /** What comes next in the archive, if the job is about one; or why that could not be read. */
  archive?: ArchiveStep | undefined
}

export type ArchiveStep =
  | {
      /** The cursor before these messages. */
      from: string | null
      messages: readonly ArchivedMessage[]
      /** The cursor after all of them; null at the end of the archive. */
      next: string | null
    }
  /** `pause`: repeating it would not help. */
  | { from: string | null; problem: { code: string; message: string }; pause: boolean }

export type ReplayStepResult =
  /** `blocked`: no more can be replayed now, because replayed deliveries wait for their first attempt or the destination is disabled. */
  | { ok: true; job: ReplayJob; replayed: number; blocked: boolean }
  /** `moved`: another step was made from this position. `led`: another runner leads the job. */
  | { ok: false; reason: 'moved' | 'not_running' | 'led' }

export interface ReplayStore {
  /**
   * Sends the message to the destination again, as a new delivery. `resume`: the delivery holds a key of an ordered destination, and the new one becomes
   * the head of that key.
   */
  replay(deliveryId: string, audit?: Audit<{ deliveryId: string }>, options?: { resume?: boolean | undefined }): Promise<ReplayResult>
  /** Counts the deliveries that a job with this selection would have now. */
  count(selection: ReplaySelection): Promise<ReplayCount>
  create(job: NewReplayJob, audit?: Audit<ReplayJob>): Promise<ReplayJob>
  update(
    id: string,
    change: ReplayJobChange,
    audit?: Audit<ReplayJob>,
  ): Promise<{ ok: true; job: ReplayJob } | { ok: false; reason: 'not_found' | 'over' }>
  /** Newest first. */
  list(filter: ReplayJobFilter, page: PageRequest): Promise<Page<ReplayJob>>
  one(id: string): Promise<ReplayJob | undefined>
  /** Makes one step of a job, in one transaction: replays or skips its next deliveries, and updates the job. */
  step(step: ReplayStep): Promise<ReplayStepResult>
}
