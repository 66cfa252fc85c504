// The row ports of replays. ReplayJobRows: jobs and counts, where each call is its own snapshot or transaction. ReplayRows: the rows that one
// transaction needs to replay deliveries.

import type { JsonObject } from '@switchyard/protocol'
import type { FinalStateName, RowId } from '../../model/messages.ts'
import { nextKeyState } from '../../model/order/key-states.ts'
import type { OrderKey } from '../../model/order/order-key.ts'
import { packBody } from '../encoding/body-bytes.ts'
import { type Seed, sourceSeed } from '../encoding/fingerprint.ts'
import { clearFingerprint, KEY_WORDS, writeKeys } from '../encoding/segment-keys.ts'
import { type Awaitable, insertRow, isTrue, type RowOrder, type Sql } from '../encoding/sql.ts'
import { absentIndexes } from '../encoding/stored-parts.ts'
import type { OriginRows, ResolvedDelivery, RowAndIndex } from '../history/delivery-ids.ts'
import { writeStoredBody } from '../port/stored-messages.ts'
import type { KeyedMessage, NewAuditEntry, ReplayJob, ReplayJobState, ReplayResult, ReplayStep, ReplayStepResult } from '../store.ts'
import { type ReplayJobRow, type ReplayProgress, replayDocText } from './replay-job-row.ts'

// ── Jobs, and counting their deliveries ──

/** Rows of a destination with row ids from `first` to `last`. */
export interface CountedRows<Id extends RowId> {
  destinationId: string
  /** Only deliveries of messages of these sources. The others count as seen. */
  sourceIds: readonly string[] | undefined
  first: Id
  last: Id
  limit: number
}

export interface CountedFailures<Id extends RowId> extends CountedRows<Id> {
  state: FinalStateName
  reason: string | null
  /** If a later delivery of the same message has one of these states, that one is repeated instead. */
  instead: readonly FinalStateName[]
}

export interface RowCount<Id extends RowId> {
  /** The number of rows that were read, and the row id of the last one. */
  seen: number
  newest: Id | null
  /** Deliveries in these rows. */
  total: number
  /** How many of them have a later delivery of the same message that is pending or was delivered. */
  replayed: number
}

/** A new job, and the row at which each of its parts begins. */
export interface NewJobRow<Id extends RowId> {
  job: ReplayJob
  bound: Id
  first: Id
  /** The job has one part per destination. Null if it has one part, for deliveries that the user selected by id. */
  destinationIds: readonly string[] | null
}

/** The fields of a job that a change may set. */
export type JobSettings = Pick<ReplayJob, 'state' | 'ratePerSecond' | 'finishedAtMs'>

export type ReplayReply = Extract<ReplayResult, { ok: false }> | (Extract<ReplayResult, { ok: true }> & { destinationId: string })
export type StepRefusal = Extract<ReplayStepResult, { ok: false }>
export type StepReply = StepRefusal | (Extract<ReplayStepResult, { ok: true }> & { destinationIds: readonly string[] })

export interface ReplayJobRows<Id extends RowId> {
  readonly order: RowOrder<Id>
  /** A row id after every row that is committed now. */
  bound(): Promise<Id>
  countFailures(rows: CountedFailures<Id>): Promise<RowCount<Id>>
  /** `total` and `replayed` count messages. One attempt may have delivered many. */
  countDelivered(rows: CountedRows<Id>): Promise<RowCount<Id>>
  /** Deliveries that do not exist, or of other sources, are missing in the result. */
  countByIds(
    deliveryIds: readonly string[],
    sourceIds: readonly string[] | undefined,
  ): Promise<readonly { destinationId: string; replayed: boolean }[]>
  /** Newest first. */
  newest(state: ReplayJobState | undefined, last: Id, limit: number): Promise<readonly ReplayJobRow<Id>[]>
  one(id: string): Promise<ReplayJobRow<Id> | undefined>
  insert(job: NewJobRow<Id>, audit: NewAuditEntry | undefined): Promise<void>
  /** False if nothing was changed, because the job no longer has the state and rate of `before`. */
  change(id: string, before: JobSettings, after: JobSettings, atMs: number, audit: NewAuditEntry | undefined): Promise<boolean>
  /** Runs `replayOne` in a transaction, and writes the audit entry if the delivery was replayed. */
  replay(deliveryId: string, resume: boolean, atMs: number, audit: NewAuditEntry | undefined): Promise<ReplayReply>
  /** Runs `makeStep` in a transaction. */
  step(step: ReplayStep): Promise<StepReply>
}

