// New shipments, inside the group's transaction: the row and its count in the ledger, and those of dead letters.

import type { StatementSync } from 'node:sqlite'
import { type LetterContent, letterRows } from '../../delivery/dead-letters.ts'
import { KEY_WORDS } from '../../encoding/segment-keys.ts'
import type { Duplicates } from '../keys/duplicates.ts'
import type { RowIds } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import type { Ledger } from './group-counts.ts'
import { CLASS } from './row-classes.ts'

export class OwedShipments {
  readonly #ledger: Ledger
  readonly #insert: StatementSync
  readonly #insertOrdered: StatementSync
  readonly #isLive: StatementSync

  constructor({ database }: Rows, ledger: Ledger) {
    this.#ledger = ledger
    this.#insert = database.prepare(
      'INSERT INTO shipments (destination, class, due, id, count, attempt, unit, replay, parts) VALUES (?, 0, 0, ?, ?, 0, 0, 0, ?)',
    )
    this.#insertOrdered = database.prepare(
      `INSERT INTO shipments (destination, class, due, id, count, attempt, unit, replay, parts, ord) VALUES (?, ${CLASS.fresh}, 0, ?, ?, 0, 0, 0, ?, ?)`,
    )
    this.#isLive = database.prepare('SELECT 1 FROM destinations WHERE num = ? AND deleted = 0')
  }

  /** Whether the destination is not deleted. */
  isLive(destination: number): boolean {
    return this.#isLive.get(destination) !== undefined
  }

  /** `parts`: as stored. If its messages are delivered in order, its row id is its place. */
  insert(destination: number, id: number, count: number, parts: string, isOrdered = false): void {
    if (isOrdered) this.#insertOrdered.run(destination, id, count, parts, id)
    else this.#insert.run(destination, id, count, parts)
    this.#ledger.owe(destination, count)
  }
}

interface Parts {
  rows: Rows
  ids: RowIds
  owing: OwedShipments
  duplicates: Duplicates
}

export class LetterWriter {
  readonly #parts: Parts
  readonly #insertSegment: StatementSync

  constructor(parts: Parts) {
    this.#parts = parts
    const { database } = parts.rows
    this.#insertSegment = database.prepare(
      'INSERT INTO segments (seq, source, received_at, browser, count, routes, keys, body, trace) VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?)',
    )
  }

  insert({ destinationId, sourceId, atMs, trace, count, keys, body }: LetterContent): void {
    const { rows, ids, owing, duplicates } = this.#parts
    const source = rows.sources.num(sourceId)
    const destination = rows.destinations.num(destinationId)
    // The destination was deleted while the last attempt was in flight. The delivery ends as without a dead-letter destination.
    if (source === undefined || destination === undefined || !owing.isLive(destination)) return
    const { segment, origin, parts, routes } = letterRows(() => ids.next(), destination, count)
    // The keys make the dead letters findable by their messageId.
    for (let index = 0; index < count; index++) duplicates.add(keys, index * KEY_WORDS, segment)
    this.#insertSegment.run(
      segment,
      source,
      atMs,
      count,
      routes,
      new Uint8Array(keys.buffer, keys.byteOffset, keys.byteLength),
      body,
      trace,
    )
    owing.insert(destination, origin, count, parts)
  }
}
