// Work on files in the background: rows of deleted users, small files of past days, days that are not kept, and files that a killed process left behind.
// Each step replaces files as a whole (table-files.ts), so it can be interrupted and repeated at any point.

import { groupBy } from '../group-by.ts'
import type { Progress, Upkeep, UserDeletion, WarehouseError } from '../warehouse.ts'
import { isTemporary } from './folder-files.ts'
import type { LakeFiles, Listed } from './lake-files.ts'
import { dayOf, type Manifest, type ManifestFile, readManifest, updateManifest, withFiles } from './manifest.ts'
import type { ParquetReader } from './parquet-file.ts'
import { foldPending } from './state-files.ts'
import { dayName, rewrite, withReader } from './table-files.ts'

const TARGET_BYTES = 64 * 1024 * 1024
/** Files of this size are not worth merging again. */
const LARGE_BYTES = TARGET_BYTES / 2
const MAX_MERGED_FILES = 500
const DAY_MS = 86_400_000
/** A file without an entry may belong to a load that is being committed; in a bucket there is no lock to exclude that. */
const LEFTOVER_AGE_MS = DAY_MS
/** What we write into the folder of a table, apart from the manifest and the lock. */
const OWN_FILES = /\.parquet$|^pending-.*\.json\.zst$/
const STATES = new Set(['users', 'accounts'])

/** Deletes the rows of users from one table. */
export async function deleteFromTable(
  files: LakeFiles,
  folder: string,
  table: string,
  { userIds }: UserDeletion,
): Promise<Omit<Progress, 'cursor'>> {
  const users = new Set(userIds)
  if (table === 'accounts') return { changed: 0, problems: [] }
  // They may have rows of the user.
  await removeLeftovers(files, folder, Date.now())
  if (table === 'users') return { changed: await foldPending(files, folder, users), problems: [] }
  const problems: WarehouseError[] = []
  const seen = new Set<string>()
  let changed = 0
  // Loads and merges go on meanwhile: what they wrote after the manifest was read is looked at in the next round.
  for (;;) {
    const unseen = (await readManifest(files, folder)).files.filter(({ path }) => !seen.has(path))
    if (unseen.length === 0) return { changed, problems }
    for (const input of unseen) {
      seen.add(input.path)
      const has = await withReader(files, `${folder}/${input.path}`, (reader) => hasUser(reader, userIds, users))
      if (has === null) problems.push(missing(folder, input))
      if (has !== true) continue
      const left = await rewrite(files, folder, {
        inputs: [input],
        keep: (row, columns) => !users.has(String(row[indexOf(columns, 'user_id')])),
      })
      if (left === null) seen.delete(input.path)
      else changed += left
    }
  }
}

async function hasUser(reader: ParquetReader, userIds: readonly string[], users: ReadonlySet<string>): Promise<boolean> {
  for (const group of reader.groups.keys()) {
    if (!reader.mayHave(group, 'user_id', userIds)) continue
    const rows = await reader.read(group, ['user_id'])
    if (rows.some(([userId]) => users.has(String(userId)))) return true
  }
  return false
}

const indexes = new WeakMap<object, number>()

function indexOf(columns: readonly { name: string }[], name: string): number {
  const known = indexes.get(columns) ?? columns.findIndex((column) => column.name === name)
  indexes.set(columns, known)
  return known
}

/** One step of upkeep for a table. `isDone` is false if there is another merge to do. */
export async function keepUp(
  files: LakeFiles,
  folder: string,
  table: string,
  upkeep: Upkeep,
): Promise<Omit<Progress, 'cursor'> & { isDone: boolean }> {
  if (STATES.has(table)) {
    await foldPending(files, folder)
    return { changed: await removeLeftovers(files, folder, upkeep.nowMs), problems: [], isDone: true }
  }
  let changed = await removeOldDays(files, folder, upkeep)
  const manifest = await readManifest(files, folder)
  const problems = await missingFiles(files, folder, manifest)
  const gone = new Set(problems.map(({ path }) => path))
  const present = manifest.files.filter(({ path }) => !gone.has(path))
  // Which loads are open is asked after the files were listed, and only if there is something to merge.
  const mayMerge = groupToMerge(present, { nowMs: upkeep.nowMs, openLoads: [] }) !== null
  const group = mayMerge ? groupToMerge(present, { nowMs: upkeep.nowMs, openLoads: await upkeep.openLoads() }) : null
  if (group !== null) {
    const merged = await rewrite(files, folder, { inputs: group })
    if (merged !== null) changed += group.length
    return { changed, problems: problems.map(({ problem }) => problem), isDone: false }
  }
  changed += await removeLeftovers(files, folder, upkeep.nowMs)
  return { changed, problems: problems.map(({ problem }) => problem), isDone: true }
}

