// Rows of replay jobs, and their states. The columns are the same in both adapters; only the row ids differ.

import { newId } from '../../model/new-id.ts'
import type { RowOrder } from '../encoding/sql.ts'
import type {
  ArchiveProgress,
  FinalStateName,
  NewReplayJob,
  ReplayJob,
  ReplayJobChange,
  ReplayJobState,
  ReplaySelection,
  RowId,
} from '../store.ts'
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

export interface ReplayDoc extends Pick<NewReplayJob, 'selection' | 'createdBy'> {
  archive?: ArchiveProgress | undefined
}

const AT_BEGINNING: ArchiveProgress = { cursor: null, reachedMs: null, problem: null }

export function archiveProgress({ selection, archive }: ReplayDoc): ArchiveProgress | null {
  return 'archive' in selection ? (archive ?? AT_BEGINNING) : null
}

/** A node of an earlier version, which does not know `limited`, sees a job that selects nothing, and ends it. */
interface StoredReplayDoc extends ReplayDoc {
  limited?: ReplaySelection
}
const SELECTS_NOTHING: ReplaySelection = { destinationId: null, states: [], reason: null, fromMs: null, toMs: null }

export function replayDoc(row: { doc: string }): ReplayDoc {
  const { limited, selection, ...rest } = JSON.parse(row.doc) as StoredReplayDoc
  return { ...rest, selection: limited ?? selection }
}

export function replayDocText({ selection, createdBy, archive }: ReplayDoc): string {
  const isKnown = selection.sourceIds === undefined && !('archive' in selection)
  const stored: StoredReplayDoc = isKnown
    ? { selection, createdBy }
    : { selection: SELECTS_NOTHING, limited: selection, createdBy, archive }
  return JSON.stringify(stored)
}

/** Whether a job is limited to sources, and to no others than these. */
export function isLimitedTo(sourceIds: readonly string[], { selection }: Pick<ReplayJob, 'selection'>): boolean {
  return selection.sourceIds?.every((id) => sourceIds.includes(id)) ?? false
}

export function newReplayJob({ expected: _expected, ...job }: NewReplayJob, total: number, createdAtMs: number): ReplayJob {
  return {
    ...job,
    archive: archiveProgress(job),
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
  const doc = replayDoc(row)
  return {
    ...doc,
    archive: archiveProgress(doc),
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

/** The new state, by the current state and the requested one. Null if the change is not possible. `finished` cannot be requested. Total, so the compiler reports a missing case. */
export const REPLAY_TRANSITIONS: Record<ReplayJobState, Record<NonNullable<ReplayJobChange['state']>, ReplayJobState | null>> = {
  running: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  paused: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  finished: { running: null, paused: null, cancelled: null },
  cancelled: { running: null, paused: null, cancelled: 'cancelled' },
}

/** Whether a job in this state has ended, so that its rate can no longer be changed. */
export const IS_REPLAY_OVER: Record<ReplayJobState, boolean> = { running: false, paused: false, finished: true, cancelled: true }

/** How long a runner leads a job after its last step. Longer than the second in which a rate is counted, so that the rate is not exceeded when another runner takes over. */
export const LEAD_MS = 3_000
