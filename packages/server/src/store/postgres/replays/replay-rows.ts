// The row port for replaying deliveries, within one transaction. Some methods lock the rows they read until the commit.

import { type OrderKey, partitionOf } from '../../../model/order/order-key.ts'
import type { Seed } from '../../encoding/fingerprint.ts'
import { storedParts } from '../../encoding/stored-parts.ts'
import { LEAD_MS, PENDING_OR_DELIVERED, RELEASED, type ReplayJobRow } from '../../replays/replay-job-row.ts'
import {
  type JobStatus,
  type OwedAgain,
  type PartRow,
  type ReplayRows,
  type SameMessage,
  replayRows as sharedReplayRows,
} from '../../replays/replay-rows.ts'
import type { ReplayStep } from '../../store.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import { type Ask, rowsOf } from '../session/database.ts'
import { Columns, plainColumns, type RowOf, statement } from '../session/row-parameters.ts'
import { writeText } from '../session/text-columns.ts'
import { type RowIds, rowAndIndex, SKEW } from '../tables/ids.ts'
import { LEDGER } from '../tables/ledger-deltas.ts'
import { RESUMED } from '../tables/ordered-rows.ts'
import { DELIVERIES, resolveOrigins } from '../tables/resolve-origins.ts'
import { sqlOf } from '../tables/sql.ts'
import { foldOutcomes } from './replay-outcomes.ts'

export async function jobStanding<T extends JobStatus>(
  ask: Ask,
  { id, runner }: Pick<ReplayStep, 'id' | 'runner'>,
  columns = 'state, position',
): Promise<T | undefined> {
  const { rows } = await ask<T>(
    `SELECT ${columns}, coalesce(leader <> $2 AND leader_until > clock_timestamp(), false) AS led FROM replay_jobs WHERE id = $1`,
    [writeText(id), runner ?? null],
  )
  return rows[0]
}

export function replayRows(ask: Ask, ids: RowIds, seed: () => Promise<Seed>): ReplayRows<string> {
  const all = rowsOf(ask)
  return sharedReplayRows(sqlOf(ask), {
    async job(step) {
      // Named statements are planned once, maybe while a day has no rows yet, but the plan must be good for many rows.
      await ask("SELECT pg_advisory_xact_lock($1), set_config('enable_seqscan', 'off', true)", [ADVISORY_LOCKS.replaySteps])
      await ask('SELECT 1 FROM replay_jobs WHERE id = $1 FOR UPDATE', [writeText(step.id)])
      // A separate statement, so that it uses the time after the wait for the lock.
      return jobStanding<ReplayJobRow<string> & JobStatus>(ask, step, '*')
    },

    async parts(job) {
      await foldOutcomes(ask, job)
      const rows = await all<Omit<PartRow<string>, 'over' | 'held'> & { deleted: boolean | null; doc: string | null }>(
        `SELECT nullif(p.destination, 0) AS destination, p.state, p.next, p.place, p.waiting, d.deleted, d.doc
         FROM replay_parts p LEFT JOIN destinations d ON d.num = p.destination WHERE p.job = $1 AND NOT p.over ORDER BY p.turn, p.destination`,
        [job],
      )
      return rows.map((part) =>
        Object.assign(part, {
          held: part.deleted === false && part.doc !== null && !(JSON.parse(part.doc) as { enabled: boolean }).enabled,
        }),
      )
    },

    async saveParts({ num, position }, parts) {
      await ask(SAVE_PARTS, SAVE_PARTS.values({ num, turn: position + 1, parts }))
    },

    async saveJob({ num, state }, progress, runner) {
      const [saved] = await all<ReplayJobRow<string>>(SAVE, [
        num,
        progress === undefined ? 0 : 1,
        progress?.replayed ?? null,
        progress?.skipped ?? null,
        progress?.total ?? null,
        progress?.state ?? state,
        progress?.finishedAtMs ?? null,
        runner ?? null,
        LEAD_MS / 1_000,
      ])
      return saved as ReplayJobRow<string>
    },

    parseId: rowAndIndex,
    origins: (origins) => resolveOrigins(ask, origins),

    async *docs(origins) {
      yield* await all<{ origin: string; doc: string }>(
        `SELECT a.origin, a.doc FROM unnest($1::bigint[]) WITH ORDINALITY AS n (origin, place)
         JOIN attempts a ON a.origin = n.origin AND a.id > n.origin - ${SKEW}
         WHERE a.delivered + a.failed + a.expired + a.cancelled > 0 ORDER BY n.place, a.id`,
        [origins],
      )
    },
    async sameMessages(deliveries, { num, bound }) {
      const rows = await all<Omit<SameMessage<string>, 'parent'> & { parent: string | null }>(
        SAME_MESSAGES,
        SAME_MESSAGES.values({ deliveries, num, bound }),
      )
      return rows.map((row) => Object.assign(row, { parent: rowAndIndex(row.parent ?? '') }))
    },

    newId: () => ids.next(),
    seed,
    owe: (shipments, job, atMs) => insertReplays(ask, ids, shipments, { job, atMs }),
  })
}

