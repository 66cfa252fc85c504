// Claims shipments of a destination. Reads only the rows of that destination, in the order of the primary key, so no search reads another
// destination's backlog. Shipments that are already claimed are skipped; there are never more of them than fit in memory.

import type { StatementSync } from 'node:sqlite'
import type { OrderKey } from '../../../model/order/order-key.ts'
import { keysOf } from '../../delivery/ordered-shipments.ts'
import { unpackBody } from '../../encoding/body-bytes.ts'
import { absentIndexes, owedPart, type StoredPart } from '../../encoding/stored-parts.ts'
import { type StoredContent, selectContent } from '../../history/segment-rows.ts'
import type { ClaimRequest, Part, Shipment } from '../../store.ts'
import type { ShipmentRow } from '../rows/history-rows.ts'
import type { Rows } from '../schema/rows.ts'
import type { Claims } from './claims.ts'
import { CLASS, orderedPlaceOf } from './row-classes.ts'

export interface ClaimReply {
  shipments: { shipment: Shipment; bytes: number }[]
  /** With unpacked bodies. */
  segments: StoredContent<number>[]
  moreFresh: boolean
  nextRetryAtMs: number | null
}

export class ClaimReader {
  readonly #claims: Claims
  readonly #rows: Rows
  readonly #fresh: StatementSync
  readonly #retries: StatementSync
  readonly #overdue: StatementSync
  readonly #overdueHeads: StatementSync
  readonly #crowded: StatementSync
  readonly #isCrowded: StatementSync
  readonly #segment: StatementSync

