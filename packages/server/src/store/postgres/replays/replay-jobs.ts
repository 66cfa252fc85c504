// The rows of replay jobs, and the transactions that replay deliveries. The counts of a job include outcomes that settling has appended and
// no step has added up yet, in one snapshot.

import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import { writeAudit } from '../../history/audit-log.ts'
import { resolveDeliveryIds } from '../../history/delivery-ids.ts'
import { PENDING_OR_DELIVERED, type ReplayJobRow } from '../../replays/replay-job-row.ts'
import { changeJob, dropJobs, insertJob, type ReplayJobRows, type RowCount } from '../../replays/replay-rows.ts'
import { makeStep, rejectionOf, replayOne } from '../../replays/replay-steps.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { rowsOf } from '../session/database.ts'
import { statement } from '../session/row-parameters.ts'
import { writeText } from '../session/text-columns.ts'
import { POSTGRES_ROWS } from '../tables/ids.ts'
import { DELIVERIES } from '../tables/resolve-origins.ts'
import { sqlOf } from '../tables/sql.ts'
import { foldOutcomes } from './replay-outcomes.ts'
import { jobStanding, replayRows } from './replay-rows.ts'

const sum = (column: string): string => `j.${column} + coalesce(o.${column}, 0) AS ${column}`

/** To be followed by WHERE. */
const SELECT_JOBS = `
  SELECT j.num, j.id, j.created_at, j.finished_at, j.state, j.rate, j.doc, j.bound, j.total, j.position, j.replayed, j.skipped,
         ${['delivered', 'failed', 'expired', 'cancelled'].map(sum).join(', ')}
  FROM replay_jobs j LEFT JOIN LATERAL (
    SELECT sum(delivered) AS delivered, sum(failed) AS failed, sum(expired) AS expired, sum(cancelled) AS cancelled
    FROM replay_outcomes WHERE job = j.num) o ON true`

export function replayJobRows(context: StoreContext): ReplayJobRows<string> {
  const { database, ids, nowMs } = context
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

    insert: (row, audit) =>
      database.transaction(async (ask) => {
        await insertJob(sqlOf(ask), row, ids.next())
        await writeAudit(sqlOf(ask), ids, audit, row.job.createdAtMs)
      }),

    change: (id, before, after, atMs, audit) =>
      database.transaction(async (ask) => {
        const isChanged = await changeJob(sqlOf(ask), id, before, after)
        if (isChanged) await writeAudit(sqlOf(ask), ids, audit, atMs)
        return isChanged
      }),

    replay: (deliveryId, resume, atMs, audit) =>
      database.transaction(async (ask) => {
        const reply = await replayOne(replayRows(ask, ids, context.seed), deliveryId, resume, atMs)
        if (reply.ok) await writeAudit(sqlOf(ask), ids, audit, atMs)
        return reply
      }),

    async step(step) {
      // Checked first without a lock: most rejections happen here.
      const rejection = rejectionOf(await jobStanding(database.ask, step), step)
      return rejection ?? database.transaction((ask) => makeStep(replayRows(ask, ids, context.seed), step, nowMs))
    },
  }
}

