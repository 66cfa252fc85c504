// Lists are read in pages. A cursor says where the next page begins; only the store can read it.

export interface Page<T> {
  data: T[]
  next: string | null
}

export interface PageRequest {
  limit: number
  cursor: string | null
}

/** The time range of a list, in the times that people see: those of the clock of the process that wrote the row. */
export interface TimeRange {
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** A cursor that no list gave out. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}
