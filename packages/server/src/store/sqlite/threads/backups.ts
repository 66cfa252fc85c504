// Consistent copies of the file while it is being written: one read transaction on a connection of its own, from which
// SQLite's backup takes the pages in small steps. The writer is not held up; but as long as the copy takes, the log cannot be
// started again, so a copy that lets it grow beyond a limit is given up. A copy lies beside the store, for its owner alone,
// until it is fetched, removed or forgotten; it is one plain file without a log. Where it goes from here is not known here.

import { createReadStream, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { backup as copyPages, DatabaseSync } from 'node:sqlite'
import { newId } from '../../configuration/new-id.ts'
import type { Backup, Backups } from '../../store.ts'
import { openReader } from '../schema/database.ts'

export interface BackupsOptions {
  path: string
  /** What the log may grow to while a copy is made. */
  maxLogBytes?: number
  /** How long a copy that is not fetched is kept. */
  keepMs?: number
  pagesPerStep?: number
  /** What is always left free on the store's disk. */
  leastFreeBytes?: number
}

/** A copy must not be what fills the disk: calls would be refused for its sake. */
const LEAST_FREE_BYTES = 256 * 1024 ** 2
const MAX_LOG_BYTES = 4 * 1024 ** 3
const KEEP_MS = 15 * 60_000
/** 2 MB at a time: a step holds one of the four threads that names are looked up in as well. */
const PAGES_PER_STEP = 512

class GivenUp extends Error {}

export function createBackups({
  path,
  maxLogBytes = MAX_LOG_BYTES,
  keepMs = KEEP_MS,
  pagesPerStep = PAGES_PER_STEP,
  leastFreeBytes = LEAST_FREE_BYTES,
}: BackupsOptions): Backups {
  let current: { job: Backup; copy: string; over: Promise<void>; forget: NodeJS.Timeout | undefined; stop: boolean } | undefined
  removeLeftovers(path)

  async function make(entry: NonNullable<typeof current>): Promise<void> {
    const { job, copy } = entry
    const source = openReader(path)
    try {
      // Made first, so that it is never readable by others, not even while it grows.
      writeFileSync(copy, '', { mode: 0o600, flag: 'wx' })
      source.exec('BEGIN')
      source.prepare('SELECT count(*) FROM settings').get()
      const { page_size: pageBytes } = source.prepare('PRAGMA page_size').get() as { page_size: number }
      await copyPages(source, copy, {
        rate: pagesPerStep,
        progress: ({ totalPages, remainingPages }) => {
          job.totalBytes = totalPages * pageBytes
          job.doneBytes = (totalPages - remainingPages) * pageBytes
          if (entry.stop) throw new GivenUp('The copy was given up.')
          if (freeBytes(path) < leastFreeBytes) throw new GivenUp('The disk of the store is nearly full, so the copy was given up.')
          const logBytes = sizeOf(`${path}-wal`)
          if (logBytes > maxLogBytes) {
            throw new GivenUp(
              `While the copy was made, the log of the store grew to ${logBytes} bytes, so the copy was given up. Try when less is sent, or on a faster disk.`,
            )
          }
        },
      })
      await standAlone(copy)
      if (entry.stop) throw new GivenUp('The copy was given up.')
      job.totalBytes = job.doneBytes = sizeOf(copy)
      job.state = 'ready'
    } catch (error) {
      job.state = 'failed'
      job.error = error instanceof GivenUp ? error.message : `The copy could not be made: ${(error as Error).message}.`
      removeCopy(copy)
    } finally {
      source.close()
    }
  }

  async function drop(entry: NonNullable<typeof current>): Promise<void> {
    entry.stop = true
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
      const totalBytes = sizeOf(path)
      const job: Backup = { id, state: 'copying', doneBytes: 0, totalBytes, error: null, createdAtMs: Date.now() }
      const entry = { job, copy: `${path}.${id}`, over: Promise.resolve(), forget: undefined as NodeJS.Timeout | undefined, stop: false }
      current = entry
      const neededBytes = totalBytes + sizeOf(`${path}-wal`) + leastFreeBytes
      const free = freeBytes(path)
      if (free < neededBytes) {
        job.state = 'failed'
        job.error = `A copy needs ${neededBytes} free bytes beside the store, and there are ${free}.`
      } else entry.over = make(entry)
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

/**
 * As one file: opened for reading, a file in WAL mode wants to write two more beside it. Synced before, and not by this thread:
 * a large file may take seconds.
 */
async function standAlone(copy: string): Promise<void> {
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

/** Of a process that was killed meanwhile. */
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