const SAVE = {
  name: 'replay_save',
  text: `
  UPDATE replay_jobs SET position = position + $2::integer, replayed = coalesce($3, replayed), skipped = coalesce($4, skipped),
    total = coalesce($5, total), state = $6, finished_at = $7, leader = coalesce($8, leader),
    leader_until = CASE WHEN $8::text IS NULL THEN leader_until ELSE clock_timestamp() + make_interval(secs => $9) END
  WHERE num = $1 RETURNING *`,
}

const PARTS = new Columns<PartRow<string> & { owed: number }>({
  destination: ['bigint', ({ destination }) => destination ?? '0'],
  state: ['integer', ({ state }) => state],
  next: ['bigint', ({ next }) => next],
  place: ['integer', ({ place }) => place],
  over: ['boolean', ({ over }) => over],
  owed: ['integer', ({ owed }) => owed],
})

const SAVE_PARTS = statement({
  name: 'replay_save_parts',
  parameters: { num: 'value', turn: 'value', parts: PARTS },
  text: ({ num, turn, parts }) => `
  UPDATE replay_parts p SET state = n.state, next = n.next, place = n.place, over = n.over, waiting = p.waiting + n.owed, turn = ${turn}
  FROM ${parts.as('n')} WHERE p.job = ${num} AND p.destination = n.destination`,
})

// A replay of a message is newer than the message, which limits the days to search. Each candidate is one index lookup: the inequality
// rules out a hash join, so the planner does not read all replays.
const SAME = `FROM replays r WHERE r.segment = c.segment AND r.idx = c.idx AND r.destination = c.destination AND r.origin > c.segment - ${SKEW}`

const SAME_MESSAGES = statement({
  name: 'replay_same_messages',
  parameters: { deliveries: DELIVERIES, num: 'value', bound: 'value' },
  text: ({ deliveries, num, bound }) => `
  SELECT
    EXISTS (SELECT 1 ${SAME} AND ${PENDING_OR_DELIVERED} AND r.origin <> c.origin AND (r.state IS DISTINCT FROM 'delivered' OR r.origin > c.origin)) AS "hasPendingOrDelivered",
    EXISTS (SELECT 1 ${SAME} AND ${PENDING_OR_DELIVERED} AND r.origin <> c.origin AND r.state IS DISTINCT FROM 'delivered') AS "hasPending",
    EXISTS (SELECT 1 ${SAME} AND r.origin > ${bound}::bigint - ${SKEW} AND r.job = ${num}) AS "ofJob",
    (SELECT max(r.origin) ${SAME}) AS newest,
    (SELECT r.replay_of FROM replays r WHERE r.origin = c.origin AND r.idx = c.idx) AS parent
  FROM ${deliveries.inOrder('c')} ORDER BY c.place`,
})

const REPLAYS = plainColumns({
  origin: 'bigint',
  idx: 'integer',
  destination: 'bigint',
  segment: 'bigint',
  replay_of: 'text',
  state: 'text',
  resumed: 'boolean',
})

interface OwedShipment {
  id: string
  destination: string
  bytes: number
  count: number
  parts: string
  replay: boolean
  resumed: OrderKey | undefined
}

const SHIPMENTS = new Columns<OwedShipment>({
  id: ['bigint', ({ id }) => id],
  destination: ['bigint', ({ destination }) => destination],
  bytes: ['integer', ({ bytes }) => bytes],
  count: ['integer', ({ count }) => count],
  parts: ['text', ({ parts }) => parts],
  replay: ['boolean', ({ replay }) => replay],
  attempt: ['integer', ({ resumed }) => (resumed === undefined ? 0 : RESUMED)],
  ord: ['bigint', ({ resumed }) => (resumed === undefined ? null : 0)],
  partition: ['bigint', ({ resumed }) => (resumed === undefined ? null : partitionOf(resumed))],
})

type NewReplay = RowOf<typeof REPLAYS>

