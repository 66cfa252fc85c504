// The writing thread's side of replays.

import type { JobSettings, NewJobRow } from '../../replays/replay-rows.ts'
import { makeStep, replayOne } from '../../replays/replay-steps.ts'
import type { ReplayStep } from '../../store.ts'
import { replayRows } from '../writing/replay-rows.ts'
import type { WriterContext } from '../writing/writer-context.ts'

const JOBS_PER_STEP = 100

export function replayWrites(context: WriterContext) {
  const { rows, destinations } = context
  const replaying = replayRows(context)
  return {
    replay: (deliveryId: string, atMs: number) => replayOne(replaying, deliveryId, atMs),
    insert({ job, bound, first, destinationIds }: NewJobRow<number>) {
      const { id, createdAtMs, state, ratePerSecond, selection, createdBy, total } = job
      const doc = JSON.stringify({ selection, createdBy })
      const insertJob = 'INSERT INTO replay_jobs (id, created_at, state, rate, doc, bound, total) VALUES (?, ?, ?, ?, ?, ?, ?)'
      rows.run(insertJob, [id, createdAtMs, state, ratePerSecond, doc, bound, total])
      const insertPart = 'INSERT INTO replay_parts (job, destination, next) SELECT num, ?, ? FROM replay_jobs WHERE id = ?'
      const nums = destinationIds === null ? [0] : destinationIds.map((of) => destinations.num(of) as number)
      for (const num of nums) rows.run(insertPart, [num, first, id])
    },
    /** False if nothing was changed, because the job no longer has the state and rate of `before`. */
    change(id: string, before: JobSettings, after: JobSettings) {
      const update = 'UPDATE replay_jobs SET state = ?, rate = ?, finished_at = ? WHERE id = ? AND state = ? AND rate IS ?'
      return rows.run(update, [after.state, after.ratePerSecond, after.finishedAtMs, id, before.state, before.ratePerSecond]) === 1
    },
    step: (step: ReplayStep, atMs: number) => makeStep(replaying, step, () => atMs),
    /** Drops some of the jobs that were over before `beforeMs`, and returns how many. The newest job is kept, because its number must not be reused while rows may refer to it. */
    drop(beforeMs: number) {
      const jobs = rows.all<{ num: number }>(
        `SELECT num FROM replay_jobs WHERE finished_at < ? AND num < (SELECT max(num) FROM replay_jobs) ORDER BY num LIMIT ${JOBS_PER_STEP}`,
        [beforeMs],
      )
      for (const { num } of jobs) {
        rows.run('DELETE FROM replay_parts WHERE job = ?', [num])
        rows.run('DELETE FROM replay_jobs WHERE num = ?', [num])
      }
      return jobs.length
    },
  }
}