const JOBS_PER_STEP = 100

/** Inside a transaction, like the others below. `num`: the row id; undefined if the database assigns it. */
export async function insertJob<Id extends RowId>(
  sql: Sql<Id>,
  { job, bound, first, destinationIds }: NewJobRow<Id>,
  num?: Id,
): Promise<void> {
  const { id, createdAtMs, state, ratePerSecond, selection, createdBy, total } = job
  const doc = replayDocText({ selection, createdBy })
  const columns = { id, created_at: createdAtMs, state, rate: ratePerSecond, doc, bound, total }
  await insertRow(sql, 'replay_jobs', num === undefined ? columns : { num, ...columns })
  const insertPart = 'INSERT INTO replay_parts (job, destination, next)'
  if (destinationIds === null) await sql.run(`${insertPart} SELECT num, 0, 0 FROM replay_jobs WHERE id = ?`, [id])
  else
    await sql.run(
      `${insertPart} SELECT j.num, d.num, ? FROM replay_jobs j CROSS JOIN destinations d WHERE j.id = ? AND ${sql.among('d.id', 'text')}`,
      [first, id, sql.list(destinationIds)],
    )
}

/** False if nothing was changed, because the job no longer has the state and rate of `before`. */
export async function changeJob(sql: Sql, id: string, before: JobSettings, after: JobSettings): Promise<boolean> {
  const update = 'UPDATE replay_jobs SET state = ?, rate = ?, finished_at = ? WHERE id = ? AND state = ? AND rate IS NOT DISTINCT FROM ?'
  const values = [after.state, after.ratePerSecond, after.finishedAtMs, sql.text(id), before.state, before.ratePerSecond]
  return (await sql.run(update, values)) === 1
}

/**
 * Drops some of the jobs that were over before `beforeMs`, and returns how many. The newest job is kept, because its number must not be reused
 * while rows may refer to it.
 */
export async function dropJobs(sql: Sql, beforeMs: number): Promise<number> {
  const old = await sql.all<{ num: RowId }>(
    `SELECT num FROM replay_jobs WHERE finished_at < ? AND num < (SELECT max(num) FROM replay_jobs)
     ORDER BY num LIMIT ${JOBS_PER_STEP} ${sql.lock('FOR UPDATE SKIP LOCKED')}`,
    [Math.floor(beforeMs)],
  )
  const nums = [sql.list(old.map(({ num }) => num))]
  await sql.run(`DELETE FROM replay_parts WHERE ${sql.among('job')}`, nums)
  await sql.run(`DELETE FROM replay_jobs WHERE ${sql.among('num')}`, nums)
  return old.length
}

// ── Inside one transaction ──

/** How far a part of a job is: the index in the job's states, the next row (or the index of the next selected id), and the next delivery in that row. */
export interface Place<Id extends RowId> {
  state: number
  next: Id | number
  place: number
}

export interface PartRow<Id extends RowId> extends Place<Id> {
  /** Null for the part with deliveries that the user selected by id. */
  destination: Id | null
  /** The number of deliveries that were replayed and not attempted yet. */
  waiting: number
  /** Whether the destination is disabled, so that nothing is replayed to it until it is enabled. A paused destination is not held. */
  held: boolean
  over: boolean
}

export interface JobStatus {
  state: ReplayJobState
  position: number
  /** Whether another runner leads the job. */
  led: boolean
}

export interface FailedDelivery<Id extends RowId> extends Omit<ResolvedDelivery<Id>, 'destination'> {
  id: Id
  reason: string | null
}

