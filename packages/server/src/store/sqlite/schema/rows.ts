// A thread's connection to the file, with its prepared statements and the ids of sources and destinations by row id. All SQL of the
// threads runs through it.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Sql, SqlValue } from '../../encoding/sql.ts'
import { SQLITE_ROW_ORDER } from './row-ids.ts'
import { RowNumbers } from './row-numbers.ts'

export class Rows implements Sql<number> {
  readonly order = SQLITE_ROW_ORDER
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
  all<Row>(sql: string, values: readonly SqlValue[] = []): Row[] {
    return this.#prepared(sql).all(...(values as SQLInputValue[])) as unknown[] as Row[]
  }

  /** Returns how many rows were changed. */
  run(sql: string, values: readonly SqlValue[] = []): number {
    return Number(this.#prepared(sql).run(...(values as SQLInputValue[])).changes)
  }

  among(column: string): string {
    return `${column} IN (SELECT value FROM json_each(?))`
  }

  list(values: readonly (string | number)[]): string {
    return JSON.stringify(values)
  }

  text<Text extends string | null>(value: Text): Text {
    return value
  }

  read<Row extends object>(row: Row): Row {
    return row
  }

  lock(): string {
    return ''
  }

  flag(value: boolean): number {
    return value ? 1 : 0
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
