// The rows as the reading thread sees them: one connection, and the names behind numbers. What is asked of them is in the other files of
// this folder.

import type { DatabaseSync } from 'node:sqlite'
import { Names } from '../schema/names.ts'

export class Rows {
  readonly database: DatabaseSync
  readonly sources: Names
  readonly destinations: Names

  constructor(database: DatabaseSync) {
    this.database = database
    this.sources = new Names(database, 'sources')
    this.destinations = new Names(database, 'destinations')
  }

  setting(name: string): string | undefined {
    return (this.get('SELECT value FROM settings WHERE name = ?', name) as { value: string } | undefined)?.value
  }

  all(sql: string, ...values: (number | string)[]): unknown[] {
    return this.database.prepare(sql).all(...values)
  }

  /** The same, with the columns that the statement names. */
  select<Row>(sql: string, ...values: (number | string)[]): Row[] {
    return this.all(sql, ...values) as Row[]
  }

  get(sql: string, ...values: (number | string)[]): unknown {
    return this.database.prepare(sql).get(...values)
  }
}
