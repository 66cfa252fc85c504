// A thread's connection to the file, with its prepared statements and the ids of sources and destinations by row id. All SQL of the
// threads runs through it.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Sql, SqlValue } from '../../encoding/sql.ts'
import { SQLITE_ROW_ORDER } from './row-ids.ts'

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

/** The numbers by which rows refer to sources or destinations, by their public ids. */
export class RowNumbers {
  readonly #table: 'sources' | 'destinations'
  readonly #database: DatabaseSync
  readonly #nums = new Map<string, number>()
  readonly #ids = new Map<number, string>()

  constructor(database: DatabaseSync, table: 'sources' | 'destinations') {
    this.#database = database
    this.#table = table
  }

  /** Returns undefined if there never was a source or destination with this id. */
  num(id: string): number | undefined {
    const known = this.#nums.get(id)
    if (known !== undefined) return known
    const row = this.#database.prepare(`SELECT num FROM ${this.#table} WHERE id = ?`).get(id) as { num: number } | undefined
    if (row === undefined) return undefined
    this.#nums.set(id, row.num)
    this.#ids.set(row.num, id)
    return row.num
  }

  id(num: number): string {
    const known = this.#ids.get(num)
    if (known !== undefined) return known
    const row = this.#database.prepare(`SELECT id FROM ${this.#table} WHERE num = ?`).get(num) as { id: string } | undefined
    if (row === undefined) throw new Error(`no row ${num} in ${this.#table}`)
    this.#nums.set(row.id, num)
    this.#ids.set(num, row.id)
    return row.id
  }

  /** Clears the cache: after a rollback, a number may not exist any more. */
  rolledBack(): void {
    this.#nums.clear()
    this.#ids.clear()
  }
}
