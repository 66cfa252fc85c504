// Parquet files: zstd, statistics, and one row group at a time, so that a file larger than the memory can be written and read.

import { createHash } from 'node:crypto'
import { zstdDecompressSync } from 'node:zlib'
import { type ColumnChunk, type FileMetaData, parquetMetadataAsync, parquetRead, type SchemaElement } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { ColumnarRows } from '../schema/columnar-rows.ts'
import type { Cell, ColumnCells, ColumnType, Rows, StoredColumn } from '../warehouse.ts'
import { writeChunk } from './column-chunk.ts'
import type { LakeFile, NewFile } from './lake-files.ts'

export type FileColumn = Pick<StoredColumn, 'name' | 'type'>

export interface WrittenFile {
  rows: number
  bytes: number
  sha256: string
}

/** Rows of a group: enough for good compression, few enough to be read for a page of the archive. */
const GROUP_ROWS = 50_000
const GROUP_CELLS = 2_000_000
/** A search for one user skips the groups whose filter does not have the id. */
const BLOOM_COLUMNS = new Set(['user_id', 'anonymous_id'])
/** Smaller groups are read as fast as their filter. */
const BLOOM_ROWS = 2_000
/** How much is collected before it is written to the file. */
const FLUSH_BYTES = 1024 * 1024

export class ParquetFile {
  readonly #columns: readonly FileColumn[]
  readonly #sink: NewFile
  readonly #writer: SinkWriter
  readonly #parquet: ParquetWriter
  #rows = 0

