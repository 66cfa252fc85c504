// The ledger: for each destination, how many deliveries it was owed and how they ended, written in the transaction that changes them.
// rows/book-rows.ts counts the same from the rows; the two must agree.

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
