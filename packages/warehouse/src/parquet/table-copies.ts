// Copies of the files of a table, in a folder of this machine, so that a query can read them: for lakes in buckets. A copy is named after its content, so
// it is never out of date: a file that was merged or rewritten has another name. A manifest can have any names, so none of them becomes a path here.

import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { WarehouseProblem } from '../failure.ts'
import type { TableCopies, TableCopyRequest } from '../warehouse.ts'
import type { LakeFiles } from './lake-files.ts'
import { dayOf, type ManifestFile, readManifest } from './manifest.ts'

/** Files that are copied at the same time. */
const PARALLEL = 4
/** Larger files are copied in parts, which bounds the memory of a copy. */
const PART_BYTES = 8 * 1024 * 1024
/** After this many a merge is not the reason any more. */
const READS = 3

export async function copyTable(files: LakeFiles, { schema, table, folder, maxBytes }: TableCopyRequest): Promise<TableCopies> {
  const place = `${schema}/${table}`
  for (let read = 1; ; read++) {
    const { files: listed } = await readManifest(files, place)
    const bytes = listed.reduce((sum, file) => sum + file.bytes, 0)
    if (bytes > maxBytes) return { bytes, files: null, warnings: [] }
    const targets = listed.map((file) => join(folder, dayFolder(file), `${file.sha256}.parquet`))
    if (!listed.every(({ sha256 }) => /^[\da-f]{64}$/.test(sha256)))
      throw new WarehouseProblem('table_changed', `${files.place}/${place}: the manifest has a file without a checksum.`)
    await removeOthers(folder, new Set(targets))
    const isThere = await Promise.all(inTurns(listed, (file, at) => copyFile(files, `${place}/${file.path}`, file, targets[at] as string)))
    // A merge may have replaced files after the manifest was read.
    if (isThere.includes(false) && read < READS) continue
    const warnings = listed
      .filter((_, at) => isThere[at] === false)
      .map(({ path, rows }) => `${place}/${path} is gone, so its ${rows} rows are missing in the result.`)
    return { bytes, files: targets.filter((_, at) => isThere[at]), warnings }
  }
}

function dayFolder({ path }: ManifestFile): string {
  const day = dayOf(path)
  return day === '' ? '' : `day=${day}`
}

/** Starts the work on an item when that on the item PARALLEL places before it has ended. */
function inTurns<Item, Result>(items: readonly Item[], work: (item: Item, at: number) => Promise<Result>): Promise<Result>[] {
  const started: Promise<Result>[] = []
  for (const [at, item] of items.entries()) started.push((started[at - PARALLEL] ?? Promise.resolve()).then(() => work(item, at)))
  return started
}

/** Files of an earlier manifest, and what a copy left behind that was interrupted. */
async function removeOthers(folder: string, wanted: ReadonlySet<string>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const others = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  await Promise.all(others.filter((path) => !wanted.has(path)).map((path) => rm(path, { force: true })))
}

/** False if the file is gone. */
async function copyFile(files: LakeFiles, path: string, { bytes, sha256 }: ManifestFile, target: string): Promise<boolean> {
  const isThere = await stat(target).then(
    ({ size }) => size === bytes,
    () => false,
  )
  if (isThere) return true
  const source = await files.open(path)
  if (source === null) return false
  const temporary = `${target}.${randomUUID()}`
  try {
    if (source.byteLength !== bytes) throw damaged(files, path, `it has ${source.byteLength} bytes`)
    await mkdir(join(target, '..'), { recursive: true, mode: 0o700 })
    const hash = createHash('sha256')
    const file: FileHandle = await open(temporary, 'wx', 0o600)
    try {
      for (let at = 0; at < bytes; at += PART_BYTES) {
        const part = Buffer.from(await source.slice(at, Math.min(bytes, at + PART_BYTES)))
        hash.update(part)
        await file.writeFile(part)
      }
    } finally {
      await file.close()
    }
    if (hash.digest('hex') !== sha256) throw damaged(files, path, 'it has another checksum')
    await rename(temporary, target)
    return true
  } catch (error) {
    if (error instanceof WarehouseProblem && error.warehouse.code === 'file_missing') return false
    throw error
  } finally {
    await rm(temporary, { force: true })
    await source.close()
  }
}

function damaged({ place }: LakeFiles, path: string, what: string): WarehouseProblem {
  return new WarehouseProblem('table_changed', `${place}/${path} is not the file that the manifest names: ${what}.`)
}