  constructor({ rows, claims }: { rows: Rows; claims: Claims }) {
    this.#claims = claims
    this.#rows = rows
    const { database } = rows
    this.#fresh = database.prepare('SELECT * FROM shipments WHERE destination = ? AND class = 0 ORDER BY due, id')
    this.#retries = database.prepare('SELECT * FROM shipments WHERE destination = ? AND class = 1 ORDER BY due, id')
    this.#overdue = database.prepare(
      'SELECT * FROM shipments WHERE destination = ? AND class = 1 AND first_attempt <= ? ORDER BY first_attempt',
    )
    this.#overdueHeads = database.prepare(
      `SELECT * FROM shipments WHERE destination = ? AND class = ${CLASS.head} AND first_attempt <= ? ORDER BY first_attempt`,
    )
    this.#crowded = database.prepare(
      // The second condition is that of the index.
      `SELECT h.* FROM order_keys k JOIN shipments h ON h.destination = k.destination AND h.class = ${CLASS.head} AND h.due = k.due
       WHERE k.destination = ? AND k.waiting > ? AND k.waiting > 99 AND k.state = 'waiting'`,
    )
    this.#isCrowded = database.prepare("SELECT 1 FROM order_keys WHERE destination = ? AND key = ? AND waiting > ? AND state = 'waiting'")
    this.#segment = database.prepare(`${selectContent()} WHERE g.seq = ?`)
  }

  claim({ destinationId, nowMs, maxFresh, maxRetries, maxBytes }: ClaimRequest): ClaimReply {
    const destination = this.#rows.destinations.num(destinationId)
    const found = new Found()
    let nextRetryAtMs: number | null = null
    let moreFresh = false
    if (destination === undefined) return found.reply(moreFresh, nextRetryAtMs)
    for (const row of rows(this.#retries, destination)) {
      if (this.#claims.isClaimed(row.id)) continue
      if (row.due > nowMs || found.shipments.length >= maxRetries || found.bytes > maxBytes) {
        nextRetryAtMs = row.due
        break
      }
      this.claimRow(row, destinationId, found)
    }
    let fresh = 0
    for (const row of rows(this.#fresh, destination)) {
      if (this.#claims.isClaimed(row.id)) continue
      if (fresh >= maxFresh || found.bytes > maxBytes) {
        moreFresh = true
        break
      }
      this.claimRow(row, destinationId, found)
      fresh++
    }
    return found.reply(moreFresh, nextRetryAtMs)
  }

  claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): ClaimReply {
    const destination = this.#rows.destinations.num(destinationId)
    const found = new Found()
    if (destination === undefined) return found.reply(false, null)
    for (const statement of [this.#overdue, this.#overdueHeads]) {
      for (const row of rows(statement, destination, firstAttemptBeforeMs)) {
        if (found.shipments.length >= limit) break
        if (!this.#claims.isClaimed(row.id)) this.claimRow(row, destinationId, found)
      }
    }
    return found.reply(false, null)
  }

  /** Heads of keys of which more than `maxWaiting` messages wait, and which of their keys these are. */
  claimCrowded(destinationId: string, maxWaiting: number, limit: number): ClaimReply & { keys: OrderKey[][] } {
    const destination = this.#rows.destinations.num(destinationId)
    const found = new Found()
    const keys: OrderKey[][] = []
    if (destination === undefined) return { ...found.reply(false, null), keys }
    for (const row of rows(this.#crowded, destination, maxWaiting)) {
      if (found.shipments.length >= limit) break
      if (this.#claims.isClaimed(row.id)) continue
      // Other heads may be due at the same time.
      const crowded = keysOf(this.partsOf(row)).filter((key) => this.#isCrowded.get(destination, key, maxWaiting) !== undefined)
      if (crowded.length === 0) continue
      this.claimRow(row, destinationId, found)
      keys.push(crowded)
    }
    return { ...found.reply(false, null), keys }
  }

  /** The parts of a row, as they are owed. */
  partsOf(row: ShipmentRow): Part[] {
    return (JSON.parse(row.parts) as StoredPart<number>[]).map((part) => {
      const indexes = part[2]
      if (indexes !== 0) return owedPart(part, row.count, null)
      const segment = this.#read(part[1])
      return owedPart(part, segment?.count ?? row.count, absentIndexes(segment?.absent ?? null))
    })
  }

  claimRow(row: ShipmentRow, destinationId: string, found: Found): void {
    let bytes = 0
    const parts = (JSON.parse(row.parts) as StoredPart<number>[]).map((part) => {
      const [, seq] = part
      let segment = found.segments.get(seq)
      if (segment === undefined) {
        segment = this.#read(seq)
        if (segment) found.segments.set(seq, segment)
      }
      bytes += segment?.body.length ?? 0
      // Indexes are stored without those that are absent.
      const [, , indexes] = part
      return owedPart(part, segment?.count ?? row.count, indexes === 0 ? absentIndexes(segment?.absent ?? null) : null)
    })
    const order = orderedPlaceOf(row)
    const shipment: Shipment = {
      id: row.id,
      claim: this.#claims.claim(row.id),
      destinationId,
      attempt: row.attempt,
      firstAttemptAtMs: row.first_attempt,
      dueAtMs: order?.row === 'waiting' ? 0 : row.due,
      unit: row.unit === 1,
      progress: row.urls === null ? null : (JSON.parse(row.urls) as string[]),
      replay: row.replay === 1,
      parts,
    }
    if (order !== undefined) shipment.order = order
    found.shipments.push({ shipment, bytes })
    found.bytes += bytes
  }

  #read(seq: number): StoredContent<number> | undefined {
    const row = this.#segment.get(seq) as StoredContent<number> | undefined
    return row && Object.assign(row, { body: unpackBody(row.body) })
  }
}

export class Found {
  readonly shipments: ClaimReply['shipments'] = []
  readonly segments = new Map<number, StoredContent<number>>()
  bytes = 0

  reply(moreFresh: boolean, nextRetryAtMs: number | null): ClaimReply {
    return { shipments: this.shipments, segments: [...this.segments.values()], moreFresh, nextRetryAtMs }
  }
}

function rows(statement: StatementSync, ...values: number[]): Iterable<ShipmentRow> {
  return statement.iterate(...values) as unknown as Iterable<ShipmentRow>
}
