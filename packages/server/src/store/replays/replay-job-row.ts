// Rows of replay jobs. The columns are the same in both adapters; only the row ids differ.

import { newId } from '../../model/new-id.ts'
import type { RowOrder } from '../encoding/row-port.ts'
import type { FinalStateName, NewReplayJob, ReplayJob, ReplayJobState, RowId } from '../store.ts'
import type { ReplayBudget } from './replay-budget.ts'

export interface ReplayJobRow<Id extends RowId> extends Record<FinalStateName, number> {
  num: Id
  id: string
  created_at: number
  finished_at: number | null
  state: ReplayJobState
  rate: number | null
  doc: string
  bound: Id
  total: number
  position: number
  replayed: number
  skipped: string
}

/** The same condition as in the index replays_that_stand, so that pending and delivered replays are found quickly among many that failed. */
export const PENDING_OR_DELIVERED = "(state IS NULL OR state IN ('retrying', 'delivered'))"

/** In the place of the state, for the first delivery of a message that was released from quarantine. It is no replay, and does not change. */
export const RELEASED = 'released'

export type ReplayDoc = Pick<NewReplayJob, 'selection' | 'createdBy'>

export function replayDoc(row: { doc: string }): ReplayDoc {
  return JSON.parse(row.doc) as ReplayDoc
}

export function newReplayJob(job: NewReplayJob, total: number, createdAtMs: number): ReplayJob {
  return {
    ...job,
    id: newId('rpl'),
    state: 'running',
    total,
    replayed: 0,
    skipped: {},
    ended: { delivered: 0, failed: 0, expired: 0, cancelled: 0 },
    position: 0,
    createdAtMs,
    finishedAtMs: null,
  }
}

export function replayJobOf(row: ReplayJobRow<RowId>): ReplayJob {
  const { id, state, rate, total, replayed, position, delivered, failed, expired, cancelled } = row
  return {
    ...replayDoc(row),
    id,
    state,
    ratePerSecond: rate,
    total,
    replayed,
    skipped: JSON.parse(row.skipped) as ReplayJob['skipped'],
    ended: { delivered, failed, expired, cancelled },
    position,
    createdAtMs: row.created_at,
    finishedAtMs: row.finished_at,
  }
}

/** The row ids of a time range, below the job's bound: see common-replay-store.ts. */
export function rowRange<Id extends RowId>(
  order: RowOrder<Id>,
  { fromMs, toMs }: { fromMs: number | null; toMs: number | null },
  bound: Id,
): { first: Id; last: Id } {
  const lastInTime = toMs === null ? order.newest : order.before(order.at(toMs + 1))
  const lastInSet = order.before(bound)
  return { first: fromMs === null ? order.oldest : order.at(fromMs), last: lastInTime < lastInSet ? lastInTime : lastInSet }
}

export interface ReplayProgress {
  replayed: number
  skipped: string
  /** Never less than the number of deliveries that were replayed or skipped. */
  total: number
  state: ReplayJobState
  finishedAtMs: number | null
}

/** The progress of a job after a step. */
export function progressOf<Id extends RowId>(
  row: ReplayJobRow<Id>,
  budget: ReplayBudget<Id>,
  isOver: boolean,
  atMs: number,
): ReplayProgress {
  const skipped: Record<string, number> = { ...(JSON.parse(row.skipped) as ReplayJob['skipped']) }
  for (const [reason, count] of budget.skipped) skipped[reason] = (skipped[reason] ?? 0) + count
  const replayed = row.replayed + budget.replayed
  const done = (): number => replayed + Object.values(skipped).reduce((sum, count) => sum + count, 0)
  // These rows were dropped by retention after they were counted.
  const missing = row.total - done()
  if (isOver && missing > 0) skipped['message_gone'] = (skipped['message_gone'] ?? 0) + missing
  return {
    replayed,
    skipped: JSON.stringify(skipped),
    // Rows that were committed only after the job's rows were counted also belong to the job: see common-replay-store.ts.
    total: Math.max(row.total, done()),
    state: isOver ? 'finished' : row.state,
    finishedAtMs: isOver ? atMs : null,
  }
}
