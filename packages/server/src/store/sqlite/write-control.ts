// What operators change, inside the group's transaction: sources and destinations, settings, suppressions, cancelling what
// a deleted destination is owed, and owing one delivery again.

import type { DatabaseSync } from 'node:sqlite'
import { readStoredBody } from '../../stored-messages.ts'
import type { ReplayResult, Source } from '../store.ts'
import { writeAttemptDoc } from './attempt-doc.ts'
import { unpackBody } from './body-bytes.ts'
import type { Claims } from './claims.ts'
import { rowAndIndex, type StoredDestination, type StoredPart } from './commands.ts'
import type { RowIds } from './ids.ts'
import type { Ledger } from './ledger.ts'
import type { Names } from './names.ts'
import { resolveOrigin, stateOf } from './origins.ts'
import { absentIndexes, owedIndexes, type ShipmentRow } from './read-claims.ts'
import type { Retention } from './retention.ts'
import type { SettleWriter } from './write-settle.ts'

interface Parts {
  database: DatabaseSync
  ids: RowIds
  sources: Names
  destinations: Names
  ledger: Ledger
  claims: Claims
  settler: SettleWriter
  retention: Retention
}

/** Deliveries, each with a row of its own: some 5 ms of a commit that others wait for. */
const CANCELLED_PER_STEP = 1_000

export class ControlWriter {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  putSource(source: Source, create: boolean): void {
    this.#put('sources', source, create)
  }

  putDestination(destination: StoredDestination, create: boolean): void {
    this.#put('destinations', destination, create)
  }

  delete(table: 'sources' | 'destinations', id: string): boolean {
    const { changes } = this.#parts.database.prepare(`UPDATE ${table} SET deleted = 1 WHERE id = ? AND deleted = 0`).run(id)
    return changes === 1
  }

  setSetting(name: string, value: string): void {
    const { database } = this.#parts
    database
      .prepare('INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
      .run(name, value)
  }

  deleteSuppression(userId: string, sourceId: string | null): number {
    const { database, sources } = this.#parts
    if (sourceId === null) return Number(database.prepare('DELETE FROM suppressions WHERE user_id = ?').run(userId).changes)
    const source = sources.num(sourceId)
    if (source === undefined) return 0
    return Number(database.prepare('DELETE FROM suppressions WHERE user_id = ? AND source = ?').run(userId, source).changes)
  }

  /** Cancels some of what a deleted destination is owed; what is held is settled by its holder. */
  cancelStep(destinationId: string, atMs: number): number {
    const { database, destinations, claims, settler } = this.#parts
    const destination = destinations.num(destinationId)
    if (destination === undefined) return 0
    const all = database.prepare('SELECT * FROM shipments WHERE destination = ?').iterate(destination) as unknown as Iterable<ShipmentRow>
    const rows: ShipmentRow[] = []
    let deliveries = 0
    for (const row of all) {
      if (claims.holds(row.id)) continue
      rows.push(row)
      deliveries += row.count
      if (deliveries >= CANCELLED_PER_STEP) break
    }
    const remove = database.prepare('DELETE FROM shipments WHERE destination = ? AND class = ? AND due = ? AND id = ?')
    for (const row of rows) {
      remove.run(destination, row.class, row.due, row.id)
      for (const [origin, segment, stored] of JSON.parse(row.parts) as StoredPart[]) {
        const indexes = stored === 0 ? this.#allOf(segment) : [...stored]
        const reason = 'destination_deleted'
        const finals = [{ state: 'cancelled' as const, reason, indexes }]
        settler.insertRecord(destination, {
          origin,
          segment,
          attempt: row.attempt,
          atMs,
          replay: row.replay === 1,
          delivered: 0,
          failed: 0,
          expired: 0,
          cancelled: indexes.length,
          doc: writeAttemptDoc({ origin, segment, attempt: row.attempt, atMs, requests: [], finals }),
          failures: indexes.map((index) => ({ state: 'cancelled', reason, index })),
        })
      }
    }
    return rows.length
  }

  replay(deliveryId: string, atMs: number): ReplayResult & { destinationId?: string } {
    const { database, ids, destinations, ledger, settler, retention } = this.#parts
    const named = rowAndIndex(deliveryId)
    const origin = named && resolveOrigin(database, named.row)
    if (!named || !origin || (origin.indexes !== 0 && !origin.indexes.includes(named.index))) return { ok: false, reason: 'not_found' }
    const { row, index } = named
    if (stateOf(database, row, index).final === undefined) {
      return { ok: false, reason: this.#isIn(origin.segment, index) ? 'still_pending' : 'not_found' }
    }
    if (!this.#isIn(origin.segment, index) || retention.isDropping(origin.segment)) return { ok: false, reason: 'message_gone' }
    const live = database.prepare('SELECT id FROM destinations WHERE num = ? AND deleted = 0').get(origin.destination)
    if (live === undefined) return { ok: false, reason: 'destination_gone' }
    const id = ids.next()
    const destinationId = destinations.id(origin.destination)
    database
      .prepare('INSERT INTO replays (origin, destination, segment, idx, replay_of, at) VALUES (?, ?, ?, ?, ?, ?)')
      .run(id, origin.destination, origin.segment, index, deliveryId, atMs)
    settler.insertShipment(origin.destination, {
      destinationId,
      attempt: 0,
      firstAttemptAtMs: null,
      dueAtMs: 0,
      unit: false,
      urls: null,
      replay: true,
      parts: [{ origin: id, segment: origin.segment, indexes: [index] }],
    })
    ledger.owe(origin.destination, 1)
    return { ok: true, deliveryId: `${id}-${index}`, destinationId }
  }

  #put(table: 'sources' | 'destinations', thing: { id: string }, create: boolean): void {
    const { database } = this.#parts
    const doc = JSON.stringify(thing)
    if (create) database.prepare(`INSERT INTO ${table} (id, doc) VALUES (?, ?)`).run(thing.id, doc)
    else database.prepare(`UPDATE ${table} SET doc = ? WHERE id = ?`).run(doc, thing.id)
  }

  #allOf(segment: number): number[] {
    const row = this.#parts.database.prepare('SELECT count, absent FROM segments WHERE seq = ?').get(segment) as {
      count: number
      absent: string | null
    }
    return owedIndexes(row.count, absentIndexes(row.absent))
  }

  /** Whether the message is still stored. */
  #isIn(segment: number, index: number): boolean {
    const row = this.#parts.database.prepare('SELECT absent, body FROM segments WHERE seq = ?').get(segment) as
      | { absent: string | null; body: Uint8Array }
      | undefined
    if (row === undefined) return false
    const absent = absentIndexes(row.absent)
    return readStoredBody(unpackBody(row.body), { sourceId: '', receivedAtMs: 0, ip: null, browser: false }, absent).items[index] != null
  }
}
