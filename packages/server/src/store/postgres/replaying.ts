// Replays as the port has them: one delivery, and jobs of many.
//
// A job is made for the rows below a bound, which lies after all rows that are committed when it is created: what comes to its state later has
// a higher name, and so have the failures of what it sends. They are counted before the job is written, by questions that keep
// nobody from writing. A row gets its name before its commit, so some with lower names may be committed after they were counted.
// Those are of the set too, if the job comes upon them: then the total grows by them, so that what is done never exceeds it. One
// that is committed behind the place where the job stands is left to the next job. Names of nodes whose clocks differ may let
// a job come upon what itself has sent, and a message that it has sent it does not send again: see replay-judge.ts.

import type { RecordRow } from '../encoding/settlement.ts'
import { newReplayJob, replayJobOf } from '../replays/replay-job-row.ts'
import { IS_REPLAY_OVER, REPLAY_TRANSITIONS } from '../replays/replay-states.ts'
import type {
  Audit,
  NewReplayJob,
  ReplayCount,
  ReplayJob,
  ReplayJobChange,
  ReplayResult,
  ReplaySelection,
  ReplayStep,
  ReplayStepResult,
  ReplayStore,
} from '../store.ts'
import { resolveOrigin, stateOf } from './messages/origins.ts'
import { countReplays, listReplays, readReplay } from './replays/read-replays.ts'
import { readBodies } from './replays/replay-judge.ts'
import { foldOutcomes, writeOutcomes } from './replays/replay-outcomes.ts'
import { oweAgain } from './replays/replay-owing.ts'
import { type JobRow, rowRange, SELECT_JOBS } from './replays/replay-rows.ts'
import { makeStep } from './replays/replay-steps.ts'
import { writeAudit } from './rows/audit-entries.ts'
import { rowAndIndex } from './schema/ids.ts'
import type { Ask } from './session/database.ts'
import type { Parts } from './session/parts.ts'
import { writeText } from './session/texts.ts'

const JOBS_PER_STEP = 100

export class Replaying implements ReplayStore {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** One delivery, whatever was replayed before: somebody asks for just that. */
  async replay(deliveryId: string, audit?: Audit<{ deliveryId: string }>): Promise<ReplayResult> {
    const { database, ids, nowMs } = this.#parts
    const entry = audit?.({ deliveryId }, null)
    const result = await database.transaction(async (ask): Promise<ReplayResult & { destinationId?: string }> => {
      const named = rowAndIndex(deliveryId)
      const origin = named && (await resolveOrigin(ask, named.row))
      if (!named || !origin || (origin.indexes !== 0 && !origin.indexes.includes(named.index))) return { ok: false, reason: 'not_found' }
      const { destination, segment } = origin
      // Held, so that neither is taken away before this is committed: see replay-judge.ts.
      const { rows: segments } = await ask<{ bytes: number }>(
        'SELECT octet_length(body) AS bytes FROM segments WHERE seq = $1 FOR KEY SHARE',
        [segment],
      )
      const isIn = (await readBodies(ask, [segment])).get(segment)?.has(named.index) ?? false
      const { final } = await stateOf(ask, named.row, named.index)
      if (final === undefined) return { ok: false, reason: isIn ? 'still_pending' : 'not_found' }
      if (!isIn || segments[0] === undefined) return { ok: false, reason: 'message_gone' }
      const { rows: destinations } = await ask<{ id: string; deleted: boolean }>(
        'SELECT id, deleted FROM destinations WHERE num = $1 FOR SHARE',
        [destination],
      )
      if (destinations[0]?.deleted !== false) return { ok: false, reason: 'destination_gone' }
      const atMs = Math.floor(nowMs())
      const owed = {
        destination,
        segment,
        bytes: segments[0].bytes,
        entries: [{ index: named.index, replayOf: `${named.row}-${named.index}` }],
      }
      const [id] = await oweAgain(ask, ids, [owed], { job: null, atMs })
      await writeAudit(ask, ids, entry, atMs)
      return { ok: true, deliveryId: `${id}-${named.index}`, destinationId: destinations[0].id }
    })
    const { destinationId, ...answer } = result
    if (destinationId !== undefined) this.#parts.taker()?.wake(destinationId)
    return answer
  }

