// Replay jobs as rows, and which rows a job is made for. What a settling transaction has appended and no step has added up yet is
// counted with the job, in one snapshot.

import type { ReplayJobRow } from '../../replays/replay-job-row.ts'
import { NEWEST, OLDEST, rowIdAt } from '../schema/ids.ts'

export type JobRow = ReplayJobRow<string>

const sum = (column: string): string => `j.${column} + coalesce(o.${column}, 0) AS ${column}`

/** To be followed by WHERE. */
export const SELECT_JOBS = `
  SELECT j.num, j.id, j.created_at, j.finished_at, j.state, j.rate, j.doc, j.bound, j.total, j.position, j.replayed, j.skipped,
         ${['delivered', 'failed', 'expired', 'cancelled'].map(sum).join(', ')}
  FROM replay_jobs j LEFT JOIN LATERAL (
    SELECT sum(delivered) AS delivered, sum(failed) AS failed, sum(expired) AS expired, sum(cancelled) AS cancelled
    FROM replay_outcomes WHERE job = j.num) o ON true`

/** The rows of a period, by their names, below the bound that fixed the job's set. */
export function rowRange(fromMs: number | null, toMs: number | null, bound: string): { first: string; last: string } {
  const [lastInTime, lastInSet] = [toMs === null ? NEWEST : rowIdBefore(rowIdAt(toMs + 1)), rowIdBefore(bound)]
  return { first: fromMs === null ? OLDEST : rowIdAt(fromMs), last: lastInTime < lastInSet ? lastInTime : lastInSet }
}

function rowIdBefore(id: string): string {
  return String(BigInt(id) - 1n)
}
