// The books: for each destination what it was owed and what became of it, kept in the transaction that changes it. The
// changes of a group are added up and written once. `recount` counts the same from the rows and must agree.

import type { DatabaseSync, StatementSync } from 'node:sqlite'

export interface LedgerCounts {
  owed: number
  delivered: number
  pending: number
  failed: number
  expired: number
  cancelled: number
}

export interface LedgerCountsRow extends LedgerCounts {
  destination: number
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

/** Counted from the rows themselves: messages owed as they were accepted or replayed, shipments waiting, attempts that ended. */
export function recount(database: DatabaseSync): LedgerCountsRow[] {
  return database
    .prepare(`
      SELECT destination, sum(owed) AS owed, sum(delivered) AS delivered, sum(pending) AS pending, sum(failed) AS failed,
             sum(expired) AS expired, sum(cancelled) AS cancelled
      FROM (
        SELECT json_extract(value, '$[0]') AS destination, json_extract(value, '$[3]') AS owed,
               0 AS delivered, 0 AS pending, 0 AS failed, 0 AS expired, 0 AS cancelled
        FROM segments, json_each(segments.routes, '$.s')
        UNION ALL SELECT destination, 1, 0, 0, 0, 0, 0 FROM replays
        UNION ALL SELECT destination, 0, 0, count, 0, 0, 0 FROM shipments
        UNION ALL SELECT destination, 0, delivered, 0, failed, expired, cancelled FROM attempts
        UNION ALL SELECT destination, owed, delivered, 0, failed, expired, cancelled FROM ledger_archive
      )
      GROUP BY destination ORDER BY destination`)
    .all() as unknown as LedgerCountsRow[]
}
