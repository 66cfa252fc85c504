// What operators change, inside the group's transaction: sources and destinations, settings, suppressions, cancelling what
// a deleted destination is owed.

import type { DatabaseSync } from 'node:sqlite'
import type { StoredDestination } from '../../configuration/stored-destination.ts'
import { writeAttemptDoc } from '../../encoding/attempt-doc.ts'
import type { Source } from '../../store.ts'
import type { Claims } from '../messages/claims.ts'
import { absentIndexes, owedIndexes, type ShipmentRow } from '../messages/read-claims.ts'
import type { StoredPart } from '../messages/stored-parts.ts'
import type { SettleWriter } from '../messages/write-settle.ts'
import type { Names } from '../schema/names.ts'

interface Parts {
  database: DatabaseSync
  sources: Names
  destinations: Names
  claims: Claims
  settler: SettleWriter
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
          doc: writeAttemptDoc({ requests: [], finals }),
          failures: indexes.map((index) => ({ state: 'cancelled', reason, index })),
        })
      }
    }
    return rows.length
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
}