/** About other deliveries of the same message to the same destination. */
export interface SameMessage<Id extends RowId> {
  /** Whether another delivery is pending, or was delivered later than this one. */
  hasPendingOrDelivered: boolean
  /** Whether another delivery is pending. */
  hasPending: boolean
  /** Whether this job created one of them, however it ended. */
  ofJob: boolean
  newest: Id | null
  /** The delivery that this one repeats. */
  parent: RowAndIndex<Id> | undefined
}

/** Messages of one segment that are replayed to one destination as one shipment. */
export interface OwedAgain<Id extends RowId> {
  destination: Id
  segment: Id
  /** The stored size of the segment. */
  bytes: number
  /** `replayOf` is null for a message that is released from quarantine: this is its first delivery, not a replay. Then it is null in all entries. */
  entries: readonly { index: number; replayOf: string | null }[]
  /** If the message is put back at the head of its key in an ordered destination: the key. Other replays are outside the order. */
  resumed?: OrderKey | undefined
  /** The messages came from an archive: `replayOf` is null, because the store has no earlier delivery of them, but they are replays. */
  isArchived?: boolean
}

/** Messages of an archive that were received together. */
export interface ArchivedSegment<Id extends RowId> {
  sourceId: string
  /** The source's row id. */
  source: Id
  receivedAtMs: number
  items: readonly JsonObject[]
}

export interface ReplayRows<Id extends RowId> extends OriginRows<Id> {
  readonly order: RowOrder<Id>

  /** Locks the job until the transaction ends, so that steps are made one at a time. */
  job(step: Pick<ReplayStep, 'id' | 'runner'>): Awaitable<(ReplayJobRow<Id> & JobStatus) | undefined>
  /** The parts that are not over, in the order of their turns, with the current value of `waiting`. */
  parts(job: Id): Awaitable<readonly Omit<PartRow<Id>, 'over'>[]>
  /** `owed`: the number of deliveries that this step has replayed. */
  saveParts(job: ReplayJobRow<Id>, parts: readonly (PartRow<Id> & { owed: number })[]): Awaitable<void>
  /** Without `progress`, writes only which runner leads the job. Returns the job after the change. */
  saveJob(job: ReplayJobRow<Id>, progress: ReplayProgress | undefined, runner: string | undefined): Awaitable<ReplayJobRow<Id>>

  /** Oldest first. */
  failures(rows: { destination: Id; state: FinalStateName; first: Id; last: Id; limit: number }): Awaitable<readonly FailedDelivery<Id>[]>
  /** Oldest first. `bytes`: the size of the doc; 0 if the attempt delivered nothing. */
  attempts(rows: {
    destination: Id
    first: Id
    last: Id
    limit: number
  }): Awaitable<readonly { id: Id; origin: Id; segment: Id; bytes: number }[]>
  /** AttemptDoc as JSON, by the row ids of attempts. */
  attemptDocs(attempts: readonly Id[]): Awaitable<readonly { id: Id; doc: string }[]>
  /** Docs of attempts that ended deliveries, grouped by origin, in the order of `origins`. Read lazily, so that a caller can stop early. */
  docs(origins: readonly Id[]): Iterable<{ origin: Id; doc: string }> | AsyncIterable<{ origin: Id; doc: string }>

  /** Locks the destinations against deletion until the transaction ends. A later deletion cancels the replays that were created here. */
  destinations(nums: readonly Id[]): Awaitable<readonly { num: Id; id: string; deleted: boolean; isWarehouse: boolean }[]>
  /** In the order of the deliveries. */
  sameMessages(deliveries: readonly ResolvedDelivery<Id>[], job: { num: Id; bound: Id }): Awaitable<readonly SameMessage<Id>[]>
  /** The stored sizes. Locks the segments against being dropped until the transaction ends. Segments that are missing in the result are no longer stored. */
  segments(seqs: readonly Id[]): Awaitable<readonly { seq: Id; bytes: number }[]>
  /** Those of the segments that are of one of these sources. */
  ofSources(seqs: readonly Id[], sourceIds: readonly string[]): Awaitable<readonly Id[]>
  bodies(seqs: readonly Id[]): Awaitable<readonly { seq: Id; absent: readonly number[]; body: Uint8Array }[]>
  /** Whether there are deletion requests, so that messages may have been purged. */
  hasDeletions(): Awaitable<boolean>

