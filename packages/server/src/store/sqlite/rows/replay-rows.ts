// The row port of replays, in the writing thread. Nobody else writes during its transaction, so no locks are needed.

import { PENDING_OR_DELIVERED, RELEASED, type ReplayJobRow } from '../../replays/replay-job-row.ts'
import type { OwedAgain, PartRow, ReplayRows, SameMessage } from '../../replays/replay-rows.ts'
import { LEAD_MS } from '../../replays/replay-states.ts'
import { resolveOrigins } from '../messages/origins.ts'
import { absentIndexes } from '../messages/read-claims.ts'
import { rowAndIndex, SQLITE_ROW_ORDER } from '../schema/row-ids.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import type { Rows } from './rows.ts'

type Answer<Name extends keyof ReplayRows<number>> = ReplayRows<number>[Name] extends (...args: never) => infer A ? Awaited<A> : never

const SAME = 'FROM replays WHERE segment = ?1 AND idx = ?2 AND destination = ?3'

export function replayRows(context: WriterContext): ReplayRows<number> {
  const { rows, database, retention } = context
  /** The runner that leads each job, and until when. In memory, because there is no other process. */
  const leaders = new Map<string, { runner: string; untilMs: number }>()
  const jobById = database.prepare('SELECT * FROM replay_jobs WHERE id = ?')
  const parts = database.prepare(
    `SELECT nullif(p.destination, 0) AS destination, p.state, p.next, p.place, p.waiting,
       ifnull(d.deleted = 0 AND json_extract(d.doc, '$.enabled') = 0, 0) AS held
     FROM replay_parts p LEFT JOIN destinations d ON d.num = p.destination WHERE p.job = ? AND p.over = 0 ORDER BY p.turn, p.destination`,
  )
  const savePart = database.prepare(
    'UPDATE replay_parts SET state = ?, next = ?, place = ?, over = ?, waiting = waiting + ?, turn = ? WHERE job = ? AND destination = ?',
  )
  const saveJob = database.prepare(
    'UPDATE replay_jobs SET position = position + 1, replayed = ?, skipped = ?, total = ?, state = ?, finished_at = ? WHERE num = ?',
  )
  const failures = database.prepare(
    `SELECT id, origin, idx AS "index", segment, reason FROM failures
     WHERE destination = ? AND state = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ?`,
  )
  const attempts = database.prepare(
    `SELECT id, origin, segment, CASE WHEN delivered > 0 THEN octet_length(doc) ELSE 0 END AS bytes FROM attempts
     WHERE destination = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ?`,
  )
  const attemptDocs = database.prepare('SELECT id, doc FROM attempts WHERE id IN (SELECT value FROM json_each(?))')
  const docs = database.prepare(
    'SELECT origin, doc FROM attempts WHERE origin = ? AND delivered + failed + expired + cancelled > 0 ORDER BY id',
  )
  const destination = database.prepare('SELECT num, id, deleted FROM destinations WHERE num = ?')
  const same = database.prepare(
    `SELECT EXISTS (SELECT 1 ${SAME} AND ${PENDING_OR_DELIVERED} AND origin <> ?4 AND (state IS NOT 'delivered' OR origin > ?4)) AS hasPendingOrDelivered,
       EXISTS (SELECT 1 ${SAME} AND ${PENDING_OR_DELIVERED} AND origin <> ?4 AND state IS NOT 'delivered') AS hasPending,
            EXISTS (SELECT 1 ${SAME} AND origin >= ?5 AND job = ?6) AS ofJob,
            (SELECT origin ${SAME} ORDER BY origin DESC LIMIT 1) AS newest,
            (SELECT replay_of FROM replays WHERE origin = ?4 AND idx = ?2) AS parent`,
  )
  const segment = database.prepare('SELECT seq, octet_length(body) AS bytes FROM segments WHERE seq = ?')
  const body = database.prepare('SELECT absent, body FROM segments WHERE seq = ?')
  return {
    order: SQLITE_ROW_ORDER,

    job({ id, runner }) {
      const row = jobById.get(id) as ReplayJobRow<number> | undefined
      if (row?.state !== 'running') leaders.delete(id)
      const leader = runner === undefined ? undefined : leaders.get(id)
      return row && Object.assign(row, { led: leader !== undefined && leader.runner !== runner && leader.untilMs > performance.now() })
    },

    parts: (job) =>
      (parts.all(job) as unknown as (Omit<PartRow<number>, 'over' | 'held'> & { held: number })[]).map((part) =>
        Object.assign(part, { held: part.held === 1 }),
      ),

    saveParts({ num, position }, walked) {
      for (const { destination: to, state, next, place, over, owed } of walked) {
        savePart.run(state, next, place, over ? 1 : 0, owed, position + 1, num, to ?? 0)
      }
    },

    saveJob({ num, id }, progress, runner) {
      if (progress) saveJob.run(progress.replayed, progress.skipped, progress.total, progress.state, progress.finishedAtMs, num)
      if (progress?.state === 'finished') leaders.delete(id)
      else if (runner !== undefined) leaders.set(id, { runner, untilMs: performance.now() + LEAD_MS })
      return jobById.get(id) as unknown as ReplayJobRow<number>
    },

    failures: ({ destination: to, state, first, last, limit }) =>
      failures.all(to, state, first, last, limit) as unknown as Answer<'failures'>,
    attempts: ({ destination: to, first, last, limit }) => attempts.all(to, first, last, limit) as unknown as Answer<'attempts'>,
    attemptDocs: (ids) => attemptDocs.all(JSON.stringify(ids)) as unknown as Answer<'attemptDocs'>,
    parseId: rowAndIndex,
    origins: (ids) => resolveOrigins(database, ids),
    *docs(origins) {
      for (const origin of origins) yield* docs.all(origin) as { origin: number; doc: string }[]
    },

    destinations: (nums) =>
      nums.flatMap((num) => {
        const row = destination.get(num) as { num: number; id: string; deleted: number } | undefined
        return row === undefined ? [] : Object.assign(row, { deleted: row.deleted === 1 })
      }),

    sameMessages: (deliveries, { num, bound }) =>
      deliveries.map((delivery): SameMessage<number> => {
        const row = same.get(delivery.segment, delivery.index, delivery.destination, delivery.origin, bound, num)
        const { hasPendingOrDelivered, hasPending, ofJob, newest, parent } = row as {
          hasPendingOrDelivered: number
          hasPending: number
          ofJob: number
          newest: number | null
          parent: string | null
        }
        return {
          hasPendingOrDelivered: hasPendingOrDelivered === 1,
          hasPending: hasPending === 1,
          ofJob: ofJob === 1,
          newest,
          parent: rowAndIndex(parent ?? ''),
        }
      }),

    segments: (seqs) =>
      // A segment that retention is about to drop counts as no longer stored, so that it is not replayed while it is being dropped.
      seqs.filter((seq) => !retention.isDropping(seq)).flatMap((seq) => segment.all(seq) as unknown as Answer<'segments'>),

    bodies: (seqs) =>
      seqs.flatMap((seq) => {
        const row = body.get(seq) as { absent: string | null; body: Uint8Array } | undefined
        return row === undefined ? [] : { seq, absent: absentIndexes(row.absent), body: row.body }
      }),

    hasDeletions: () => rows.all('SELECT 1 FROM deletions LIMIT 1').length > 0,

    owe: (shipments, job, atMs) => shipments.map((shipment) => owe(context, shipment, job, atMs)),
  }
}

