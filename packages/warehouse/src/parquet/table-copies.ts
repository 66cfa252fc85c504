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
/** Far more than a lake has that is merged. It bounds what the answer and a folder have. */
const MAX_FILES = 50_000

export async function copyTable(
  files: LakeFiles,
  { schema, table, folder, maxBytes }: TableCopyRequest,
  signal?: AbortSignal,
): Promise<TableCopies> {
  const place = `${schema}/${table}`
  for (let read = 1; ; read++) {
    const { files: listed } = await readManifest(files, place, signal)
    assertSound(listed, `${files.place}/${place}`)
    const bytes = listed.reduce((sum, file) => sum + file.bytes, 0)
    if (bytes > maxBytes) return { bytes, files: null, warnings: [] }
    const targets = listed.map((file) => join(folder, dayFolder(file), `${file.sha256}.parquet`))
    await removeOthers(folder, new Set(targets))
    const isThere = await copyAll(listed, signal, (file, at, ended) =>
      copyFile(files, `${place}/${file.path}`, file, targets[at] as string, ended),
    )
    // A merge may have replaced files after the manifest was read.
    if (isThere.includes(false) && read < READS) continue
    const warnings = listed
      .filter((_, at) => isThere[at] === false)
      .map(({ path, rows }) => `${place}/${path} is gone, so its ${rows} rows are missing in the result.`)
    return { bytes, files: targets.filter((_, at) => isThere[at]), warnings }
  }
}

/** Whoever writes to the bucket writes manifests. Sizes are added up, and paths become addresses of objects. */
function assertSound(listed: readonly ManifestFile[], place: string): void {
  const damage = (what: string): WarehouseProblem => new WarehouseProblem('table_changed', `${place}: the manifest has ${what}.`)
  if (listed.length > MAX_FILES) throw damage(`more than ${MAX_FILES} files`)
  for (const { path, bytes, sha256 } of listed) {
    if (!/^[\da-f]{64}$/.test(sha256)) throw damage('a file without a checksum')
    if (!Number.isSafeInteger(bytes) || bytes < 0) throw damage('a file without a size')
    if (typeof path !== 'string' || path.split('/').includes('..')) throw damage('a file outside of the folder of the table')
  }
}

function dayFolder({ path }: ManifestFile): string {
  const day = dayOf(path)
  return day === '' ? '' : `day=${day}`
}

/** Ends the other copies when one has failed. Nothing is written any more when it has thrown. */
async function copyAll(
  listed: readonly ManifestFile[],
  signal: AbortSignal | undefined,
  copy: (file: ManifestFile, at: number, ended: AbortSignal) => Promise<boolean>,
): Promise<boolean[]> {
  const failed = new AbortController()
  const ended = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal])
  const isThere: boolean[] = []
  const entries = listed.entries()
  const work = async (): Promise<void> => {
    for (const [at, file] of entries) {
      ended.throwIfAborted()
      isThere[at] = await copy(file, at, ended)
    }
  }
  const fail = (error: unknown): void => failed.abort(error)
  await Promise.all(Array.from({ length: PARALLEL }, () => work().catch(fail)))
  failed.signal.throwIfAborted()
  return isThere
}

/** Files of an earlier manifest, and what a copy left behind that was interrupted. */
async function removeOthers(folder: string, wanted: ReadonlySet<string>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const others = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  await Promise.all(others.filter((path) => !wanted.has(path)).map((path) => rm(path, { force: true })))
}

/** False if the file is gone. */
async function copyFile(
  files: LakeFiles,
  path: string,
  { bytes, sha256 }: ManifestFile,
  target: string,
  signal: AbortSignal,
): Promise<boolean> {
  const isThere = await stat(target).then(
    ({ size }) => size === bytes,
    () => false,
  )
  if (isThere) return true
  const source = await files.open(path, signal)
  if (source === null) return false
  const temporary = `${target}.${randomUUID()}`
  try {
    if (source.byteLength !== bytes) throw damaged(files, path, `it has ${source.byteLength} bytes`)
    await mkdir(join(target, '..'), { recursive: true, mode: 0o700 })
    const hash = createHash('sha256')
    const file: FileHandle = await open(temporary, 'wx', 0o600)
    try {
      for (let at = 0; at < bytes; at += PART_BYTES) {
        signal.throwIfAborted()
        const end = Math.min(bytes, at + PART_BYTES)
        const part = Buffer.from(await source.slice(at, end))
        // Before it is on the disk: a store can answer with more than was asked for.
        if (part.length !== end - at) throw damaged(files, path, `the bytes from ${at} to ${end} have a length of ${part.length}`)
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