/**
 * Inserts replays, and deliveries of messages that are released from quarantine: the replays, their shipments and the deltas of the ledger, each in
 * one statement however many there are. Replaying a delete message reopens its deletion request.
 */
export async function insertReplays(
  ask: Ask,
  ids: RowIds,
  all: readonly OwedAgain<string>[],
  { job, atMs }: { job: string | null; atMs: number },
): Promise<string[]> {
  const replays: NewReplay[] = []
  const shipments: OwedShipment[] = []
  const owed = new Map<string, number>()
  for (const { destination, segment, bytes, entries, resumed, isArchived = false } of all) {
    const origin = ids.next()
    const isReplay = isArchived || entries[0]?.replayOf !== null
    for (const { index, replayOf } of entries)
      replays.push({
        origin,
        idx: index,
        destination,
        segment,
        replay_of: replayOf ?? '',
        state: isReplay ? null : RELEASED,
        resumed: resumed !== undefined,
      })
    const indexes = entries.map(({ index }) => index)
    const keys = resumed === undefined ? {} : { keys: indexes.map(() => resumed) }
    const parts = storedParts([{ origin, segment, indexes, ...keys }])
    shipments.push({ id: origin, destination, bytes, count: entries.length, parts, replay: isReplay, resumed })
    owed.set(destination, (owed.get(destination) ?? 0) + entries.length)
  }
  await ask(INSERT_REPLAYS, INSERT_REPLAYS.values({ replays, atMs, job }))
  await ask(INSERT_SHIPMENTS, INSERT_SHIPMENTS.values({ shipments }))
  const deltas = Array.from(owed, ([destination, count]) => ({ id: ids.next(), destination, count }))
  await ask(INSERT_DELTAS, INSERT_DELTAS.values({ deltas }))
  await followDeletions(ask, replays)
  return shipments.map(({ id }) => id)
}

/** Points the target of a delete message to its newest replay, whichever delivery that repeats, unless an earlier one was delivered. */
async function followDeletions(ask: Ask, replays: readonly NewReplay[]): Promise<void> {
  // A delete message is alone in its segment.
  const first = replays.filter(({ idx, replay_of: replayOf }) => idx === 0 && replayOf !== '')
  if (first.length === 0 || (await ask('SELECT 1 FROM deletion_targets LIMIT 1')).rows.length === 0) return
  const { rows } = await ask<{ deletion: string }>(FOLLOW, FOLLOW.values({ first }))
  if (rows.length === 0) return
  await ask('UPDATE deletions SET ended = NULL WHERE num = ANY($1::bigint[])', [rows.map(({ deletion }) => deletion)])
}

const FOLLOW = statement({
  parameters: { first: REPLAYS },
  text: ({ first }) => `
  WITH n AS (
    SELECT * FROM ${first.as('n')}
  ), before AS (
    SELECT n.origin AS newest, split_part(n.replay_of, '-', 1)::bigint AS origin FROM n
    UNION
    SELECT n.origin, r.origin FROM n JOIN replays r
      ON r.segment = n.segment AND r.idx = 0 AND r.destination = n.destination AND r.origin > n.segment - ${SKEW} AND r.origin <> n.origin
  )
  UPDATE deletion_targets t SET origin = before.newest, final = NULL FROM before
  WHERE t.origin = before.origin AND coalesce(t.final, 'failed') <> 'delivered'
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.origin = before.origin AND a.id > before.origin - ${SKEW} AND a.delivered > 0)
  RETURNING t.deletion`,
})

const INSERT_REPLAYS = statement({
  name: 'replay_insert',
  parameters: { replays: REPLAYS, atMs: 'value', job: 'value' },
  text: ({ replays, atMs, job }) => `INSERT INTO replays (${replays.names}, at, job) SELECT n.*, ${atMs}, ${job} FROM ${replays.as('n')}`,
})

const INSERT_SHIPMENTS = statement({
  name: 'replay_insert_shipments',
  parameters: {
    shipments: SHIPMENTS,
  },
  text: ({ shipments }) => `INSERT INTO shipments (${shipments.names}) SELECT * FROM ${shipments.as('n')}`,
})

const INSERT_DELTAS = statement({
  name: 'replay_insert_deltas',
  parameters: { deltas: plainColumns({ id: 'bigint', destination: 'bigint', count: 'bigint' }) },
  text: ({ deltas }) => `INSERT INTO deltas (id, kind, subject, counts)
    SELECT n.id, ${LEDGER}, n.destination, ARRAY[n.count, 0, n.count, 0, 0, 0] FROM ${deltas.as('n')}`,
})
