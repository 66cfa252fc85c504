// What the service and the process of a query say to each other: one JSON text per line. The process parses the query while the service reads which tables
// there are, and their files. It gets the names of the tables that the caller may see, and of no others.

export type SqlValue = string | number | boolean | null | SqlValue[] | { [name: string]: SqlValue }

export interface SqlLimits {
  rows: number
  /** Of the rows as JSON. */
  bytes: number
  memoryMb: number
  timeMs: number
}

export interface TableName {
  schema: string
  table: string
}

export interface ViewFiles extends TableName {
  /** Paths of Parquet files on this machine. A table without files has no view. */
  files: string[]
}

export interface SqlFault {
  code: 'sql_invalid' | 'sql_too_large' | 'sql_timed_out' | 'sql_cancelled' | 'sql_busy' | 'sql_failed'
  /** A sentence for a person. */
  message: string
  /** From 1; null if no place of the query is the cause. The column counts characters. */
  line: number | null
  column: number | null
  /** A file that was there when the manifest was read is gone. */
  isFileGone?: true
}

export interface SqlColumn {
  name: string
  /** As DuckDB calls it, such as `BIGINT` or `TIMESTAMP WITH TIME ZONE`. */
  type: string
}

export interface SqlAnswer {
  columns: SqlColumn[]
  rows: SqlValue[][]
  /** There are more rows than were asked for. */
  truncated: boolean
  /** What the answer lacks, such as a file that is gone. */
  warnings: string[]
}

/** What a process prepares while it waits: the views of the last query. */
export interface Preparation {
  views: ViewFiles[]
  schemas: string[]
  memoryMb: number
}

export type ToProcess =
  /** Sent only as the first message. */
  | { kind: 'prepare'; preparation: Preparation }
  | { kind: 'query'; query: string; limits: SqlLimits }
  /** Follows each query: all tables that it may name. */
  | { kind: 'tables'; tables: TableName[] }
  /** The files of some tables: of those that seem to be in the query at once, and of the others when they are wanted. */
  | { kind: 'files'; views: ViewFiles[] }

export type FromProcess =
  | { kind: 'ready' }
  /** The views of a `prepare` were created. */
  | { kind: 'prepared' }
  /** The tables that the query names. */
  | { kind: 'wanted'; tables: TableName[] }
  | { kind: 'answer'; answer: Omit<SqlAnswer, 'warnings'> }
  | { kind: 'fault'; fault: SqlFault }

/** The schemas that a query can see. */
export function schemasOf(tables: readonly TableName[]): string[] {
  return [...new Set(tables.map(({ schema }) => schema))]
}