/** Stores a shipment that is created after its messages were accepted, and returns its row id. */
export function owe(
  { rows, ids, destinations, ledger, settler }: WriterContext,
  { destination: to, segment: seq, entries }: OwedAgain<number>,
  job: number | null,
  atMs: number,
): number {
  const origin = ids.next()
  for (const { index, replayOf } of entries) {
    rows.run(
      'INSERT INTO replays (origin, idx, destination, segment, replay_of, at, job, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      origin,
      index,
      to,
      seq,
      replayOf ?? '',
      atMs,
      job,
      replayOf === null ? RELEASED : null,
    )
    // A delete message is alone in its segment.
    if (index === 0 && replayOf !== null) moveDeletionTarget(rows, Number.parseInt(replayOf, 10), origin, seq, to)
  }
  settler.insertShipment(to, {
    destinationId: destinations.id(to),
    attempt: 0,
    firstAttemptAtMs: null,
    dueAtMs: 0,
    unit: false,
    urls: null,
    replay: entries[0]?.replayOf !== null,
    parts: [{ origin, segment: seq, indexes: entries.map(({ index }) => index) }],
  })
  ledger.owe(to, entries.length)
  return origin
}

/**
 * Updates the target of a delete message to its newest replay, whichever delivery that repeats, unless the message was delivered before. Also
 * opens the deletion request again: see ../../deletions/deletion-completion.ts.
 */
function moveDeletionTarget(rows: Rows, from: number, to: number, segment: number, destination: number): void {
  const moved = rows.run(
    `UPDATE deletion_targets SET origin = ?1, final = NULL
     WHERE origin IN (SELECT ?2 UNION SELECT origin FROM replays WHERE segment = ?3 AND idx = 0 AND destination = ?4)
       AND ifnull(final, 'failed') <> 'delivered'
       AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.origin = deletion_targets.origin AND a.delivered > 0)`,
    to,
    from,
    segment,
    destination,
  )
  if (moved > 0) rows.run('UPDATE deletions SET ended = NULL WHERE num = (SELECT deletion FROM deletion_targets WHERE origin = ?)', to)
}
