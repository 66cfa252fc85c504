// Cancels what a deleted destination is still owed, inside the group's transaction.

import type { DatabaseSync } from 'node:sqlite'
import { recordRow } from '../../encoding/settlement.ts'
import { owedIndexes, type StoredPart } from '../../encoding/stored-parts.ts'
import type { Names } from '../schema/names.ts'
import type { Claims } from './claims.ts'
import { absentIndexes, type ShipmentRow } from './read-claims.ts'
import type { SettleWriter } from './write-settle.ts'

interface Parts {
  database: DatabaseSync
  destinations: Names
  claims: Claims
  settler: SettleWriter
}

/** Deliveries, each with a row of its own: some 5 ms of a commit that others wait for. */
const CANCELLED_PER_STEP = 1_000

export class CancelWriter {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Some of it: how many shipments, until there are none. What is held is settled by its holder. */
  step(destinationId: string, atMs: number): number {
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
      for (const [origin, segment, stored] of JSON.parse(row.parts) as StoredPart<number>[]) {
        const indexes = stored === 0 ? this.#allOf(segment) : [...stored]
        const finals = [{ state: 'cancelled' as const, reason: 'destination_deleted', indexes }]
        const { attempt, replay } = row
        settler.insertRecord(destination, recordRow({ origin, segment, attempt, atMs, replay: replay === 1, requests: [], finals }))
      }
    }
    return rows.length
  }

  #allOf(segment: number): number[] {
    const row = this.#parts.database.prepare('SELECT count, absent FROM segments WHERE seq = ?').get(segment) as {
      count: number
      absent: string | null
    }
    return owedIndexes(0, row.count, absentIndexes(row.absent))
  }
}
