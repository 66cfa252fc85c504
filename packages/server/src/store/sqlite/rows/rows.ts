// The rows as the threads that read and write them see them: one connection, and the names behind numbers. What is asked of them is in the
// other files of this folder.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { Names } from '../schema/names.ts'

export class Rows {
  readonly database: DatabaseSync
  readonly sources: Names
  readonly destinations: Names
  readonly #statements = new Map<string, StatementSync>()

  constructor(database: DatabaseSync) {
    this.database = database
    this.sources = new Names(database, 'sources')
    this.destinations = new Names(database, 'destinations')
  }

  /** With the columns that the statement names. */
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#prepared(sql).all(...values) as unknown[] as Row[]
  }

  /** How many rows it changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#prepared(sql).run(...values).changes)
  }

  /** A statement is kept by its text: to prepare it takes 5 µs, to find it nothing that can be measured. So no text may contain a value. */
  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}
