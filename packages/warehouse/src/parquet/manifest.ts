// The manifest of a table says which files it consists of. Every change of a table is: write new files, replace the manifest, remove the files that are
// no longer in it. The replaced manifest is the commit. It also lists what is to be removed, so that a process that is killed leaves no work undone.

import { WarehouseProblem } from '../failure.ts'
import type { LakeFiles } from './lake-files.ts'

export interface ManifestFile {
  /** Relative to the folder of the table. */
  path: string
  rows: number
  bytes: number
  sha256: string
  /** The first and the last `received_at`, as ISO 8601. */
  from: string
  to: string
  /** The load that wrote it: a table in which a load has a file is committed for it. Absent in a merged file. */
  load?: string
}

/** Calls that are not part of the state of `users` or `accounts` yet. */
export interface PendingCalls {
  path: string
  calls: number
  load: string
}

export interface Manifest {
  files: ManifestFile[]
  pending?: PendingCalls[]
  /** Files that were replaced, and are to be removed. */
  removed?: string[]
}

/** Enough for more than 100,000 files. Anyone who can write to a bucket can write manifests, and the process holds them in memory. */
export const MAX_MANIFEST_BYTES = 32 * 1024 * 1024
const ATTEMPTS = 20
const RETRY = 'retry'

export async function readManifest(files: LakeFiles, folder: string, signal?: AbortSignal): Promise<Manifest> {
  return (await readVersion(files, folder, signal)).manifest
}

async function readVersion(
  files: LakeFiles,
  folder: string,
  signal?: AbortSignal,
): Promise<{ manifest: Manifest; version: string | null }> {
  const found = await files.read(manifestPath(folder), signal, MAX_MANIFEST_BYTES)
  if (found === null) return { manifest: { files: [] }, version: null }
  try {
    return { manifest: JSON.parse(Buffer.from(found.bytes).toString()) as Manifest, version: found.version }
  } catch (error) {
    throw new WarehouseProblem(
      'table_changed',
      `${manifestPath(folder)} is not JSON, so the files of the table are not known. Restore it from a backup, or delete it to start the table anew.`,
      error,
    )
  }
}

/**
 * Replaces the manifest by what `change` makes of it, while nobody else does; null leaves it as it is. `change` may be called again, if another writer
 * was faster. Files that the change removed are deleted afterwards.
 */
export async function updateManifest(
  files: LakeFiles,
  folder: string,
  change: (manifest: Manifest) => Promise<Manifest | null>,
): Promise<Manifest> {
  const replaced = await files.exclusively(folder, async () => {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const { manifest, version } = await readVersion(files, folder)
      const next = await change(manifest).catch(async (error: unknown): Promise<typeof RETRY> => {
        // Without locks, another writer may have removed a file that this one was reading: then the manifest is another one by now.
        if (files.hasLocks || (await readVersion(files, folder)).version === version) throw error
        return RETRY
      })
      if (next === RETRY) continue
      if (next === null) return manifest
      if (await files.replace(manifestPath(folder), version, encode(next))) return next
    }
    throw new WarehouseProblem(
      'failed',
      `${manifestPath(folder)} was changed by other writers ${ATTEMPTS} times in a row. The work is repeated.`,
    )
  })
  return replaced.removed === undefined || replaced.removed.length === 0 ? replaced : await removeReplaced(files, folder, replaced.removed)
}

/** Deletes the files that are listed as removed, then the list. */
async function removeReplaced(files: LakeFiles, folder: string, removed: readonly string[]): Promise<Manifest> {
  for (const path of removed) await files.remove(`${folder}/${path}`)
  const done = new Set(removed)
  return await files.exclusively(folder, async () => {
    const { manifest, version } = await readVersion(files, folder)
    const { removed: listed = [], ...rest } = manifest
    const left = listed.filter((path) => !done.has(path))
    const next = left.length === 0 ? rest : { ...rest, removed: left }
    // If another writer was faster, the list stays for the next change: deleting twice does no harm.
    await files.replace(manifestPath(folder), version, encode(next))
    return next
  })
}

/** The manifest with other files; those that are left out are removed from the folder. */
export function withFiles(manifest: Manifest, next: ManifestFile[], alsoRemoved: readonly string[] = []): Manifest {
  const kept = new Set(next.map(({ path }) => path))
  const gone = manifest.files.map(({ path }) => path).filter((path) => !kept.has(path))
  const removed = [...(manifest.removed ?? []), ...gone, ...alsoRemoved]
  const { removed: _removed, ...rest } = manifest
  return { ...rest, files: next, ...(removed.length === 0 ? {} : { removed }) }
}

export function dayOf(path: string): string {
  return /^day=(\d{4}-\d\d-\d\d)\//.exec(path)?.[1] ?? ''
}

function manifestPath(folder: string): string {
  return `${folder}/_manifest.json`
}

/** One file per line, so that people can read it. */
function encode({ files, ...rest }: Manifest): Uint8Array {
  const others = Object.entries(rest).map(([name, value]) => `,\n${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  return Buffer.from(`{"files": [\n${files.map((file) => JSON.stringify(file)).join(',\n')}\n]${others.join('')}}\n`)
}
