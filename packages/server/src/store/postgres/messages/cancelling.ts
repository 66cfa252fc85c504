// Cancels the pending deliveries of deleted destinations, in steps of one transaction each. Any node can do it, and several at the same
// time: each skips rows that another has locked. Shipments that a node holds are first settled or released by that node, and cancelled
// afterwards. Deliveries that a node accepts before it learns of the deletion are cancelled when it learns of it, or at the next check.

import { singleFlight } from '../../../timing/single-flight.ts'
import { type RecordRow, recordRow } from '../../encoding/settlement.ts'
import { owedIndexes, type StoredPart } from '../../encoding/stored-parts.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { writeOutcomes } from '../replays/replay-outcomes.ts'
import { int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { statement } from '../session/row-parameters.ts'
import type { RowIds } from '../tables/ids.ts'
import { addDelta, LEDGER } from '../tables/ledger-deltas.ts'
import { attemptsOf } from '../tables/ordered-rows.ts'
import { ATTEMPTS, attemptRows, FAILURES, failureRows } from './settling.ts'

/** The number of deliveries, each of which gets its own row. */
const CANCELLED_PER_STEP = 1_000
const CHECK_EVERY_MS = 5_000

/** Pending rows that nobody holds have three indexes with different orders. */
const PENDING = [
  { rows: 'attempt = 0 AND id > $2', order: 'id', values: ({ id }: Cursor) => [id] },
  { rows: 'attempt > 0 AND (due, id) > ($3, $2)', order: 'due, id', values: ({ id, due }: Cursor) => [id, due] },
  { rows: 'attempt < 0 AND id > $2', order: 'id', values: ({ id }: Cursor) => [id] },
]

const APPEND = statement({
  parameters: { attempts: ATTEMPTS, failures: FAILURES },
  text: ({ attempts, failures }) => `
WITH att AS (INSERT INTO attempts (${attempts.names}) SELECT * FROM ${attempts.unnest})
INSERT INTO failures (${failures.names}) SELECT * FROM ${failures.unnest}`,
})

interface Cursor {
  due: number
  id: string
}

interface DeletedRow {
  id: string
  attempt: number
  first_attempt: number | null
  replay: boolean
  parts: string
}

export class Cancelling {
  readonly #context: StoreContext
  #nextCheckAt = 0

  constructor(context: StoreContext) {
    this.#context = context
  }

  /** Resolves when all pending deliveries that nobody holds are cancelled, or are being cancelled or claimed by another node. */
  async cancel(destinationId: string): Promise<void> {
    const { database, idMap, isClosed } = this.#context
    const destination = await idMap.find(database.ask, 'destinations', destinationId)
    if (destination === undefined) return
    for (const pending of PENDING) {
      let cursor: Cursor | undefined = { due: 0, id: '0' }
      while (cursor !== undefined && !isClosed()) {
        const from: Cursor = cursor
        cursor = await database.transaction((ask) => this.#step(ask, destination, pending, from))
      }
    }
    await database.query('DELETE FROM order_keys WHERE destination = $1', [destination])
  }

  /** Cancels pending deliveries of all deleted destinations, including those that a dead node has left. */
  readonly resume = singleFlight(() => this.#resume())

  /** Called at every heartbeat. Looks for deleted destinations with pending deliveries, at most once in CHECK_EVERY_MS. */
  check(): void {
    const now = performance.now()
    if (now < this.#nextCheckAt || this.#context.isClosed()) return
    this.#nextCheckAt = now + CHECK_EVERY_MS
    this.#context.run(this.resume())
  }

  async #resume(): Promise<void> {
    const { rows } = await this.#context.database.query<{ id: string }>(
      `SELECT d.id FROM destinations d WHERE d.deleted AND coalesce(
         (SELECT s.id FROM shipments s WHERE s.holder = 0 AND s.attempt = 0 AND s.destination = d.num LIMIT 1),
         (SELECT s.id FROM shipments s WHERE s.holder = 0 AND s.attempt > 0 AND s.destination = d.num LIMIT 1),
         (SELECT s.id FROM shipments s WHERE s.holder < 1 AND s.attempt < 0 AND s.destination = d.num LIMIT 1)) IS NOT NULL`,
    )
    for (const { id } of rows) await this.cancel(id)
  }

  /** Returns where the next step begins, or undefined if nothing is left. */
  async #step(ask: Ask, destination: string, pending: (typeof PENDING)[number], from: Cursor): Promise<Cursor | undefined> {
    const { rows, order, values } = pending
    const { rows: found } = await ask<Cursor>(
      `SELECT id, due FROM (
         SELECT id, due, sum(count) OVER (ORDER BY ${order}) - count AS before FROM (
           SELECT id, due, count FROM shipments WHERE holder = 0 AND destination = $1 AND ${rows}
           ORDER BY ${order} LIMIT ${CANCELLED_PER_STEP}) w) s
       WHERE before < ${CANCELLED_PER_STEP} ORDER BY ${order}`,
      [destination, ...values(from)],
    )
    const last = found.at(-1)
    if (last === undefined) return undefined
    // Locked rows are being claimed, or cancelled by another node.
    const { rows: deleted } = await ask<DeletedRow>(
      `DELETE FROM shipments s USING (
         SELECT id FROM shipments WHERE holder = 0 AND id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED) l
       WHERE s.holder = 0 AND s.id = l.id RETURNING s.id, s.attempt, s.first_attempt, s.replay, s.parts`,
      [int8s(found.map(({ id }) => id))],
    )
    if (deleted.length > 0) await this.#recordCancelled(ask, destination, deleted)
    return last
  }

  async #recordCancelled(ask: Ask, destination: string, deleted: readonly DeletedRow[]): Promise<void> {
    const atMs = Math.floor(this.#context.nowMs())
    const stored = deleted.map(({ parts }) => JSON.parse(parts) as StoredPart<string>[])
    const { rows: segments } = await ask<{ seq: string; count: number; absent: number[] | null }>(
      'SELECT seq, count, absent FROM segments WHERE seq = ANY ($1::bigint[])',
      [int8s([...new Set(stored.flat().map(([, segment]) => segment))])],
    )
    const bySeq = new Map(segments.map((segment) => [segment.seq, segment]))
    const records = deleted.flatMap(({ id, attempt, first_attempt, replay }, at) =>
      (stored[at] as StoredPart<string>[]).map(([origin, segment, of]) => {
        const found = bySeq.get(segment)
        if (found === undefined && of === 0) throw new Error(`shipment ${id} refers to segment ${segment}, which does not exist`)
        const indexes = owedIndexes(of, found?.count ?? 0, found?.absent ?? null)
        const finals = [{ state: 'cancelled' as const, reason: 'destination_deleted', indexes }]
        return recordRow<string>({ origin, segment, attempt: attemptsOf(attempt, first_attempt), atMs, replay, requests: [], finals })
      }),
    )
    await appendEnded(ask, this.#context.ids, destination, records)
  }
}

/** Records deliveries that were cancelled without an attempt, whose shipments are deleted in the same transaction. */
export async function appendEnded(ask: Ask, ids: RowIds, destination: string, records: readonly RecordRow<string>[]): Promise<void> {
  const attempts = attemptRows(destination, records, ids)
  await ask(APPEND, APPEND.values({ attempts, failures: failureRows(attempts, ids) }))
  const cancelled = records.reduce((sum, record) => sum + record.cancelled, 0)
  await addDelta(ask, ids.next(), LEDGER, destination, [0, 0, -cancelled, 0, 0, cancelled])
  await writeOutcomes(ask, destination, records)
}
