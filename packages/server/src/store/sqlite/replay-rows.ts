// Rows of replay jobs, and what they mean. Written by the writing thread, read by both.

import { NEWEST } from '../encoding/paging.ts'
import type { FinalStateName, NewReplayJob, ReplayJob, ReplayJobState } from '../store.ts'
import { rowIdAt } from './ids.ts'

export interface ReplayJobRow extends Record<FinalStateName, number> {
  num: number
  id: string
  created_at: number
  finished_at: number | null
  state: ReplayJobState
  rate: number | null
  doc: string
  bound: number
  total: number
  position: number
  replayed: number
  skipped: string
}

/** Pending or delivered. As the index of these rows has it, so that they are found among however many that failed. */
export const STANDS = "(state IS NULL OR state IN ('retrying', 'delivered'))"

export type ReplayDoc = Pick<NewReplayJob, 'selection' | 'createdBy'>

export function replayDoc(row: ReplayJobRow): ReplayDoc {
  return JSON.parse(row.doc) as ReplayDoc
}

export function replayJobOf(row: ReplayJobRow): ReplayJob {
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

/** The rows of a period, by their numbers, below the bound that fixed the job's set. */
export function rowRange(fromMs: number | null, toMs: number | null, bound: number): { first: number; last: number } {
  return { first: fromMs === null ? 0 : rowIdAt(fromMs), last: Math.min(bound - 1, toMs === null ? NEWEST : rowIdAt(toMs + 1) - 1) }
}
