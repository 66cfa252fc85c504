// What is written is read back by DuckDB and by hyparquet, whatever the values are.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { temporaryLake } from '../fixtures/lake-reading.ts'
import { microseconds } from '../schema/values.ts'
import type { Cell } from '../warehouse.ts'
import { FolderFiles } from './folder-files.ts'
import { type FileColumn, ParquetFile } from './parquet-file.ts'
import { withReader } from './table-files.ts'

const COLUMNS: FileColumn[] = [
  { name: 'user_id', type: 'text' },
  { name: 'anonymous_id', type: 'text' },
  { name: 'note', type: 'text' },
  { name: 'total', type: 'double' },
  { name: 'count', type: 'bigint' },
  { name: 'paid', type: 'boolean' },
  { name: 'at', type: 'timestamp' },
  { name: 'nothing', type: 'text' },
]

/** The same numbers in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const TEXTS = ['', 'a', 'ab', 'Ünïcode', '\u{1F600}', '￰', '\0', 'x'.repeat(300), '"quoted"', 'line\nline']
const DOUBLES = [0, -0, 1.5, -1e308, 5e-324, 2 ** 53, 0.1]
const INTEGERS = [0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 32, -(2 ** 32), 4_294_967_295]
const TIMES = [0, -1, -0.001, 1_763_380_800_000, 1_763_380_800_000.123, -62_135_596_800_000, 253_402_300_799_999]

/** Columns with few or many distinct values, with or without runs and nulls, so that all encodings are chosen. */
function rowsOf(count: number, seed: number): Cell[][] {
  const below = numbers(seed)
  const kinds = COLUMNS.map(() => ({
    nulls: below(3),
    distinct: [1, 3, 40, 1_000_000][below(4)] as number,
    run: [1, 12][below(2)] as number,
  }))
  return Array.from({ length: count }, (_, row) =>
    COLUMNS.map(({ name, type }, at): Cell => {
      const { nulls, distinct, run } = kinds[at] as (typeof kinds)[number]
      if (name === 'nothing' || (nulls === 1 && below(4) === 0) || (nulls === 2 && Math.floor(row / 20) % 2 === 0)) return null
      const value = Math.floor(row / run) % distinct
      const isSpecial = below(10) === 0
      const special = below(1_000)
      switch (type) {
        case 'text':
          return isSpecial ? (TEXTS[special % TEXTS.length] as string) : `${name}-${value}`
        case 'double':
          return isSpecial ? (DOUBLES[special % DOUBLES.length] as number) : value / 8
        case 'bigint':
          return isSpecial ? (INTEGERS[special % INTEGERS.length] as number) : value * 1_000_003
        case 'timestamp':
          return isSpecial ? (TIMES[special % TIMES.length] as number) : 1_763_380_800_000 + value
        case 'boolean':
          return value % 2 === 0
      }
    }),
  )
}

async function write(folder: string, name: string, columns: readonly FileColumn[], rows: readonly Cell[][]): Promise<string> {
  const file = await new FolderFiles(folder).create(name)
  const parquet = new ParquetFile(columns, file)
  await parquet.write(rows)
  const { rows: written } = await parquet.finish()
  assert.equal(written, rows.length)
  await file.publish()
  return join(folder, name)
}

async function readByDuckDb(db: DuckDBConnection, path: string): Promise<unknown[][]> {
  const { rows } = await db
    .runAndReadAll(`SELECT * REPLACE (epoch_us("at") AS "at") FROM '${path}'`)
    .then((reader) => ({ rows: reader.getRows() as unknown[][] }))
  return rows
}

