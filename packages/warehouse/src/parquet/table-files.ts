// Writing the rows of a load into the files of a table, and replacing files of a table by others: what deletions and merges have in common.

import { randomBytes } from 'node:crypto'
import { groupBy } from '../group-by.ts'
import type { Cell, TableRows } from '../warehouse.ts'
import { type LakeFiles, type NewFile, nameEnding } from './lake-files.ts'
import { dayOf, type ManifestFile, readManifest, updateManifest, withFiles } from './manifest.ts'
import { type FileColumn, groupRows, ParquetFile, ParquetReader } from './parquet-file.ts'

interface Prepared {
  file: NewFile
  entry: ManifestFile
}

export interface Committed {
  rows: number
  bytes: number
}

/** Writes one file per day, and commits all of them at once. If the load is committed in the table already, nothing is written. */
export async function loadTable(
  files: LakeFiles,
  folder: string,
  { id, repeated, loadedAtMs }: { id: string; repeated: boolean; loadedAtMs: number },
  table: TableRows,
): Promise<Committed> {
  if (repeated) {
    const committed = committedRows((await readManifest(files, folder)).files, id)
    if (committed !== null) return { rows: committed, bytes: 0 }
  }
  const prepared: Prepared[] = []
  try {
    for (const [day, { rows, ...span }] of daysOf(table, loadedAtMs)) {
      const path = `day=${day}/${id}${nameEnding(files)}.parquet`
      prepared.push(await writeNew(files, folder, { path, load: id, ...span }, table, rows))
    }
    let before: number | null = null
    await updateManifest(files, folder, async (manifest) => {
      before = committedRows(manifest.files, id)
      if (before !== null) return null
      if (repeated && files.hasLocks) await removeLeftovers(files, folder, id)
      // A file that was published by an attempt that ended before its commit is overwritten.
      for (const { file } of prepared) await file.publish()
      return withFiles(manifest, [...manifest.files, ...prepared.map(({ entry }) => entry)])
    })
    const sum = (field: 'rows' | 'bytes'): number => prepared.reduce((total, { entry }) => total + entry[field], 0)
    return before === null ? { rows: sum('rows'), bytes: sum('bytes') } : { rows: before, bytes: 0 }
  } finally {
    // Does nothing to those that were published.
    await Promise.all(prepared.map(({ file }) => file.discard()))
  }
}

function committedRows(files: readonly ManifestFile[], load: string): number | null {
  const own = files.filter((file) => file.load === load)
  return own.length === 0 ? null : own.reduce((total, { rows }) => total + rows, 0)
}

/** An earlier attempt may have published files of days that this one does not have. */
async function removeLeftovers(files: LakeFiles, folder: string, load: string): Promise<void> {
  for (const { name, isFolder } of await files.list(folder)) if (isFolder) await files.remove(`${folder}/${name}/${load}.parquet`)
}

async function writeNew(
  files: LakeFiles,
  folder: string,
  about: Pick<ManifestFile, 'path' | 'from' | 'to' | 'load'>,
  { columns, rows }: TableRows,
  selected: readonly number[],
): Promise<Prepared> {
  const file = await files.create(`${folder}/${about.path}`)
  try {
    const parquet = new ParquetFile(columns, file)
    await parquet.writeSelected(rows, Uint32Array.from(selected))
    const { path, ...rest } = about
    return { file, entry: { path, ...(await parquet.finish()), ...rest } }
  } catch (error) {
    await file.discard()
    throw error
  }
}

/** The rows of each day, with the first and the last time at which one of them was received. */
function daysOf({ columns, rows }: TableRows, loadedAtMs: number): Map<string, { rows: number[]; from: string; to: string }> {
  const received = rows.columns[columns.findIndex(({ name }) => name === 'received_at')]
  const timeOf = (row: number): number => (received?.get(row) as number | null | undefined) ?? loadedAtMs
  const ofDays = groupBy(
    Array.from({ length: rows.length }, (_, row) => row),
    (row) => dayName(timeOf(row)),
  )
  return new Map(
    Array.from(ofDays, ([day, ofDay]) => {
      let from = Number.POSITIVE_INFINITY
      let to = Number.NEGATIVE_INFINITY
      for (const row of ofDay) {
        from = Math.min(from, timeOf(row))
        to = Math.max(to, timeOf(row))
      }
      return [day, { rows: ofDay, from: new Date(from).toISOString(), to: new Date(to).toISOString() }]
    }),
  )
}

const DAY_MS = 86_400_000
let lastDay = Number.NaN
let lastDayName = ''

