import type { RowId } from '../../model/messages.ts'
// The types that all row ports share. The logic of a topic is written once, above the adapters, and asks an adapter for rows through the
// topic's small row port. SQLite answers synchronously, in its threads; PostgreSQL answers with promises, inside a transaction. The logic awaits
// both.

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
