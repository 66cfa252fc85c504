// The tables of a lake: the folders in those of its schemas.

import type { LakeFiles } from './lake-files.ts'
import { isFolderOf } from './owner.ts'

interface TableName {
  schema: string
  table: string
}

/** In the order of their names. With `destinationId`, folders of other destinations have no tables. */
export async function tablesOf(
  files: LakeFiles,
  schemas: readonly string[],
  destinationId: string | null,
  signal?: AbortSignal,
): Promise<TableName[]> {
  const found = await Promise.all(
    schemas.map(async (schema) => {
      if (destinationId !== null && !(await isFolderOf(files, schema, destinationId, signal))) return []
      const entries = await files.list(schema, signal)
      return entries.filter(({ isFolder }) => isFolder).map(({ name: table }) => ({ schema, table }))
    }),
  )
  return found.flat().sort((one, other) => compare(one.schema, other.schema) || compare(one.table, other.table))
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
