// What the SQL of both adapters has in common, so that a statement that both understand is written once. Placeholders are `?`. A name in a
// result that has capital letters, or that is a word of SQL, is in double quotes. SQLite answers synchronously, PostgreSQL with promises.

import type { RowId } from '../../model/messages.ts'
import type { Awaitable, RowOrder } from './row-port.ts'

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

/** A truth value in a result: SQLite has 0 and 1. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1
}
