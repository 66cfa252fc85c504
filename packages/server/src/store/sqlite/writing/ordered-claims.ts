// Claims shipments whose messages are delivered in order, inside the group's transaction, because messages of keys that are not free are moved behind
// those that wait. Reads heads by due time, new shipments in the order of acceptance, and what waits by key. model/order/order-book.ts does the same in memory.

import type { StatementSync } from 'node:sqlite'
import type { OrderKey } from '../../../model/order/order-key.ts'
import { splitWaiting } from '../../delivery/ordered-shipments.ts'
import { countOf } from '../../encoding/settlement.ts'
import { storedParts } from '../../encoding/stored-parts.ts'
import type { OrderedClaimRequest, Part } from '../../store.ts'
import type { ShipmentRow } from '../rows/history-rows.ts'
import { type ClaimReader, type ClaimReply, Found } from './read-claims.ts'
import { CLASS } from './row-classes.ts'
import type { WriterContext } from './writer-context.ts'

export interface OrderedClaimReply extends Pick<ClaimReply, 'shipments' | 'segments'> {
  more: boolean
  nextHeadAtMs: number | null
}

const NO_FRONTIER = Number.MAX_SAFE_INTEGER

export class OrderedClaims {
  readonly #context: WriterContext
  readonly #reader: ClaimReader
  readonly #heads: StatementSync
  readonly #fresh: StatementSync
  readonly #draining: StatementSync
  readonly #waiting: StatementSync
  readonly #keep: StatementSync
  readonly #delete: StatementSync
  readonly #move: StatementSync

  constructor(context: WriterContext, reader: ClaimReader) {
    this.#context = context
    this.#reader = reader
    const { database } = context
    const from = 'SELECT * FROM shipments WHERE destination = ?'
    this.#heads = database.prepare(`${from} AND class = ${CLASS.head} ORDER BY due, id`)
    this.#fresh = database.prepare(`${from} AND class = ${CLASS.fresh} ORDER BY due, id`)
    this.#draining = database.prepare("SELECT key FROM order_keys WHERE destination = ? AND state = 'draining'")
    this.#waiting = database.prepare(`${from} AND class = ${CLASS.waiting} AND due = ? AND ord < ? ORDER BY ord, id`)
    const place = `WHERE destination = ? AND class = ${CLASS.fresh} AND due = 0 AND id = ?`
    this.#keep = database.prepare(`UPDATE shipments SET count = ?, parts = ? ${place}`)
    this.#delete = database.prepare(`DELETE FROM shipments ${place}`)
    this.#move = database.prepare(
      `INSERT INTO shipments (destination, class, due, id, count, attempt, unit, replay, parts, ord) VALUES (?, ${CLASS.waiting}, ?, ?, ?, 0, 0, 0, ?, ?)`,
    )
  }

  claim(request: OrderedClaimRequest): OrderedClaimReply {
    const { destinationId, nowMs, maxHeads, maxBytes } = request
    const { destinations, claims } = this.#context
    const destination = destinations.num(destinationId)
    const found = new Found()
    if (destination === undefined) return { ...found.reply(false, null), more: false, nextHeadAtMs: null }
    let nextHeadAtMs: number | null = null
    for (const row of rowsOf(this.#heads, destination)) {
      if (claims.isClaimed(row.id)) continue
      if (row.due > nowMs || found.shipments.length >= maxHeads || found.bytes > maxBytes) {
        nextHeadAtMs = row.due
        break
      }
      this.#reader.claimRow(row, destinationId, found)
    }
    const frontier = this.#claimFresh(destination, request, found)
    const moreWaiting = this.#claimDraining(destination, request, frontier, found)
    const more = (frontier !== NO_FRONTIER && request.maxFresh > 0) || moreWaiting
    const { shipments, segments } = found.reply(false, null)
    return { shipments, segments, more, nextHeadAtMs }
  }

  /** Returns the place of the first new shipment that was not reached. */
  #claimFresh(destination: number, request: OrderedClaimRequest, found: Found): number {
    const { destinationId, nowMs, maxFresh, maxBytes, leaving = [] } = request
    const { claims, orderKeys } = this.#context
    const isFree = orderKeys.freeKeys(destination, leaving)
    // Rows are changed while they are read, so they are read in full first. Claimed ones are few: no more than fit in memory.
    const unclaimed: ShipmentRow[] = []
    for (const row of rowsOf(this.#fresh, destination)) {
      if (claims.isClaimed(row.id)) continue
      unclaimed.push(row)
      if (unclaimed.length > maxFresh) break
    }
    for (const [at, row] of unclaimed.entries()) {
      if (at === maxFresh || found.bytes > maxBytes) return row.ord as number
      const parts = isFree === null ? row.parts : this.#moveWaiting(destination, row, isFree, nowMs)
      if (parts !== null) this.#reader.claimRow({ ...row, parts }, destinationId, found)
    }
    return NO_FRONTIER
  }

  /**
   * Moves messages behind those that wait if their key is not free, or if earlier messages of it are on their way back. When these are back, they are
   * moved too, and the key is drained from its first message on. Returns the parts that are left; null if there are none.
   */
  #moveWaiting(destination: number, row: ShipmentRow, isFree: (key: OrderKey) => boolean, nowMs: number): string | null {
    const { orderKeys, ids } = this.#context
    const parts = this.#reader.partsOf(row)
    const { free, waiting } = splitWaiting(parts, isFree)
    if (waiting.size === 0) return row.parts
    for (const [key, moved] of waiting) {
      const count = countOf({ parts: moved })
      this.#move.run(destination, key, ids.next(), count, storedParts(moved), row.ord)
      orderKeys.arrived(destination, key, count, nowMs)
    }
    if (free.length === 0) {
      this.#delete.run(destination, row.id)
      return null
    }
    const left: readonly Part[] = free
    this.#keep.run(countOf({ parts: left }), storedParts(left), destination, row.id)
    return storedParts(left)
  }

  /** Returns whether there are more. */
  #claimDraining(destination: number, request: OrderedClaimRequest, frontier: number, found: Found): boolean {
    const { destinationId, maxWaiting, maxBytes } = request
    const leaving = new Set(request.leaving)
    let taken = 0
    for (const { key } of this.#draining.iterate(destination) as unknown as Iterable<{ key: OrderKey }>) {
      if (leaving.has(key)) continue
      for (const row of rowsOf(this.#waiting, destination, key, frontier)) {
        if (this.#context.claims.isClaimed(row.id)) continue
        if (taken >= maxWaiting || found.bytes > maxBytes) return true
        this.#reader.claimRow(row, destinationId, found)
        taken++
      }
    }
    return false
  }
}

function rowsOf(statement: StatementSync, ...values: number[]): Iterable<ShipmentRow> {
  return statement.iterate(...values) as unknown as Iterable<ShipmentRow>
}
