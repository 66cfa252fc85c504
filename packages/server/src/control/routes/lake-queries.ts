// The interface through which the routes query lakes. The installation makes it, and loads the code of the warehouse package when the first query comes.

import type { SqlAnswer } from '@switchyard/warehouse/sql'
import type { Destination } from '../../store/store.ts'

export interface LakeQuery {
  lake: Destination
  query: string
  /** Rows at most. */
  limit: number | undefined
  signal: AbortSignal
}

export interface LakeTable {
  sourceId: string
  schema: string
  table: string
  columns: { name: string; type: string }[]
}

export interface LakeQueries {
  /** Throws an ApiError. */
  run(query: LakeQuery, sources: readonly string[] | 'all'): Promise<SqlAnswer>
  /** The tables that a query can name. */
  tables(lake: Destination, sources: readonly string[] | 'all'): Promise<LakeTable[]>
}