  constructor(columns: readonly FileColumn[], sink: NewFile) {
    this.#columns = columns
    this.#sink = sink
    this.#writer = new SinkWriter(sink)
    this.#parquet = new ParquetWriter({
      writer: this.#writer,
      schema: [{ name: 'schema', num_children: columns.length }, ...columns.map(elementOf)],
      codec: 'ZSTD',
      createdBy: 'switchyard',
    })
  }

  /** Adds rows, in the order of the columns. */
  async write(rows: readonly (readonly Cell[])[]): Promise<void> {
    const size = groupRows(this.#columns.length)
    for (let at = 0; at < rows.length; at += size) {
      const group = new ColumnarRows(this.#columns)
      for (const row of rows.slice(at, at + size)) group.add(row)
      await this.writeSelected(
        group,
        Uint32Array.from({ length: group.length }, (_, row) => row),
      )
    }
  }

  /** Adds some of the rows, by their indexes. */
  async writeSelected(rows: Rows, selected: Uint32Array): Promise<void> {
    const size = groupRows(this.#columns.length)
    for (let at = 0; at < selected.length; at += size) await this.#writeGroup(rows, selected.subarray(at, at + size))
  }

  /** Completes the content. The file is published by the caller. */
  async finish(): Promise<WrittenFile> {
    await this.#parquet.finish()
    return { rows: this.#rows, bytes: this.#writer.offset, sha256: this.#writer.hash.digest('hex') }
  }

  discard(): Promise<void> {
    return this.#sink.discard()
  }

  async #writeGroup({ columns }: Rows, selected: Uint32Array): Promise<void> {
    const start = this.#writer.offset
    const chunks: ColumnChunk[] = []
    for (const [at, column] of this.#columns.entries()) {
      const hasFilter = selected.length > BLOOM_ROWS && BLOOM_COLUMNS.has(column.name)
      const written = writeChunk(this.#writer, column, columns[at] as ColumnCells, selected, hasFilter)
      chunks.push(written.chunk)
      this.#parquet.pendingIndexes.push(written)
      if (this.#writer.index > FLUSH_BYTES) await this.#writer.flush()
    }
    this.#parquet.row_groups.push({
      columns: chunks,
      total_byte_size: chunks.reduce((sum, { meta_data: meta }) => sum + (meta?.total_uncompressed_size ?? 0n), 0n),
      num_rows: BigInt(selected.length),
      total_compressed_size: BigInt(this.#writer.offset - start),
    })
    this.#parquet.num_rows += BigInt(selected.length)
    this.#rows += selected.length
  }
}

/** How many rows a group has at most. */
export function groupRows(columns: number): number {
  return Math.max(1_000, Math.min(GROUP_ROWS, Math.floor(GROUP_CELLS / columns)))
}

class SinkWriter extends ByteWriter {
  readonly hash = createHash('sha256')
  readonly #sink: NewFile

  constructor(sink: NewFile) {
    super(65_536)
    this.#sink = sink
  }

  flush(): Promise<void> {
    const bytes = this.getBytes().slice()
    this.index = 0
    this.hash.update(bytes)
    return this.#sink.write(bytes)
  }

  // oxlint-disable-next-line typescript/no-misused-promises -- the writer of the file waits for the result
  override finish(): Promise<void> {
    return this.flush()
  }
}

function elementOf({ name, type }: FileColumn): SchemaElement {
  switch (type) {
    case 'boolean':
      return { name, type: 'BOOLEAN', repetition_type: 'OPTIONAL' }
    case 'bigint':
      return { name, type: 'INT64', repetition_type: 'OPTIONAL' }
    case 'double':
      return { name, type: 'DOUBLE', repetition_type: 'OPTIONAL' }
    case 'timestamp':
      return {
        name,
        type: 'INT64',
        repetition_type: 'OPTIONAL',
        converted_type: 'TIMESTAMP_MICROS',
        logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
      }
    case 'text':
      return { name, type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL', converted_type: 'UTF8', logical_type: { type: 'STRING' } }
  }
}

const TYPES: Record<string, ColumnType> = { BOOLEAN: 'boolean', INT64: 'bigint', DOUBLE: 'double', BYTE_ARRAY: 'text' }

const readOptions = {
  compressors: { ZSTD: (bytes: Uint8Array) => new Uint8Array(zstdDecompressSync(bytes)) },
  parsers: {
    timestampFromMicroseconds: (micros: bigint) => Number(micros / 1_000n) + Number(micros % 1_000n) / 1_000,
  },
}

export class ParquetReader {
  readonly metadata: FileMetaData
  readonly columns: FileColumn[]
  /** First row and number of rows of each group. */
  readonly groups: { start: number; rows: number }[] = []
  readonly #file: LakeFile

  constructor(file: LakeFile, metadata: FileMetaData) {
    this.#file = file
    this.metadata = metadata
    this.columns = metadata.schema.slice(1).map(({ name, type, converted_type }) => ({
      name,
      type: converted_type === 'TIMESTAMP_MICROS' ? 'timestamp' : (TYPES[String(type)] ?? 'text'),
    }))
    let start = 0
    for (const { num_rows } of metadata.row_groups) {
      this.groups.push({ start, rows: Number(num_rows) })
      start += Number(num_rows)
    }
  }

  static async open(file: LakeFile): Promise<ParquetReader> {
    return new ParquetReader(file, await parquetMetadataAsync(file, { parsers: readOptions.parsers }))
  }

  /** The rows of one group: cells in the order of `names`, null where the file has no such column. */
  async read(group: number, names: readonly string[]): Promise<Cell[][]> {
    const { start, rows } = this.groups[group] as { start: number; rows: number }
    const present = names.filter((name) => this.columns.some((column) => column.name === name))
    if (present.length === 0) return Array.from({ length: rows }, () => names.map(() => null))
    let found: Record<string, unknown>[] = []
    await parquetRead({
      ...readOptions,
      file: this.#file,
      metadata: this.metadata,
      columns: present,
      rowStart: start,
      rowEnd: start + rows,
      rowFormat: 'object',
      onComplete: (complete) => (found = complete),
    })
    return found.map((row) => names.map((name) => cellOf(row[name])))
  }

  /** The range of a column of times in a group, in milliseconds, as far as its statistics tell. */
  times(group: number, name: string): { min: number; max: number } {
    const chunk = this.metadata.row_groups[group]?.columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name)
    const { min_value: min, max_value: max } = chunk?.meta_data?.statistics ?? {}
    // The parser above makes milliseconds of the microseconds.
    return {
      min: typeof min === 'number' ? min : Number.NEGATIVE_INFINITY,
      max: typeof max === 'number' ? max : Number.POSITIVE_INFINITY,
    }
  }

  /** Whether a group can have one of the values in a text column, as far as its statistics tell. */
  mayHave(group: number, name: string, values: readonly string[]): boolean {
    const chunk = this.metadata.row_groups[group]?.columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name)
    if (chunk === undefined) return false
    const { min_value: min, max_value: max } = chunk.meta_data?.statistics ?? {}
    if (typeof min !== 'string' || typeof max !== 'string') return true
    // Bounds may be cut, and are in the order of bytes.
    return values.some((value) => compareBytes(value, min) >= 0 && (compareBytes(value, max) <= 0 || value.startsWith(max)))
  }
}

function compareBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other))
}

function cellOf(value: unknown): Cell {
  return value === undefined || value === null ? null : typeof value === 'bigint' ? Number(value) : (value as Cell)
}
