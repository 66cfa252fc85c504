// The rows of replay jobs, and the transactions that replay deliveries. The counts of a job include outcomes that settling has appended and
// no step has added up yet, in one snapshot.

import { writeAudit } from '../../history/audit-log.ts'
import type { ReplayJobRow } from '../../replays/replay-job-row.ts'
import type { ReplayJobRows } from '../../replays/replay-rows.ts'
import { makeStep, rejectionOf, replayOne } from '../../replays/replay-steps.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { rowsOf } from '../session/database.ts'
import { writeText } from '../session/text-columns.ts'
import { POSTGRES_ROWS } from '../tables/ids.ts'
import { sqlOf } from '../tables/sql.ts'
import { replayCounts } from './replay-counts.ts'
import { foldOutcomes } from './replay-outcomes.ts'
import { jobStanding, replayRows } from './replay-rows.ts'

const JOBS_PER_STEP = 100

const sum = (column: string): string => `j.${column} + coalesce(o.${column}, 0) AS ${column}`

/** To be followed by WHERE. */
const SELECT_JOBS = `
  SELECT j.num, j.id, j.created_at, j.finished_at, j.state, j.rate, j.doc, j.bound, j.total, j.position, j.replayed, j.skipped,
         ${['delivered', 'failed', 'expired', 'cancelled'].map(sum).join(', ')}
  FROM replay_jobs j LEFT JOIN LATERAL (
    SELECT sum(delivered) AS delivered, sum(failed) AS failed, sum(expired) AS expired, sum(cancelled) AS cancelled
    FROM replay_outcomes WHERE job = j.num) o ON true`

export function replayJobRows(context: StoreContext): ReplayJobRows<string> {
  const { database, ids, idMap, nowMs } = context
  const all = rowsOf(database.ask)
  return {
    order: POSTGRES_ROWS,

    ...replayCounts(context),

    newest: (state, last, limit) =>
      all(`${SELECT_JOBS} WHERE j.num <= $1 ${state === undefined ? '' : 'AND j.state = $3'} ORDER BY j.num DESC LIMIT $2`, [
        last,
        limit,
        ...(state === undefined ? [] : [state]),
      ]),
    one: async (id) => (await all<ReplayJobRow<string>>(`${SELECT_JOBS} WHERE j.id = $1`, [writeText(id)]))[0],

    async insert({ job, bound, first, destinationIds }, audit) {
      const { id, createdAtMs, state, ratePerSecond, selection, createdBy, total } = job
      const destinations: string[] = []
      for (const each of destinationIds ?? []) destinations.push((await idMap.find(database.ask, 'destinations', each)) as string)
      await database.transaction(async (ask) => {
        const num = ids.next()
        const doc = JSON.stringify({ selection, createdBy })
        await ask('INSERT INTO replay_jobs (num, id, created_at, state, rate, doc, bound, total) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)', [
          num,
          id,
          createdAtMs,
          state,
          ratePerSecond,
          doc,
          bound,
          total,
        ])
        const parts = destinationIds === null ? { nums: ['0'], next: '0' } : { nums: destinations, next: first }
        await ask('INSERT INTO replay_parts (job, destination, next) SELECT $1, unnest($2::bigint[]), $3', [num, parts.nums, parts.next])
        await writeAudit(sqlOf(ask), ids, audit, createdAtMs)
      })
    },

    change: (id, before, after, atMs, audit) =>
      database.transaction(async (ask) => {
        const { rows } = await ask(
          `UPDATE replay_jobs SET state = $4, rate = $5, finished_at = $6
           WHERE id = $1 AND state = $2 AND rate IS NOT DISTINCT FROM $3 RETURNING 1`,
          [writeText(id), before.state, before.ratePerSecond, after.state, after.ratePerSecond, after.finishedAtMs],
        )
        if (rows.length > 0) await writeAudit(sqlOf(ask), ids, audit, atMs)
        return rows.length > 0
      }),

    replay: (deliveryId, atMs, audit) =>
      database.transaction(async (ask) => {
        const reply = await replayOne(replayRows(ask, ids), deliveryId, atMs)
        if (reply.ok) await writeAudit(sqlOf(ask), ids, audit, atMs)
        return reply
      }),

    async step(step) {
      // Checked first without a lock: most rejections happen here.
      const rejection = rejectionOf(await jobStanding(database.ask, step), step)
      return rejection ?? database.transaction((ask) => makeStep(replayRows(ask, ids), step, nowMs))
    },
  }
}

/** Drops some of the jobs that finished before `beforeMs`, and returns how many. The newest job is kept, as in the SQLite store. */
export async function dropReplays({ database, isClosed }: StoreContext, beforeMs: number): Promise<number> {
  const { rows } = await database.query<{ dropped: number }>(
    `WITH gone AS (
       DELETE FROM replay_jobs WHERE num IN (
         SELECT num FROM replay_jobs WHERE finished_at < $1 AND num < (SELECT max(num) FROM replay_jobs)
         ORDER BY num LIMIT ${JOBS_PER_STEP} FOR UPDATE SKIP LOCKED)
       RETURNING num
     ), parts AS (DELETE FROM replay_parts WHERE job IN (SELECT num FROM gone))
     SELECT count(*) AS dropped FROM gone`,
    [Math.floor(beforeMs)],
  )
  const dropped = rows[0]?.dropped ?? 0
  if (dropped > 0) return dropped
  // Adds up outcomes that were appended for jobs that make no more steps.
  const { rows: appended } = await database.query<{ job: string }>('SELECT DISTINCT job FROM replay_outcomes')
  for (const { job } of appended) {
    if (isClosed()) break
    await database.transaction(async (ask) => {
      await ask('SELECT 1 FROM replay_jobs WHERE num = $1 FOR UPDATE', [job])
      // If the job was dropped, this only deletes its outcomes.
      await foldOutcomes(ask, job)
    })
  }
  return 0
}
