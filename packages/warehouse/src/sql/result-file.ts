// Writes the result of a query as a Parquet file.

import { basename, dirname, resolve } from 'node:path'
import { FolderFiles } from '../parquet/folder-files.ts'
import { ParquetFile } from '../parquet/parquet-file.ts'
import { parseTimestamp } from '../schema/values.ts'
import type { Cell, ColumnType } from '../warehouse.ts'
import type { SqlColumn, SqlValue } from './protocol.ts'

/** Replaces the file if there is one. */
export async function writeResult(path: string, columns: readonly SqlColumn[], rows: readonly (readonly SqlValue[])[]): Promise<void> {
  const types = columns.map(({ type }) => typeOf(type))
  const target = resolve(path)
  const file = await new FolderFiles(dirname(target)).create(basename(target))
  try {
    const parquet = new ParquetFile(
      columns.map(({ name }, at) => ({ name: uniqueName(columns, name, at), type: types[at] as ColumnType })),
      file,
    )
    await parquet.write(rows.map((row) => row.map((value, at) => cellOf(value, types[at] as ColumnType))))
    await parquet.finish()
    await file.publish()
  } finally {
    await file.discard()
  }
}

function typeOf(type: string): ColumnType {
  if (type === 'BOOLEAN') return 'boolean'
  if (/^U?(TINYINT|SMALLINT|INTEGER|BIGINT)$/.test(type) && type !== 'UBIGINT') return 'bigint'
  if (/^(FLOAT|DOUBLE|DECIMAL\(.*\))$/.test(type)) return 'double'
  return type.startsWith('TIMESTAMP') ? 'timestamp' : 'text'
}

function cellOf(value: SqlValue, type: ColumnType): Cell {
  if (value === null) return null
  // Numbers that JSON cannot hold are texts: NaN, and large integers, which the file takes as texts, too.
  if (type === 'double') return Number(value)
  if (type === 'timestamp') return parseTimestamp(value as string, 'parquet') ?? null
  if (type === 'text') return typeof value === 'string' ? value : JSON.stringify(value)
  return value as Cell
}

/** A query may have two columns with one name; a file may not. */
function uniqueName(columns: readonly SqlColumn[], name: string, at: number): string {
  const before = columns.slice(0, at).filter((column) => column.name === name).length
  return before === 0 ? name : `${name}_${before + 1}`
}
