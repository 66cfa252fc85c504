// The files of `users` and `accounts`: one whole file, `state-{n}.parquet`, with the latest traits. Writing it anew for every load would cost more than the
// load itself once there are many users, so the calls of a load are first kept beside it and become part of the state when that is cheap in comparison.

import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { applyCalls, idOf } from '../schema/state.ts'
import type { Cell, Load, StateCall, StateRows } from '../warehouse.ts'
import { type LakeFiles, type NewFile, nameEnding } from './lake-files.ts'
import { type Manifest, type ManifestFile, type PendingCalls, readManifest, updateManifest, withFiles } from './manifest.ts'
import { type FileColumn, groupRows, ParquetFile } from './parquet-file.ts'
import { type Committed, withReader } from './table-files.ts'

/** A state with fewer rows is written with every load. */
const SMALL_STATE_ROWS = 20_000
/** A larger one when the calls beside it are this part of its rows. */
const PENDING_PART = 0.25
const MAX_PENDING_CALLS = 200_000

interface Stored {
  columns: StateRows['columns']
  calls: StateCall[]
  loadedAtMs: number
}

export async function loadState(files: LakeFiles, folder: string, load: Load, state: StateRows): Promise<Committed> {
  const path = `pending-${load.id}${nameEnding(files)}.json.zst`
  const content: Stored = { columns: state.columns, calls: state.calls, loadedAtMs: load.loadedAtMs }
  const bytes = zstdCompressSync(Buffer.from(JSON.stringify(content)))
  const pending: PendingCalls = { path, calls: state.calls.length, load: load.id }
  const manifest = await updateManifest(files, folder, async (before) => {
    const others = before.pending ?? []
    if (others.some((each) => each.load === load.id)) return null
    const file = await files.create(`${folder}/${path}`)
    try {
      await file.write(bytes)
      await file.publish()
    } catch (error) {
      await file.discard()
      throw error
    }
    return { ...before, pending: [...others, pending] }
  })
  // The calls are committed. If the rest fails, the next load or the upkeep does it.
  if (isDue(manifest)) await foldPending(files, folder)
  return { rows: new Set(state.calls.map(({ id }) => id)).size, bytes: bytes.length }
}

function isDue({ files, pending = [] }: Manifest): boolean {
  const rows = files.reduce((total, file) => total + file.rows, 0)
  const calls = pending.reduce((total, each) => total + each.calls, 0)
  return calls > 0 && (rows < SMALL_STATE_ROWS || calls >= rows * PENDING_PART || calls >= MAX_PENDING_CALLS)
}

/** Makes the pending calls part of the state, and leaves out the rows of `without`. Returns the number of rows that were left out. */
export async function foldPending(files: LakeFiles, folder: string, without: ReadonlySet<string> = new Set()): Promise<number> {
  const before = await readManifest(files, folder)
  if ((before.pending ?? []).length === 0 && without.size === 0) return 0
  let left = 0
  await updateManifest(files, folder, async (manifest) => {
    const { pending = [], ...rest } = manifest
    const state = manifest.files[0]
    if (state === undefined && pending.length === 0) return null
    const stored = await Promise.all(pending.map(({ path }) => readCalls(files, `${folder}/${path}`)))
    const number = state === undefined ? 1 : Number(/^state-(\d+)/.exec(state.path)?.[1] ?? 0) + 1
    const path = `state-${number}${nameEnding(files)}.parquet`
    const file = await files.create(`${folder}/${path}`)
    try {
      const made = await writeState(
        files,
        folder,
        state,
        stored.filter((each) => each !== null),
        file,
        without,
      )
      const { left: leftOut, ...entry } = made
      left = leftOut
      if (entry.rows > 0) await file.publish()
      const replaced = pending.map((each) => each.path)
      return withFiles(rest, entry.rows === 0 ? [] : [{ path, ...entry }], replaced)
    } finally {
      await file.discard()
    }
  })
  return left
}

async function readCalls(files: LakeFiles, path: string): Promise<Stored | null> {
  const found = await files.read(path)
  return found === null ? null : (JSON.parse(zstdDecompressSync(found.bytes).toString()) as Stored)
}

/** Copies the state group by group with the calls applied, so that it need not fit into memory; users that are new come at the end. */
async function writeState(
  files: LakeFiles,
  folder: string,
  state: ManifestFile | undefined,
  stored: readonly Stored[],
  file: NewFile,
  without: ReadonlySet<string>,
): Promise<Omit<ManifestFile, 'path'> & { left: number }> {
  const columns = await stateColumns(files, folder, state, stored)
  const parquet = new ParquetFile(columns, file)
  const byId = new Map<string, { call: StateCall; loadedAtMs: number }[]>()
  for (const { columns: ofLoad, calls, loadedAtMs } of stored) {
    const places = ofLoad.map(({ name }) => columns.findIndex((column) => column.name === name))
    for (const call of calls) {
      if (without.has(call.id)) continue
      const moved: StateCall = { ...call, cells: call.cells.map(([at, cell]) => [places[at] as number, cell]) }
      byId.set(call.id, [...(byId.get(call.id) ?? []), { call: moved, loadedAtMs }])
    }
  }
  const span = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY }
  const write = async (rows: Cell[][]): Promise<void> => {
    for (const row of rows) {
      span.from = Math.min(span.from, Number(row[1]))
      span.to = Math.max(span.to, Number(row[1]))
    }
    await parquet.write(rows)
  }
  const updated = (row: Cell[] | null, id: string): Cell[] => {
    const rows = new Map(row === null ? [] : [[id, row]])
    for (const { call, loadedAtMs } of byId.get(id) ?? []) applyCalls(rows, columns, [call], loadedAtMs)
    byId.delete(id)
    return rows.get(id) as Cell[]
  }
  let left = 0
  const names = columns.map(({ name }) => name)
  if (state !== undefined) {
    await withReader(files, `${folder}/${state.path}`, async (reader) => {
      for (const group of reader.groups.keys()) {
        const rows = await reader.read(group, names)
        const kept = rows.filter((row) => !without.has(idOf(row)))
        left += rows.length - kept.length
        await write(kept.map((row) => (byId.has(idOf(row)) ? updated(row, idOf(row)) : row)))
      }
    })
  }
  const size = groupRows(columns.length)
  const added = [...byId.keys()]
  for (let at = 0; at < added.length; at += size) await write(added.slice(at, at + size).map((id) => updated(null, id)))
  const written = await parquet.finish()
  const iso = (ms: number): string => new Date(Number.isFinite(ms) ? ms : 0).toISOString()
  return { ...written, from: iso(span.from), to: iso(span.to), left }
}

async function stateColumns(
  files: LakeFiles,
  folder: string,
  state: ManifestFile | undefined,
  stored: readonly Stored[],
): Promise<(FileColumn & { path: string; since: number })[]> {
  const columns = new Map<string, FileColumn & { path: string; since: number }>()
  // The fixed columns come first, in the order that state.ts knows.
  for (const { columns: ofLoad } of stored) for (const column of ofLoad) columns.set(column.name, column)
  const before = state === undefined ? null : await withReader(files, `${folder}/${state.path}`, async (reader) => reader.columns)
  for (const column of before ?? []) if (!columns.has(column.name)) columns.set(column.name, { ...column, path: '', since: 0 })
  return [...columns.values()]
}
