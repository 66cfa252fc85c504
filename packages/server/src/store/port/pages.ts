// Lists are read in pages. A cursor says where the next page begins. Its format is known only to the store.

export interface Page<T> {
  data: T[]
  next: string | null
  /** If the page is not full although there is a next one: how far back it has searched. */
  reachedMs?: number
}

export interface PageRequest {
  limit: number
  cursor: string | null
}

/** The time range of a list. Both times are by the clock of the process that wrote the row, as shown to people. */
export interface TimeRange {
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** The cursor was not returned by this list. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}
