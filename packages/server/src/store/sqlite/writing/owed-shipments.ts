// New shipments, inside the group's transaction: the row and its count in the ledger.

import type { StatementSync } from 'node:sqlite'
import type { Rows } from '../schema/rows.ts'
import type { Ledger } from './ledger.ts'

export class OwedShipments {
  readonly #ledger: Ledger
  readonly #insert: StatementSync
  readonly #isLive: StatementSync

  constructor({ database }: Rows, ledger: Ledger) {
    this.#ledger = ledger
    this.#insert = database.prepare(
      'INSERT INTO shipments (destination, class, due, id, count, attempt, unit, replay, parts) VALUES (?, 0, 0, ?, ?, 0, 0, 0, ?)',
    )
    this.#isLive = database.prepare('SELECT 1 FROM destinations WHERE num = ? AND deleted = 0')
  }

  /** Whether the destination is not deleted. */
  isLive(destination: number): boolean {
    return this.#isLive.get(destination) !== undefined
  }

  /** `parts`: as stored. */
  insert(destination: number, id: number, count: number, parts: string): void {
    this.#insert.run(destination, id, count, parts)
    this.#ledger.owe(destination, count)
  }
}
