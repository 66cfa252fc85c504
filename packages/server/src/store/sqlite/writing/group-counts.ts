// Counts that are added up over a group of commands and written once, in its transaction: the ledger, and the counts of each source. A table has
// one row for each `num` and one column for each name.

import type { DatabaseSync, StatementSync } from 'node:sqlite'

export class GroupCounts<Name extends string> {
  readonly #names: readonly Name[]
  readonly #upsert: StatementSync
  readonly #changes = new Map<number, Record<Name, number>>()

  constructor(database: DatabaseSync, table: string, key: string, names: readonly Name[]) {
    this.#names = names
    this.#upsert = database.prepare(`
      INSERT INTO ${table} (${[key, ...names].join(', ')}) VALUES (?${', ?'.repeat(names.length)})
      ON CONFLICT (${key}) DO UPDATE SET ${names.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`)
  }

  add(num: number, name: Name, by: number): void {
    let change = this.#changes.get(num)
    if (change === undefined) {
      change = Object.fromEntries(this.#names.map((each) => [each, 0])) as Record<Name, number>
      this.#changes.set(num, change)
    }
    change[name] += by
  }

  /** In the transaction, before its commit. */
  write(): void {
    for (const [num, change] of this.#changes) this.#upsert.run(num, ...this.#names.map((name) => change[name]))
    this.#changes.clear()
  }

  rolledBack(): void {
    this.#changes.clear()
  }
}

/**
 * For each destination, how many deliveries it was owed and how they ended, written in the transaction that changes them. rows/book-rows.ts
 * counts the same from the rows; the two must agree.
 */
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

/** Of the messages of a source. */
const NAMES = ['accepted', 'duplicates', 'rejected', 'suppressed', 'quarantined', 'released', 'deleted'] as const

export class SourceCounts extends GroupCounts<(typeof NAMES)[number]> {
  readonly #reject: StatementSync

  constructor(database: DatabaseSync) {
    super(database, 'source_counts', 'source', NAMES)
    this.#reject = database.prepare(`
      INSERT INTO rejections (source, code, count, last_at, last_sample) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (source, code) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at, last_sample = excluded.last_sample`)
  }

  reject(source: number, code: string, count: number, atMs: number, sample: string): void {
    this.add(source, 'rejected', count)
    this.#reject.run(source, code, count, atMs, sample)
  }
}
