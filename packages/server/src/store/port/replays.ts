// Replays: send one delivery again, or many deliveries as a job.

import type { FinalStateName } from '../../model/messages.ts'
import type { Actor, Audit } from './audit.ts'
import type { Page, PageRequest } from './pages.ts'

export type ReplayResult =
  | { ok: true; deliveryId: string }
  | { ok: false; reason: 'not_found' | 'still_pending' | 'message_gone' | 'destination_gone' | 'holds_no_key' }

export type ReplayJobState = 'running' | 'paused' | 'finished' | 'cancelled'

/** The deliveries of a job: those that match a filter, or those with the given ids. */
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
)

export interface NewReplayJob {
  selection: ReplaySelection
  /** Null means as fast as delivery can send them. */
  ratePerSecond: number | null
  createdBy: Actor | null
}

/** Why a delivery of the job was skipped. */
export type ReplaySkipReason = 'already_replayed' | 'not_found' | 'still_pending' | 'message_gone' | 'destination_gone'

export interface ReplayJob extends NewReplayJob {
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
}

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