/** Keeps the last result, because most rows of a load are of the same day. */
export function dayName(ms: number): string {
  const day = Math.floor(ms / DAY_MS)
  if (day !== lastDay) {
    lastDayName = new Date(ms).toISOString().slice(0, 10)
    lastDay = day
  }
  return lastDayName
}

export interface Rewrite {
  /** Of one day, in the order in which their rows are written. */
  inputs: readonly ManifestFile[]
  /** Chooses the rows that stay. All of them if absent. */
  keep?: (row: readonly Cell[], columns: readonly FileColumn[]) => boolean
}

/**
 * Writes the rows of the inputs into one new file that takes their place. Returns how many rows were left out, or null if one of the inputs was replaced
 * or is gone meanwhile, and nothing has changed. Readers of the manifest see either the inputs or the result.
 */
export async function rewrite(files: LakeFiles, folder: string, { inputs, keep }: Rewrite): Promise<number | null> {
  const first = inputs[0] as ManifestFile
  const path = `day=${dayOf(first.path)}/${inputs.length === 1 ? baseOf(first.path) : 'merged'}-${randomBytes(6).toString('hex')}.parquet`
  const file = await files.create(`${folder}/${path}`)
  try {
    const written = await copyRows(files, folder, inputs, file, keep)
    if (written === null) return null
    const entry: ManifestFile = {
      path,
      ...written,
      from: inputs.map(({ from }) => from).reduce((one, other) => (one < other ? one : other)),
      to: inputs.map(({ to }) => to).reduce((one, other) => (one > other ? one : other)),
      ...(inputs.length === 1 && first.load !== undefined ? { load: first.load } : {}),
    }
    let isCurrent = true
    await updateManifest(files, folder, async (manifest) => {
      const current = new Map(manifest.files.map((each) => [each.path, each.sha256]))
      isCurrent = inputs.every((input) => current.get(input.path) === input.sha256)
      if (!isCurrent) return null
      const replaced = new Set(inputs.map((input) => input.path))
      const rest = manifest.files.filter((each) => !replaced.has(each.path))
      if (written.rows === 0) return withFiles(manifest, rest)
      await file.publish()
      return withFiles(manifest, [...rest, entry])
    })
    return isCurrent ? inputs.reduce((total, { rows }) => total + rows, 0) - written.rows : null
  } finally {
    await file.discard()
  }
}

async function copyRows(
  files: LakeFiles,
  folder: string,
  inputs: readonly ManifestFile[],
  file: NewFile,
  keep: Rewrite['keep'],
): Promise<{ rows: number; bytes: number; sha256: string } | null> {
  const columns = await columnsOfAll(files, folder, inputs)
  if (columns === null) return null
  const names = columns.map(({ name }) => name)
  const parquet = new ParquetFile(columns, file)
  const size = groupRows(columns.length)
  let waiting: Cell[][] = []
  for (const input of inputs) {
    for await (const rows of readRows(files, folder, input, names)) {
      for (const row of rows) if (keep === undefined || keep(row, columns)) waiting.push(row)
      while (waiting.length >= size) {
        await parquet.write(waiting.slice(0, size))
        waiting = waiting.slice(size)
      }
    }
  }
  if (waiting.length > 0) await parquet.write(waiting)
  return parquet.finish()
}

/** The columns of all inputs, in the order in which they came. Null if a file is gone. */
async function columnsOfAll(files: LakeFiles, folder: string, inputs: readonly ManifestFile[]): Promise<FileColumn[] | null> {
  const columns = new Map<string, FileColumn>()
  for (const { path } of inputs) {
    const found = await withReader(files, `${folder}/${path}`, async (reader) => reader.columns)
    if (found === null) return null
    for (const column of found) columns.set(column.name, columns.get(column.name) ?? column)
  }
  return [...columns.values()]
}

async function* readRows(files: LakeFiles, folder: string, { path }: ManifestFile, names: readonly string[]): AsyncGenerator<Cell[][]> {
  const file = await files.open(`${folder}/${path}`)
  if (file === null) return
  try {
    const reader = await ParquetReader.open(file)
    for (const group of reader.groups.keys()) yield await reader.read(group, names)
  } finally {
    await file.close()
  }
}

/** Null if there is no such file. */
export async function withReader<T>(files: LakeFiles, path: string, use: (reader: ParquetReader) => Promise<T>): Promise<T | null> {
  const file = await files.open(path)
  if (file === null) return null
  try {
    return await use(await ParquetReader.open(file))
  } finally {
    await file.close()
  }
}

function baseOf(path: string): string {
  return path.replace(/^.*\//, '').replace(/(-[0-9a-f]{12})?\.parquet$/, '')
}