async function removeOldDays(files: LakeFiles, folder: string, { keepDays, nowMs }: Upkeep): Promise<number> {
  if (keepDays === null) return 0
  const firstKept = dayName(nowMs - keepDays * DAY_MS)
  const isOld = ({ path }: ManifestFile): boolean => dayOf(path) < firstKept
  if (!(await readManifest(files, folder)).files.some(isOld)) return 0
  let removed = 0
  await updateManifest(files, folder, async (manifest) => {
    const kept = manifest.files.filter((file) => !isOld(file))
    removed = manifest.files.length - kept.length
    return withFiles(manifest, kept)
  })
  return removed
}

/** The next small files of one past day that fit into one file; null if there are none. */
export function groupToMerge(
  files: readonly ManifestFile[],
  { nowMs, openLoads }: { nowMs: number; openLoads: readonly string[] },
): ManifestFile[] | null {
  const open = new Set(openLoads)
  const today = dayName(nowMs)
  const small = files.filter(
    ({ path, bytes, load }) => dayOf(path) < today && bytes < LARGE_BYTES && !(load !== undefined && open.has(load)),
  )
  for (const [, ofDay] of groupBy(small, ({ path }) => dayOf(path))) {
    const group: ManifestFile[] = []
    let bytes = 0
    for (const file of ofDay.sort((one, other) => (one.from < other.from ? -1 : 1))) {
      if (bytes + file.bytes > TARGET_BYTES || group.length === MAX_MERGED_FILES) break
      group.push(file)
      bytes += file.bytes
    }
    if (group.length > 1) return group
  }
  return null
}

async function missingFiles(files: LakeFiles, folder: string, manifest: Manifest): Promise<{ path: string; problem: WarehouseError }[]> {
  const present = new Set<string>()
  for (const day of new Set(manifest.files.map(({ path }) => path.slice(0, path.indexOf('/')))))
    for (const { name } of await files.list(`${folder}/${day}`)) present.add(`${day}/${name}`)
  return manifest.files.filter(({ path }) => !present.has(path)).map((file) => ({ path: file.path, problem: missing(folder, file) }))
}

export function missing(folder: string, { path, rows }: ManifestFile): WarehouseError {
  return {
    code: 'file_missing',
    message: `${folder}/${path} is gone, although the manifest of the table names it. Its ${rows} rows are missing in queries. Restore the file from a backup, or remove its line from ${folder}/_manifest.json.`,
  }
}

/**
 * Removes what no manifest names: temporary files, and files whose commit a killed process did not reach. Files become visible and are committed under one
 * lock, so a visible file without an entry has no owner any more. Without locks, its age must tell.
 */
async function removeLeftovers(files: LakeFiles, folder: string, nowMs: number): Promise<number> {
  let removed = 0
  const isOld = ({ modifiedMs }: Listed): boolean => modifiedMs < nowMs - LEFTOVER_AGE_MS
  const clear = async (below: string, entries: readonly Listed[]): Promise<void> => {
    const candidates = entries.filter(
      (entry) =>
        !entry.isFolder && (isTemporary(entry.name) ? isOld(entry) : OWN_FILES.test(entry.name) && (files.hasLocks || isOld(entry))),
    )
    if (candidates.length === 0) return
    await files.exclusively(folder, async () => {
      const manifest = await readManifest(files, folder)
      const named = new Set([...manifest.files, ...(manifest.pending ?? [])].map(({ path }) => path))
      for (const { name } of candidates) {
        if (named.has(`${below}${name}`)) continue
        await files.remove(`${folder}/${below}${name}`)
        removed++
      }
    })
  }
  const top = await files.list(folder)
  await clear('', top)
  for (const day of top) if (day.isFolder) await clear(`${day.name}/`, await files.list(`${folder}/${day.name}`))
  return removed
}
