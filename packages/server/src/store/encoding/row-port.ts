// What row ports have in common. The logic of a topic is written once, above the adapters, and asks an adapter for rows through a small
// port of that topic. SQLite answers at once, in its threads; PostgreSQL with promises, inside a transaction. The logic awaits both.

import type { RowId } from '../port/model.ts'

/** An answer of a row port. In SQLite's threads it must be there at once, because nothing else may come in between. */
export type Awaitable<T> = T | Promise<T>

/**
 * The order of an adapter's row names, which carry the time at which they were given. Names are numbers in SQLite and texts in PostgreSQL,
 * so only this does arithmetic with them.
 */
export interface RowOrder<Id extends RowId = RowId> {
  /** Before every row there can be. */
  readonly oldest: Id
  /** After every row there can be. */
  readonly newest: Id
  /** How far the time in a name may differ from the clock of the process that wrote the row. */
  readonly skewMs: number
  /** The first name of a millisecond. */
  at(ms: number): Id
  msOf(id: Id): number
  /** The name right before. */
  before(id: Id): Id
  /** The name right after. */
  after(id: Id): Id
  /** Whether a value from outside could name a row. */
  isName(value: number | string): boolean
}
