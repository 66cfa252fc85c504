// The books: for each destination what it was owed and what became of it, kept in the transaction that changes it. The
// changes of a group are added up and written once. What counts the same from the rows and must agree is in rows/book-rows.ts.

import type { DatabaseSync, StatementSync } from 'node:sqlite'

interface LedgerCounts {
  owed: number
  delivered: number
  pending: number
  failed: number
  expired: number
  cancelled: number
}

export class Ledger {
  readonly #upsert: StatementSync
  readonly #changes = new Map<number, LedgerCounts>()

  constructor(database: DatabaseSync) {
    this.#upsert = database.prepare(`
      INSERT INTO ledger (destination, owed, delivered, pending, failed, expired, cancelled) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (destination) DO UPDATE SET
        owed = owed + excluded.owed, delivered = delivered + excluded.delivered, pending = pending + excluded.pending,
        failed = failed + excluded.failed, expired = expired + excluded.expired, cancelled = cancelled + excluded.cancelled`)
  }

  owe(destination: number, count: number): void {
    const change = this.#change(destination)
    change.owed += count
    change.pending += count
  }

  end(destination: number, state: 'delivered' | 'failed' | 'expired' | 'cancelled', count: number): void {
    const change = this.#change(destination)
    change[state] += count
    change.pending -= count
  }

  /** In the transaction, before its commit. */
  write(): void {
    for (const [destination, c] of this.#changes)
      this.#upsert.run(destination, c.owed, c.delivered, c.pending, c.failed, c.expired, c.cancelled)
    this.#changes.clear()
  }

  rolledBack(): void {
    this.#changes.clear()
  }

  #change(destination: number): LedgerCounts {
    let change = this.#changes.get(destination)
    if (change === undefined) {
      change = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
      this.#changes.set(destination, change)
    }
    return change
  }
}
