// A lake in a folder. Files are written under a temporary name that does not end in .parquet, made durable, and renamed. The lock of a table is an
// exclusive transaction on an empty SQLite file: the kernel releases it when the process ends, however it ends, and it works between containers.

import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { WarehouseProblem } from '../failure.ts'
import type { LakeFile, LakeFiles, Listed, NewFile } from './lake-files.ts'

const LOCK_POLL_MS = 20
const LOCK_DEADLINE_MS = 60_000
const LOCK_FILE = '_lock'

export class FolderFiles implements LakeFiles {
  readonly place: string
  readonly hasLocks = true
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    this.place = folder
  }

  async read(path: string): Promise<{ bytes: Uint8Array; version: string } | null> {
    const bytes = await orNull(readFile(join(this.#folder, path)))
    return bytes === null ? null : { bytes, version: versionOf(bytes) }
  }

  async open(path: string): Promise<LakeFile | null> {
    const file = await orNull(open(join(this.#folder, path)))
    if (file === null) return null
    const { size } = await file.stat()
    return {
      byteLength: size,
      slice: async (start, end = size) => {
        const length = Math.max(0, Math.min(end, size) - start)
        const bytes = new Uint8Array(length)
        for (let at = 0; at < length; ) {
          const { bytesRead } = await file.read(bytes, at, length - at, start + at)
          if (bytesRead === 0) throw new WarehouseProblem('failed', `${join(this.#folder, path)} ends too early.`)
          at += bytesRead
        }
        return bytes.buffer
      },
      close: () => file.close(),
    }
  }

  async create(path: string): Promise<NewFile> {
    const target = join(this.#folder, path)
    const folder = dirname(target)
    await mkdir(folder, { recursive: true })
    const temporary = join(folder, temporaryName())
    const file = await open(temporary, 'wx')
    let isPublished = false
    return {
      write: (bytes) => file.writeFile(bytes),
      publish: async () => {
        if (isPublished) return
        isPublished = true
        await makeDurable(file)
        await rename(temporary, target)
        await syncFolder(folder)
      },
      discard: async () => {
        await file.close().catch(() => {})
        await rm(temporary, { force: true })
      },
    }
  }

  async replace(path: string, version: string | null, bytes: Uint8Array): Promise<boolean> {
    const before = await this.read(path)
    if ((before?.version ?? null) !== version) return false
    const file = await this.create(path)
    try {
      await file.write(bytes)
      await file.publish()
    } catch (error) {
      await file.discard()
      throw error
    }
    return true
  }

  async remove(path: string): Promise<void> {
    await rm(join(this.#folder, path), { force: true })
  }

  async list(folder: string): Promise<Listed[]> {
    const path = join(this.#folder, folder)
    const entries = (await orNull(readdir(path, { withFileTypes: true }))) ?? []
    const listed = await Promise.all(
      entries.map(async (entry) => {
        const about = await orNull(stat(join(path, entry.name)))
        return about === null ? null : { name: entry.name, isFolder: about.isDirectory(), modifiedMs: about.mtimeMs }
      }),
    )
    return listed.filter((entry) => entry !== null)
  }

  async exclusively<T>(folder: string, work: () => Promise<T>): Promise<T> {
    const path = join(this.#folder, folder)
    await mkdir(path, { recursive: true })
    const database = new DatabaseSync(join(path, LOCK_FILE), { timeout: 0 })
    try {
      for (let waitedMs = 0; !isLocked(database); waitedMs += LOCK_POLL_MS) {
        if (waitedMs > LOCK_DEADLINE_MS)
          throw new WarehouseProblem(
            'timed_out',
            `Another process has kept ${path} locked for ${LOCK_DEADLINE_MS / 1_000} s. The load is repeated.`,
          )
        await sleep(LOCK_POLL_MS)
      }
      return await work()
    } finally {
      database.close()
    }
  }
}

/** Names of files that were not completed. They are hidden from scans, and removed after a day. */
export function isTemporary(name: string): boolean {
  return name.startsWith('.tmp-')
}

function temporaryName(): string {
  return `.tmp-${randomUUID()}`
}

function isLocked(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if (/locked|busy/i.test((error as Error).message)) return false
    throw error
  }
}

async function makeDurable(file: FileHandle): Promise<void> {
  await file.sync()
  await file.close()
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function orNull<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function versionOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
