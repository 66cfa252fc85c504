// The row port of replays, in the writing thread. Nobody else writes during its transaction, so no locks are needed.

import { freshShipment } from '../../delivery/hand-to-delivery.ts'
import { insertRow, isTrue } from '../../encoding/sql.ts'
import { LEAD_MS, PENDING_OR_DELIVERED, RELEASED, type ReplayJobRow } from '../../replays/replay-job-row.ts'
import {
  type OwedAgain,
  type PartRow,
  type ReplayRows,
  type SameMessage,
  replayRows as sharedReplayRows,
} from '../../replays/replay-rows.ts'
import { resolveOrigins } from '../rows/history-rows.ts'
import { rowAndIndex } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import type { WriterContext } from './writer-context.ts'

const SAME = 'FROM replays WHERE segment = ?1 AND idx = ?2 AND destination = ?3'

const ENDED_DOCS = 'SELECT origin, doc FROM attempts WHERE origin = ? AND delivered + failed + expired + cancelled > 0 ORDER BY id'

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
  const same = database.prepare(
    `SELECT EXISTS (SELECT 1 ${SAME} AND ${PENDING_OR_DELIVERED} AND origin <> ?4 AND (state IS NOT 'delivered' OR origin > ?4)) AS hasPendingOrDelivered,
       EXISTS (SELECT 1 ${SAME} AND ${PENDING_OR_DELIVERED} AND origin <> ?4 AND state IS NOT 'delivered') AS hasPending,
            EXISTS (SELECT 1 ${SAME} AND origin >= ?5 AND job = ?6) AS ofJob,
            (SELECT origin ${SAME} ORDER BY origin DESC LIMIT 1) AS newest,
            (SELECT replay_of FROM replays WHERE origin = ?4 AND idx = ?2) AS parent`,
  )
  const shared = sharedReplayRows(rows, {
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

    parseId: rowAndIndex,
    origins: (ids) => resolveOrigins(database, ids),
    *docs(origins) {
      for (const origin of origins) yield* rows.all<{ origin: number; doc: string }>(ENDED_DOCS, [origin])
    },

    sameMessages: (deliveries, { num, bound }) =>
      deliveries.map(({ segment, index, destination, origin }): SameMessage<number> => {
        const row = same.get(segment, index, destination, origin, bound, num) as Record<keyof SameMessage<number>, unknown>
        return {
          hasPendingOrDelivered: isTrue(row.hasPendingOrDelivered),
          hasPending: isTrue(row.hasPending),
          ofJob: isTrue(row.ofJob),
          newest: row.newest as number | null,
          parent: rowAndIndex((row.parent as string | null) ?? ''),
        }
      }),

    newId: () => context.ids.next(),
    seed: () => context.seed,
    owe: (shipments, job, atMs) => shipments.map((shipment) => owe(context, shipment, job, atMs)),
  })
  // A segment that retention is about to drop counts as no longer stored, so that it is not replayed while it is being dropped.
  return { ...shared, segments: (seqs) => shared.segments(seqs.filter((seq) => !retention.isDropping(seq))) }
}

/** Stores a shipment that is created after its messages were accepted, and returns its row id. */
export function owe(
  { rows, ids, destinations, ledger, settler }: WriterContext,
  { destination: to, segment: seq, entries, resumed, isArchived = false }: OwedAgain<number>,
  job: number | null,
  atMs: number,
): number {
  const origin = ids.next()
  const isReplay = isArchived || entries[0]?.replayOf !== null
  for (const { index, replayOf } of entries) {
    const state = isReplay ? null : RELEASED
    insertRow(rows, 'replays', {
      origin,
      idx: index,
      destination: to,
      segment: seq,
      replay_of: replayOf ?? '',
      at: atMs,
      job,
      state,
      resumed: resumed === undefined ? 0 : 1,
    })
    // A delete message is alone in its segment.
    if (index === 0 && replayOf !== null) moveDeletionTarget(rows, Number.parseInt(replayOf, 10), origin, seq, to)
  }
  const indexes = entries.map(({ index }) => index)
  const fresh = freshShipment(origin, 0, destinations.id(to), seq, indexes)
  const draft = { ...fresh, replay: isReplay }
  if (resumed === undefined) settler.insertShipment(to, draft)
  else {
    const parts = [{ origin, segment: seq, indexes, keys: indexes.map(() => resumed) }]
    settler.insertShipment(to, { ...draft, parts, order: { row: 'head', ord: 0 } })
  }
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
    [to, from, segment, destination],
  )
  if (moved > 0) rows.run('UPDATE deletions SET ended = NULL WHERE num = (SELECT deletion FROM deletion_targets WHERE origin = ?)', [to])
}