/** Drops some of the jobs that finished before `beforeMs`, and returns how many. */
export async function dropReplays({ database, isClosed }: StoreContext, beforeMs: number): Promise<number> {
  const dropped = await database.transaction((ask) => dropJobs(sqlOf(ask), beforeMs))
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

const NONE: RowCount<string> = { seen: 0, newest: null, total: 0, replayed: 0 }

const hasLater = (condition: string): string =>
  `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination AND r.origin > d.origin AND ${condition})`
/** Whether a later delivery of the same message is pending or was delivered. */
const REPLAYED = hasLater(PENDING_OR_DELIVERED)

/** Whether the message is of one of the sources. The parameter is a list of ids; null for all sources. */
const ofSources = (parameter: string): string =>
  `(${parameter}::text[] IS NULL OR EXISTS (
     SELECT 1 FROM segments g JOIN sources s ON s.num = g.source WHERE g.seq = d.segment AND s.id = ANY (${parameter}::text[])))`

const NAMED = statement({
  parameters: { sources: 'value', deliveries: DELIVERIES },
  text: ({ sources, deliveries }) => `SELECT t.id AS "destinationId", ${REPLAYED} AS replayed
    FROM ${deliveries.inOrder('d')} JOIN destinations t ON t.num = d.destination WHERE ${ofSources(sources)} ORDER BY d.place`,
})

type ReplayCounts = Pick<ReplayJobRows<string>, 'bound' | 'countFailures' | 'countDelivered' | 'countByIds'>

export function replayCounts({ database, ids, idMap, seed }: StoreContext): ReplayCounts {
  return {
    /** Correct even if the clock of another node is a little ahead. */
    async bound() {
      const now = ids.next()
      const { rows } = await database.query<{ bound: string }>(
        `SELECT greatest($1::bigint, (SELECT max(id) + 1 FROM failures WHERE id >= $1), (SELECT max(id) + 1 FROM attempts WHERE id >= $1)) AS bound`,
        [now],
      )
      return rows[0]?.bound ?? now
    },

    async countFailures({ destinationId, sourceIds, state, reason, instead, first, last, limit }) {
      const destination = await idMap.find(database.ask, 'destinations', destinationId)
      if (destination === undefined) return NONE
      const { rows } = await database.query<RowCount<string>>(
        `SELECT count(*) AS seen, max(id) AS newest, count(*) FILTER (WHERE matches) AS total,
                count(*) FILTER (WHERE matches AND (${REPLAYED} OR ${hasLater('r.state = ANY($5::text[])')})) AS replayed
         FROM (SELECT id, destination, origin, idx, segment, ($6::text IS NULL OR reason = $6) AND ${ofSources('$8')} AS matches
               FROM failures d WHERE destination = $1 AND state = $2 AND id >= $3 AND id <= $4 ORDER BY id LIMIT $7) d`,
        [destination, state, first, last, instead, reason === null ? null : writeText(reason), limit, textsOf(sourceIds)],
      )
      return rows[0] ?? NONE
    },

    /** The doc of an attempt records which messages it delivered. It is read only if some message of the segment was replayed. */
    async countDelivered({ destinationId, sourceIds, first, last, limit }) {
      const destination = await idMap.find(database.ask, 'destinations', destinationId)
      if (destination === undefined) return NONE
      const { rows } = await database.query<Omit<RowCount<string>, 'replayed'>>(
        `SELECT count(*) AS seen, max(id) AS newest, coalesce(sum(delivered), 0) AS total
         FROM (SELECT id, CASE WHEN ${ofSources('$5')} THEN delivered ELSE 0 END AS delivered
               FROM attempts d WHERE destination = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4) d`,
        [destination, first, last, limit, textsOf(sourceIds)],
      )
      const { newest } = rows[0] ?? NONE
      if (rows[0] === undefined || newest === null) return NONE
      const { rows: repeated } = await database.query<{ doc: string; indexes: number[] }>(
        `SELECT d.doc, r.indexes FROM attempts d CROSS JOIN LATERAL (
           SELECT array_agg(r.idx) AS indexes FROM replays r
           WHERE r.segment = d.segment AND r.destination = d.destination AND r.origin > d.origin AND ${PENDING_OR_DELIVERED}) r
         WHERE d.destination = $1 AND d.id >= $2 AND d.id <= $3 AND d.delivered > 0 AND r.indexes IS NOT NULL AND ${ofSources('$4')}`,
        [destination, first, newest, textsOf(sourceIds)],
      )
      let replayed = 0
      for (const { doc, indexes } of repeated) {
        const again = new Set(indexes)
        for (const [state, , of] of (JSON.parse(doc) as AttemptDoc).f) {
          if (state === 'delivered') replayed += of.filter((index) => again.has(index)).length
        }
      }
      return { ...rows[0], replayed }
    },

    countByIds: (deliveryIds, sourceIds) =>
      database.transaction(
        async (ask) => {
          const deliveries = (await resolveDeliveryIds(replayRows(ask, ids, seed), deliveryIds)).filter(
            (delivery) => delivery !== undefined,
          )
          return deliveries.length === 0 ? [] : rowsOf(ask)(NAMED, NAMED.values({ sources: textsOf(sourceIds), deliveries }))
        },
        { readOnly: true },
      ),
  }
}

function textsOf(ids: readonly string[] | undefined): string[] | null {
  return ids === undefined ? null : ids.map(writeText)
}
