// What a deleted destination is still owed and nobody holds is cancelled, in steps, each a transaction. Any node may do it, also
// several at once: each takes rows that no other has locked. What is held is settled or given back by its holder, and
// cancelled after that; what a node still accepts before it hears of the deletion, when it hears, or by whoever looks next.

import { recordRow } from '../../encoding/settlement.ts'
import { owedIndexes, type StoredPart } from '../../encoding/stored-parts.ts'
import { writeOutcomes } from '../replays/replay-outcomes.ts'
import { int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { statement } from '../session/row-parameters.ts'
import type { StoreContext } from '../session/store-context.ts'
import { ATTEMPTS, attemptRows, FAILURES, failureRows } from './attempt-columns.ts'
import { addDelta, LEDGER } from './ledger-deltas.ts'

/** Deliveries, each with a row of its own. */
const CANCELLED_PER_STEP = 1_000
const LOOK_EVERY_MS = 5_000

/** Waiting rows have two indexes, each with an order of its own. */
const WAITING = [
  { rows: 'attempt = 0 AND id > $2', order: 'id', values: ({ id }: Place) => [id] },
  { rows: 'attempt > 0 AND (due, id) > ($3, $2)', order: 'due, id', values: ({ id, due }: Place) => [id, due] },
]

const APPEND = statement({
  parameters: { attempts: ATTEMPTS, failures: FAILURES },
  text: ({ attempts, failures }) => `
WITH att AS (INSERT INTO attempts (${attempts.names}) SELECT * FROM ${attempts.unnest})
INSERT INTO failures (${failures.names}) SELECT * FROM ${failures.unnest}`,
})

interface Place {
  due: number
  id: string
}

interface TakenRow {
  id: string
  attempt: number
  replay: boolean
  parts: string
}

export class Cancelling {
  readonly #context: StoreContext
  #resuming: Promise<void> | null = null
  #lookAtMs = 0

  constructor(context: StoreContext) {
    this.#context = context
  }

  /** Resolves when everything that waited was cancelled, or is being cancelled or taken by another. */
  async cancel(destinationId: string): Promise<void> {
    const { database, idMap, isClosed } = this.#context
    const destination = await idMap.find(database.ask, 'destinations', destinationId)
    if (destination === undefined) return
    for (const waiting of WAITING) {
      let place: Place | undefined = { due: 0, id: '0' }
      while (place !== undefined && !isClosed()) {
        const from: Place = place
        place = await database.transaction((ask) => this.#step(ask, destination, waiting, from))
      }
    }
  }

  /** Whatever any deleted destination is still owed: also what a node that is no more has left. */
  resume(): Promise<void> {
    this.#resuming ??= this.#resume().finally(() => {
      this.#resuming = null
    })
    return this.#resuming
  }

  /** Called with every beat; looks now and then. */
  look(): void {
    const now = performance.now()
    if (now < this.#lookAtMs || this.#context.isClosed()) return
    this.#lookAtMs = now + LOOK_EVERY_MS
    this.#context.run(this.resume())
  }

  async #resume(): Promise<void> {
    const { rows } = await this.#context.database.query<{ id: string }>(
      `SELECT d.id FROM destinations d WHERE d.deleted AND coalesce(
         (SELECT s.id FROM shipments s WHERE s.holder = 0 AND s.attempt = 0 AND s.destination = d.num LIMIT 1),
         (SELECT s.id FROM shipments s WHERE s.holder = 0 AND s.attempt > 0 AND s.destination = d.num LIMIT 1)) IS NOT NULL`,
    )
    for (const { id } of rows) await this.cancel(id)
  }

  /** Where the next step begins; undefined when nothing is left from there on. */
  async #step(ask: Ask, destination: string, waiting: (typeof WAITING)[number], from: Place): Promise<Place | undefined> {
    const { rows, order, values } = waiting
    const { rows: found } = await ask<Place>(
      `SELECT id, due FROM (
         SELECT id, due, sum(count) OVER (ORDER BY ${order}) - count AS before FROM (
           SELECT id, due, count FROM shipments WHERE holder = 0 AND destination = $1 AND ${rows}
           ORDER BY ${order} LIMIT ${CANCELLED_PER_STEP}) w) s
       WHERE before < ${CANCELLED_PER_STEP} ORDER BY ${order}`,
      [destination, ...values(from)],
    )
    const last = found.at(-1)
    if (last === undefined) return undefined
    // What is locked is being taken, or cancelled by another node.
    const { rows: taken } = await ask<TakenRow>(
      `DELETE FROM shipments s USING (
         SELECT id FROM shipments WHERE holder = 0 AND id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED) l
       WHERE s.holder = 0 AND s.id = l.id RETURNING s.id, s.attempt, s.replay, s.parts`,
      [int8s(found.map(({ id }) => id))],
    )
    if (taken.length > 0) await this.#end(ask, destination, taken)
    return last
  }

  async #end(ask: Ask, destination: string, taken: readonly TakenRow[]): Promise<void> {
    const atMs = Math.floor(this.#context.nowMs())
    const stored = taken.map(({ parts }) => JSON.parse(parts) as StoredPart<string>[])
    const { rows: segments } = await ask<{ seq: string; count: number; absent: number[] | null }>(
      'SELECT seq, count, absent FROM segments WHERE seq = ANY ($1::bigint[])',
      [int8s([...new Set(stored.flat().map(([, segment]) => segment))])],
    )
    const bySeq = new Map(segments.map((segment) => [segment.seq, segment]))
    const records = taken.flatMap(({ id, attempt, replay }, at) =>
      (stored[at] as StoredPart<string>[]).map(([origin, segment, of]) => {
        const found = bySeq.get(segment)
        if (found === undefined && of === 0) throw new Error(`shipment ${id} refers to a segment that is not there`)
        const indexes = owedIndexes(of, found?.count ?? 0, found?.absent ?? null)
        const finals = [{ state: 'cancelled' as const, reason: 'destination_deleted', indexes }]
        return recordRow<string>({ origin, segment, attempt, atMs, replay, requests: [], finals })
      }),
    )
    const { ids } = this.#context
    const attempts = attemptRows(destination, records, ids)
    await ask(APPEND, APPEND.values({ attempts, failures: failureRows(attempts, ids) }))
    const cancelled = records.reduce((sum, record) => sum + record.cancelled, 0)
    await addDelta(ask, ids.next(), LEDGER, destination, [0, 0, -cancelled, 0, 0, cancelled])
    await writeOutcomes(ask, destination, records)
  }
}