  /** The row ids of sources that are not deleted. */
  sources(ids: readonly string[]): Awaitable<readonly { num: Id; id: string }[]>
  /** Those of the users that a request deleted after a time, and the source and the time of the request. */
  deletedUsers(userIds: readonly string[], afterMs: number): Awaitable<readonly { userId: string; source: Id; atMs: number }[]>
  /** Stores messages of an archive, and returns the row id and the stored size of their segment. */
  addSegment(segment: ArchivedSegment<Id>): Awaitable<{ seq: Id; bytes: number }>
  saveDoc(job: Id, doc: string): Awaitable<unknown>

  /** The key of an ordered destination that the delivery holds. Locks it until the transaction ends. */
  heldKey(delivery: ResolvedDelivery<Id>): Awaitable<OrderKey | undefined>
  /** The key that is held has a new head, which is due at once. */
  resume(destination: Id, head: KeyedMessage): Awaitable<unknown>
  /** Creates the replays and returns the row ids of their shipments. Replaying a delete message opens its deletion request again. */
  owe(shipments: readonly OwedAgain<Id>[], job: Id | null, atMs: number): Awaitable<readonly Id[]>
}

type SharedRows =
  | 'heldKey'
  | 'resume'
  | 'order'
  | 'failures'
  | 'attempts'
  | 'attemptDocs'
  | 'destinations'
  | 'segments'
  | 'ofSources'
  | 'bodies'
  | 'hasDeletions'
  | 'sources'
  | 'deletedUsers'
  | 'addSegment'
  | 'saveDoc'

/** What only the adapter knows of a new segment. */
export interface NewSegmentRows<Id extends RowId> {
  newId: () => Id
  seed: () => Awaitable<Seed>
}

export function replayRows<Id extends RowId>(
  sql: Sql<Id>,
  { newId, seed, ...own }: Omit<ReplayRows<Id>, SharedRows> & NewSegmentRows<Id>,
): ReplayRows<Id> {
  return {
    ...own,
    order: sql.order,
    async heldKey({ segment, destination, origin, index }) {
      const rows = await sql.all<{ key: OrderKey }>(
        `SELECT key FROM order_keys WHERE segment = ? AND destination = ? AND origin = ? AND idx = ? AND state = 'held' ${sql.lock('FOR UPDATE')}`,
        [segment, destination, origin, index],
      )
      return rows[0]?.key
    },
    resume: (destination, { key, segment, origin, index }) =>
      sql.run(
        `UPDATE order_keys SET state = ?, segment = ?, origin = ?, idx = ?, due = 0, attempts = 0, ended = NULL, skip = ?
         WHERE destination = ? AND key = ?`,
        [nextKeyState('held', 'resumed'), segment, origin, index, sql.flag(false), destination, key],
      ),
    async failures({ destination, state, first, last, limit }) {
      const rows = await sql.all<FailedDelivery<Id>>(
        `SELECT id, origin, idx AS "index", segment, reason FROM failures
         WHERE destination = ? AND state = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ?`,
        [destination, state, first, last, limit],
      )
      return rows.map((row) => sql.read(row, 'reason'))
    },
    attempts: ({ destination, first, last, limit }) =>
      sql.all(
        `SELECT id, origin, segment, CASE WHEN delivered > 0 THEN octet_length(doc) ELSE 0 END AS bytes FROM attempts
         WHERE destination = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ?`,
        [destination, first, last, limit],
      ),
    attemptDocs: (attempts) => sql.all(`SELECT id, doc FROM attempts WHERE ${sql.among('id')}`, [sql.list(attempts)]),
    destinations: (nums) => lockDestinations(sql, sql.among('num'), nums),
    segments: (seqs) =>
      sql.all(`SELECT seq, octet_length(body) AS bytes FROM segments WHERE ${sql.among('seq')} ORDER BY seq ${sql.lock('FOR KEY SHARE')}`, [
        sql.list(seqs),
      ]),
    async ofSources(seqs, sourceIds) {
      const rows = await sql.all<{ seq: Id }>(
        `SELECT g.seq FROM segments g JOIN sources s ON s.num = g.source WHERE ${sql.among('g.seq')} AND ${sql.among('s.id', 'text')}`,
        [sql.list([...new Set(seqs)]), sql.list(sourceIds)],
      )
      return rows.map(({ seq }) => seq)
    },
    async bodies(seqs) {
      const rows = await sql.all<{ seq: Id; absent: readonly number[]; body: Uint8Array }>(
        `SELECT seq, absent, body FROM segments WHERE ${sql.among('seq')}`,
        [sql.list(seqs)],
      )
      return rows.map((row) => Object.assign(row, { absent: absentIndexes(row.absent) }))
    },
    ...archivedRows(sql, { newId, seed }),
    hasDeletions: async () => (await sql.all('SELECT 1 FROM deletions LIMIT 1')).length > 0,
  }
}

