// What the SQL of both adapters has in common, so that a statement that both understand is written once. Placeholders are `?`. A name in a
// result that has capital letters, or that is a word of SQL, is in double quotes. The logic of a topic is written once, above the adapters, and
// asks an adapter for other rows through the topic's small row port. SQLite answers synchronously, in its threads; PostgreSQL answers with
// promises, inside a transaction. The logic awaits both.

import type { RowId } from '../../model/messages.ts'

export type SqlValue = string | number | null | Uint8Array | readonly (string | number)[]

export interface Sql<Id extends RowId = RowId> {
  readonly order: RowOrder<Id>
  all<Row>(text: string, values?: readonly SqlValue[]): Awaitable<Row[]>
  /** Returns how many rows were changed. */
  run(text: string, values?: readonly SqlValue[]): Awaitable<number>
  /** A condition with one placeholder: the column has one of the values of a `list`. */
  among(column: string, type?: 'bigint' | 'text'): string
  list(values: readonly (string | number)[]): SqlValue
  /** A text of clients in the form in which columns hold it. */
  text<Text extends string | null>(value: Text): Text
  /** The row, with the texts of clients in these columns as they were given. */
  read<Row extends object>(row: Row, ...columns: (keyof Row)[]): Row
  /** A truth value in the form in which columns hold it. For the other direction see isTrue. */
  flag(value: boolean): SqlValue
  /** The clause with which a query locks the rows that it returns. Empty in SQLite, where nobody else writes during a transaction. */
  lock(clause: `FOR ${string}`): string
}

export function insertRow<Run extends Sql['run']>(
  sql: { run: Run },
  table: string,
  columns: Readonly<Record<string, SqlValue>>,
): ReturnType<Run> {
  const names = Object.keys(columns)
  const insert = `INSERT INTO ${table} (${names.join(', ')}) VALUES (?${', ?'.repeat(names.length - 1)})`
  return sql.run(insert, Object.values(columns)) as ReturnType<Run>
}

/** A truth value in a result: SQLite has 0 and 1. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1
}

/** The result of a row port's method. In SQLite's threads it must not be a promise, because no other message may be handled before the transaction ends. */
export type Awaitable<T> = T | Promise<T>

/**
 * The order of an adapter's row ids. A row id contains the time at which it was assigned. Row ids are numbers in SQLite and strings in
 * PostgreSQL, so only this does arithmetic with them.
 */
export interface RowOrder<Id extends RowId = RowId> {
  /** Less than or equal to every row id. */
  readonly oldest: Id
  /** Greater than or equal to every row id. */
  readonly newest: Id
  /** How far the time in a row id may differ from the clock of the process that wrote the row. */
  readonly skewMs: number
  /** The first row id of a millisecond. */
  at(ms: number): Id
  msOf(id: Id): number
  /** The previous row id. */
  before(id: Id): Id
  /** The next row id. */
  after(id: Id): Id
  /** Whether a value from outside, such as a cursor, could be a row id. */
  isRowId(value: number | string): boolean
}
