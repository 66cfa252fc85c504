// Lists are read in pages. A cursor says where the next page begins, and is the store's own.

export interface Page<T> {
  data: T[]
  next: string | null
}

export interface PageRequest {
  limit: number
  cursor: string | null
}

/** Times that a list is asked for, as people see them: by the clock of the process that wrote the row. */
export interface TimeRange {
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** A cursor that no list gave out. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}