/** Locks the destinations against deletion until the transaction ends. `among`: a condition on one of their ids. */
export async function lockDestinations<Id extends RowId>(sql: Sql<Id>, among: string, ids: readonly RowId[]) {
  const rows = await sql.all<{ num: Id; id: string; deleted: boolean; doc: string }>(
    `SELECT num, id, deleted, doc FROM destinations WHERE ${among} ORDER BY num ${sql.lock('FOR SHARE')}`,
    [sql.list(ids)],
  )
  return rows.map(({ num, id, deleted, doc }) => {
    const isWarehouse = (JSON.parse(doc) as { type?: string }).type === 'warehouse'
    return { num, id, deleted: isTrue(deleted), isWarehouse }
  })
}

/** What a step with messages of an archive needs in addition. */
function archivedRows<Id extends RowId>(
  sql: Sql<Id>,
  { newId, seed }: NewSegmentRows<Id>,
): Pick<ReplayRows<Id>, 'sources' | 'deletedUsers' | 'addSegment' | 'saveDoc'> {
  return {
    sources: (ids) => sql.all(`SELECT num, id FROM sources WHERE NOT deleted AND ${sql.among('id', 'text')}`, [sql.list(ids)]),
    async deletedUsers(userIds, afterMs) {
      const rows = await sql.all<{ userId: string; source: Id; atMs: number }>(
        `SELECT DISTINCT t.user_id AS "userId", t.source, d.created_at AS "atMs" FROM deletions d JOIN deletion_targets t ON t.deletion = d.num
         WHERE NOT d.pseudonyms AND d.created_at > ? AND ${sql.among('t.user_id', 'text')}`,
        [afterMs, sql.list(userIds.map((id) => sql.text(id)))],
      )
      return rows.map((row) => sql.read(row, 'userId'))
    },
    async addSegment({ sourceId, source, receivedAtMs, items }) {
      const words = new Uint32Array(items.length * KEY_WORDS)
      writeKeys(
        items.map(() => ''),
        items,
        sourceSeed(sourceId, await seed()),
        words,
        0,
      )
      // A message that is sent again is a duplicate of the one that was accepted, not of this copy.
      for (let index = 0; index < items.length; index++) clearFingerprint(words, index * KEY_WORDS)
      const body = packBody(writeStoredBody({ batch: items }))
      const seq = newId()
      await insertRow(sql, 'segments', {
        seq,
        source,
        received_at: receivedAtMs,
        browser: sql.flag(false),
        count: items.length,
        routes: JSON.stringify({ s: [] }),
        keys: new Uint8Array(words.buffer),
        body,
      })
      return { seq, bytes: body.length }
    },
    saveDoc: (job, doc) => sql.run('UPDATE replay_jobs SET doc = ? WHERE num = ?', [doc, job]),
  }
}
