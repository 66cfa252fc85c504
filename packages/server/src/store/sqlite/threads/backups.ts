// Makes consistent copies of the database file while it is being written. SQLite's backup copies the pages in small steps, within one read
// transaction on a separate connection. The writer is not blocked, but the write-ahead log cannot start again from its beginning until the
// copy is complete, so a copy during which the log grows beyond a limit is cancelled. The copy is one file without a log. It is stored
// beside the store, readable only by its owner, until it is removed or `keepMs` have passed.

import { createReadStream, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { backup as copyPages, DatabaseSync } from 'node:sqlite'
import { newId } from '../../../model/new-id.ts'
import type { Backup, Backups } from '../../store.ts'
import { openReader } from '../schema/database.ts'

const DEFAULTS = {
  /** The maximum size of the write-ahead log while a copy is made. */
  maxLogBytes: 4 * 1024 ** 3,
  /** How long a copy is kept. */
  keepMs: 15 * 60_000,
  /** 2 MB. A step occupies one of libuv's four threads, which DNS lookups need too. */
  pagesPerStep: 512,
  /** The free space that must remain on the store's disk. A backup must not fill it, because the service would then reject messages. */
  leastFreeBytes: 256 * 1024 ** 2,
}

export type BackupsOptions = { path: string } & Partial<typeof DEFAULTS>

interface Entry {
  job: Backup
  copy: string
  isCancelled: boolean
  over: Promise<void>
  forget: NodeJS.Timeout | undefined
}

/** Its message is the error that the API shows for the backup. */
class BackupCancelled extends Error {}

export function createBackups(given: BackupsOptions): Backups {
  const options = { ...DEFAULTS, ...given }
  const { path, keepMs } = options
  let current: Entry | undefined
  removeLeftovers(path)

  async function drop(entry: Entry): Promise<void> {
    entry.isCancelled = true
    clearTimeout(entry.forget)
    await entry.over
    removeCopy(entry.copy)
    if (current === entry) current = undefined
  }

  return {
    start() {
      if (current !== undefined && current.job.state !== 'failed') return undefined
      clearTimeout(current?.forget)
      const id = newId('bak')
      const job: Backup = { id, state: 'copying', doneBytes: 0, totalBytes: sizeOf(path), error: null, createdAtMs: Date.now() }
      const entry: Entry = { job, copy: `${path}.${id}`, isCancelled: false, over: Promise.resolve(), forget: undefined }
      current = entry
      entry.over = make(entry, options)
      entry.forget = setTimeout(() => void drop(entry), keepMs).unref()
      return job
    },
    get: (id) => (current?.job.id === id ? current.job : undefined),
    open: (id) => (current?.job.id === id && current.job.state === 'ready' ? createReadStream(current.copy) : undefined),
    async remove(id) {
      if (current?.job.id !== id) return false
      await drop(current)
      return true
    },
    async close() {
      if (current !== undefined) await drop(current)
    },
  }
}

async function make(entry: Entry, options: Required<BackupsOptions>): Promise<void> {
  const { job, copy } = entry
  try {
    checkSpace(options)
    await copyStore(entry, options)
    await makeSingleFile(copy)
    if (entry.isCancelled) throw new BackupCancelled('The backup was cancelled.')
    job.totalBytes = job.doneBytes = sizeOf(copy)
    job.state = 'ready'
  } catch (error) {
    job.state = 'failed'
    job.error = error instanceof BackupCancelled ? error.message : `The backup failed: ${(error as Error).message}.`
    removeCopy(copy)
  }
}

function checkSpace({ path, leastFreeBytes }: Required<BackupsOptions>): void {
  const neededBytes = sizeOf(path) + sizeOf(`${path}-wal`) + leastFreeBytes
  const free = freeBytes(path)
  if (free >= neededBytes) return
  throw new BackupCancelled(
    `Not enough disk space: the backup needs ${neededBytes} free bytes on the disk of the store, but only ${free} are available.`,
  )
}

async function copyStore(entry: Entry, options: Required<BackupsOptions>): Promise<void> {
  const { job, copy } = entry
  const source = openReader(options.path)
  try {
    // Created first, so that other users can never read it, not even while it grows.
    writeFileSync(copy, '', { mode: 0o600, flag: 'wx' })
    source.exec('BEGIN')
    source.prepare('SELECT count(*) FROM settings').get()
    const { page_size: pageBytes } = source.prepare('PRAGMA page_size').get() as { page_size: number }
    await copyPages(source, copy, {
      rate: options.pagesPerStep,
      progress: ({ totalPages, remainingPages }) => {
        job.totalBytes = totalPages * pageBytes
        job.doneBytes = (totalPages - remainingPages) * pageBytes
        if (entry.isCancelled) throw new BackupCancelled('The backup was cancelled.')
        checkStep(options)
      },
    })
  } finally {
    source.close()
  }
}

/** Cancels a copy that has become too expensive for the store. */
function checkStep({ path, leastFreeBytes, maxLogBytes }: Required<BackupsOptions>): void {
  if (freeBytes(path) < leastFreeBytes)
    throw new BackupCancelled('The backup was cancelled because the disk of the store is nearly full. Free some space and try again.')
  const logBytes = sizeOf(`${path}-wal`)
  if (logBytes > maxLogBytes) {
    throw new BackupCancelled(
      `The backup was cancelled because the write-ahead log of the store grew to ${logBytes} bytes while it was made. Try again when there is less traffic, or use a faster disk.`,
    )
  }
}

/**
 * Makes the copy a single file: SQLite cannot open a file in WAL mode for reading without creating two more files beside it. The copy is
 * synced before that, and not on this thread, because a large file may take seconds.
 */
async function makeSingleFile(copy: string): Promise<void> {
  const file = await open(copy, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
  const database = new DatabaseSync(copy)
  try {
    database.exec('PRAGMA journal_mode = DELETE')
  } finally {
    database.close()
  }
}

function removeCopy(copy: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(`${copy}${suffix}`, { force: true })
}

/** Removes copies of a process that was killed. */
function removeLeftovers(path: string): void {
  const start = `${basename(path)}.bak_`
  for (const name of readdirSync(dirname(path))) if (name.startsWith(start)) rmSync(join(dirname(path), name), { force: true })
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