  async count(selection: ReplaySelection): Promise<ReplayCount> {
    return countReplays(this.#parts, selection, await this.#bound())
  }

  /** After all that is committed now, also where another node's clock is ahead of this one's by a little. */
  async #bound(): Promise<string> {
    const now = this.#parts.ids.next()
    const { rows } = await this.#parts.database.query<{ bound: string }>(
      `SELECT greatest($1::bigint, (SELECT max(id) + 1 FROM failures WHERE id >= $1), (SELECT max(id) + 1 FROM attempts WHERE id >= $1)) AS bound`,
      [now],
    )
    return rows[0]?.bound ?? now
  }

  async create({ selection, ratePerSecond, createdBy }: NewReplayJob, audit?: Audit<ReplayJob>): Promise<ReplayJob> {
    const { database, ids, names, nowMs } = this.#parts
    const bound = await this.#bound()
    const { total, byDestination } = await countReplays(this.#parts, selection, bound)
    const job = newReplayJob({ selection, ratePerSecond, createdBy }, total, Math.floor(nowMs()))
    const entry = audit?.(job, null)
    const isNamed = 'deliveryIds' in selection
    const first = isNamed ? '0' : rowRange(selection.fromMs, selection.toMs, bound).first
    const destinations = isNamed ? ['0'] : []
    if (!isNamed) {
      for (const { destinationId } of byDestination)
        destinations.push((await names.find(database, 'destinations', destinationId)) as string)
    }
    await database.transaction(async (ask) => {
      const num = ids.next()
      await ask('INSERT INTO replay_jobs (num, id, created_at, state, rate, doc, bound, total) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)', [
        num,
        job.id,
        job.createdAtMs,
        job.state,
        ratePerSecond,
        JSON.stringify({ selection, createdBy }),
        bound,
        total,
      ])
      await ask('INSERT INTO replay_parts (job, destination, next) SELECT $1, unnest($2::bigint[]), $3', [num, destinations, first])
      await writeAudit(ask, ids, entry, job.createdAtMs)
    })
    return job
  }

  update(
    id: string,
    change: ReplayJobChange,
    audit?: Audit<ReplayJob>,
  ): Promise<{ ok: true; job: ReplayJob } | { ok: false; reason: 'not_found' | 'over' }> {
    const { database, ids, nowMs } = this.#parts
    return database.transaction(async (ask) => {
      await ask('SELECT 1 FROM replay_jobs WHERE id = $1 FOR UPDATE', [writeText(id)])
      const { rows } = await ask<JobRow>(`${SELECT_JOBS} WHERE j.id = $1`, [writeText(id)])
      if (rows[0] === undefined) return { ok: false, reason: 'not_found' }
      const before = replayJobOf(rows[0])
      const state = change.state === undefined ? before.state : REPLAY_TRANSITIONS[before.state][change.state]
      const ratePerSecond = change.ratePerSecond === undefined ? before.ratePerSecond : change.ratePerSecond
      if (state === before.state && ratePerSecond === before.ratePerSecond) return { ok: true, job: before }
      if (state === null || IS_REPLAY_OVER[before.state]) return { ok: false, reason: 'over' }
      const atMs = Math.floor(nowMs())
      const after: ReplayJob = { ...before, state, ratePerSecond, finishedAtMs: IS_REPLAY_OVER[state] ? atMs : null }
      await ask('UPDATE replay_jobs SET state = $2, rate = $3, finished_at = $4 WHERE num = $1', [
        rows[0].num,
        state,
        ratePerSecond,
        after.finishedAtMs,
      ])
      await writeAudit(ask, ids, audit?.(after, before), atMs)
      return { ok: true, job: after }
    })
  }

  list: ReplayStore['list'] = (filter, page) => listReplays(this.#parts.database, filter, page)

  one(id: string): Promise<ReplayJob | undefined> {
    return readReplay(this.#parts.database, id)
  }

  async step(step: ReplayStep): Promise<ReplayStepResult> {
    const reply = await makeStep(this.#parts, step)
    if (!reply.ok) return reply
    const { destinations, ...result } = reply
    for (const num of destinations) {
      const id = this.#parts.names.id('destinations', num)
      // One that this node does not know of yet is somebody else's to send, or found when it is.
      if (id !== undefined) this.#parts.taker()?.wake(id)
    }
    return result
  }

  /** Inside the transaction that settles. The records are of replays of one destination, by its `num`. */
  outcomes(ask: Ask, destination: string, records: readonly RecordRow<string>[]): Promise<void> {
    return writeOutcomes(ask, destination, records)
  }

  /** Some of the jobs that were over by then; how many. The newest stays, as wherever else jobs are kept. */
  async drop(beforeMs: number): Promise<number> {
    const { rows } = await this.#parts.database.query<{ dropped: number }>(
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
    if (dropped === 0) await this.#fold()
    return dropped
  }

  /** What was appended for jobs that make no steps any more. */
  async #fold(): Promise<void> {
    const { database, isClosed } = this.#parts
    const { rows } = await database.query<{ job: string }>('SELECT DISTINCT job FROM replay_outcomes')
    for (const { job } of rows) {
      if (isClosed()) return
      await database.transaction(async (ask) => {
        await ask('SELECT 1 FROM replay_jobs WHERE num = $1 FOR UPDATE', [job])
        // Of a job that is gone, nothing is left but this.
        await foldOutcomes(ask, job)
      })
    }
  }
}