test('every value is read back, whichever encoding it has', async () => {
  using lake = temporaryLake()
  const db = await (await DuckDBInstance.create(':memory:')).connect()
  const counts = [1, 2, 7, 8, 9, 16, 17, 100, 999, 1_001, 2_500]
  for (const [round, count] of [...counts, ...counts].entries()) {
    const rows = rowsOf(count, round + 1)
    const path = await write(lake.folder, `file-${round}.parquet`, COLUMNS, rows)
    const exact = rows.map((row) =>
      row.map((cell, at) => {
        const type = COLUMNS[at]?.type
        return cell === null ? null : type === 'timestamp' ? microseconds(cell as number) : type === 'bigint' ? BigInt(cell) : cell
      }),
    )
    assert.deepEqual(await readByDuckDb(db, path), exact, `DuckDB, round ${round}`)
    const own = await withReader(new FolderFiles(lake.folder), `file-${round}.parquet`, (reader) =>
      reader.read(
        0,
        COLUMNS.map(({ name }) => name),
      ),
    )
    assert.deepEqual(own, rows, `hyparquet, round ${round}`)
    await assertFiltersFindEverything(db, path, rows)
  }
  db.closeSync()
})

/** A condition skips what statistics and bloom filters exclude, so wrong ones lose rows. */
async function assertFiltersFindEverything(db: DuckDBConnection, path: string, rows: readonly Cell[][]): Promise<void> {
  for (const [at, { name, type }] of COLUMNS.entries()) {
    if (type !== 'text') continue
    const found = new Map<Cell, number>()
    for (const row of rows) found.set(row[at] as Cell, (found.get(row[at] as Cell) ?? 0) + 1)
    const texts = [...found.keys()].filter((text) => text !== null).slice(0, 5)
    for (const text of texts) {
      const reader = await db.runAndReadAll(`SELECT count(*)::INTEGER FROM '${path}' WHERE "${name}" = $1`, [text])
      assert.deepEqual(reader.getRows(), [[found.get(text)]], `${name} = ${JSON.stringify(text)}`)
    }
  }
}

test('groups and pages that are full continue in the next, and every column has statistics', async () => {
  using lake = temporaryLake()
  const db = await (await DuckDBInstance.create(':memory:')).connect()
  const columns: FileColumn[] = [
    { name: 'user_id', type: 'text' },
    { name: 'message', type: 'text' },
    { name: 'paid', type: 'boolean' },
    { name: 'at', type: 'timestamp' },
  ]
  const rows = Array.from({ length: 50_001 }, (_, row): Cell[] => [
    row % 3 === 0 ? null : `user-${row}`,
    row % 5 === 0 ? null : `${row} ${'ä'.repeat(row % 90)}`,
    row === 7,
    1_763_380_800_000 + row,
  ])
  const path = await write(lake.folder, 'large.parquet', columns, rows)
  const sum = await db.runAndReadAll(
    `SELECT count(*)::INTEGER, count(user_id)::INTEGER, sum(length(message))::INTEGER, count(*) FILTER (WHERE paid)::INTEGER, min("at") = TIMESTAMPTZ '2025-11-17 12:00:00Z' FROM '${path}'`,
  )
  const lengths = rows.reduce((total, [, message]) => total + (typeof message === 'string' ? message.length : 0), 0)
  assert.deepEqual(sum.getRows(), [[50_001, 33_334, lengths, 1, true]])
  const meta = await db.runAndReadAll(
    `SELECT row_group_id::INTEGER, path_in_schema, compression, stats_null_count::INTEGER, stats_min_value IS NOT NULL, bloom_filter_offset IS NOT NULL FROM parquet_metadata('${path}') ORDER BY row_group_id, column_id`,
  )
  assert.deepEqual(meta.getRows().slice(0, 4), [
    [0, 'user_id', 'ZSTD', 16_667, true, true],
    [0, 'message', 'ZSTD', 10_000, true, false],
    [0, 'paid', 'ZSTD', 0, true, false],
    [0, 'at', 'ZSTD', 0, true, false],
  ])
  assert.equal(meta.getRows().length, 8)
  const one = await db.runAndReadAll(`SELECT count(*)::INTEGER FROM '${path}' WHERE user_id = 'user-49999'`)
  assert.deepEqual(one.getRows(), [[1]])
  db.closeSync()
})
