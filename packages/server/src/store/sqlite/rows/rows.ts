// A thread's connection to the file, with its prepared statements and the ids of sources and destinations by row id. The other files of
// this folder run their SQL through it.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { RowNumbers } from '../schema/row-numbers.ts'

export class Rows {
  readonly database: DatabaseSync
  readonly sources: RowNumbers
  readonly destinations: RowNumbers
  readonly #statements = new Map<string, StatementSync>()

  constructor(database: DatabaseSync) {
    this.database = database
    this.sources = new RowNumbers(database, 'sources')
    this.destinations = new RowNumbers(database, 'destinations')
  }

  /** Returns rows with the columns of the statement. */
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#prepared(sql).all(...values) as unknown[] as Row[]
  }

  /** Returns how many rows were changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#prepared(sql).run(...values).changes)
  }

  /** Statements are cached by their text, because preparing one takes 5 µs and finding it no measurable time. So `sql` must not contain values. */
  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}
