// The books: for each destination what it was owed and what became of it, kept in the transaction that changes it. What counts the same
// from the rows and must agree is in rows/book-rows.ts.

import type { DatabaseSync } from 'node:sqlite'
import { GroupCounts } from './group-counts.ts'

export class Ledger extends GroupCounts<'owed' | 'delivered' | 'pending' | 'failed' | 'expired' | 'cancelled'> {
  constructor(database: DatabaseSync) {
    super(database, 'ledger', 'destination', ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'])
  }

  owe(destination: number, count: number): void {
    this.add(destination, 'owed', count)
    this.add(destination, 'pending', count)
  }

  end(destination: number, state: 'delivered' | 'failed' | 'expired' | 'cancelled', count: number): void {
    this.add(destination, state, count)
    this.add(destination, 'pending', -count)
  }
}
