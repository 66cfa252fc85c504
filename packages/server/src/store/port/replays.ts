// Replays: one delivery is sent again, or many as a job.

import type { Actor, Audit } from './audit.ts'
import type { FinalStateName } from './model.ts'
import type { Page, PageRequest } from './pages.ts'

export type ReplayResult =
  | { ok: true; deliveryId: string }
  | { ok: false; reason: 'not_found' | 'still_pending' | 'message_gone' | 'destination_gone' }

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

export interface ReplayStore {
  /** Owes the message to the destination once more, as a delivery of its own. */
  replay(deliveryId: string, audit?: Audit<{ deliveryId: string }>): Promise<ReplayResult>
  /** What a job made of this now would be made for. */
  count(selection: ReplaySelection): Promise<ReplayCount>
  create(job: NewReplayJob, audit?: Audit<ReplayJob>): Promise<ReplayJob>
  update(
    id: string,
    change: ReplayJobChange,
    audit?: Audit<ReplayJob>,
  ): Promise<{ ok: true; job: ReplayJob } | { ok: false; reason: 'not_found' | 'over' }>
  /** Newest first. */
  list(filter: { state?: ReplayJobState | undefined }, page: PageRequest): Promise<Page<ReplayJob>>
  one(id: string): Promise<ReplayJob | undefined>
  /** A little of a job, in one transaction: the next of its deliveries are owed again or skipped, and the job says so. */
  step(step: ReplayStep): Promise<ReplayStepResult>
}
