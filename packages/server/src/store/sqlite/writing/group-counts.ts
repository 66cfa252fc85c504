// Counts that are added up over a group of commands and written once, in its transaction. A table has one row for each `num` and one column
// for each name.

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
