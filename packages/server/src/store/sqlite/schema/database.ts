// Opens the file: one process at a time, the settings that make a commit durable, and the schema brought up to date.
// Checkpoints are made by whoever commits, between two commits, and never by SQLite in the middle of one.

import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { rejectMigratedFile } from './migration-mark.ts'
import { MIGRATIONS } from './migrations.ts'
import { StoreProblem } from './store-problem.ts'

export { StoreProblem } from './store-problem.ts'

const SQLITE_BUSY = 5
/** What the log is cut back to when it is started again, after a long read or a burst made it grow. */
const LOG_BYTES = 32 * 1024 * 1024

/** Answers of SQLite that say something about the file: PERM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB. */
const OF_THE_FILE = new Set([3, 8, 10, 11, 13, 14, 26])

/** What SQLite or the file system has against the file, in words; other errors are bugs and come back as they are. */
export function openProblem(error: unknown, path: string): unknown {
  const { errcode, syscall, message } = error as { errcode?: number; syscall?: string; message: string }
  const isOfTheFile = errcode === undefined ? syscall !== undefined : OF_THE_FILE.has(errcode & 0xff)
  return isOfTheFile ? new StoreProblem(`${path} cannot be opened as the store: ${message}.`, { cause: error }) : error
}

/**
 * Holds the store for this process until it is closed or the process ends, however it ends: the lock is the operating
 * system's, on a file of its own, because a lock on the database itself would keep our own reading thread out too.
 */
export function lockStore(path: string): { release(): void } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // Anybody who can open the file can hold the lock and keep the service from starting.
  createPrivate(`${path}.lock`)
  const lock = new DatabaseSync(`${path}.lock`)
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error
    throw new StoreProblem(
      `${path} is in use by another Switchyard process. One process serves one file: stop the other, or give this one its own with SWITCHYARD_STORE.`,
    )
  }
  return { release: () => lock.close() }
}

/** Only if there is none: closing any handle of a file releases the locks that other connections of this process have on it. */
function createPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/** Whether a process holds the store now. Asked by reading, which leaves the lock alone. */
export function isLocked(path: string): boolean {
  const lock = new DatabaseSync(`${path}.lock`, { readOnly: true })
  try {
    lock.prepare('SELECT count(*) FROM sqlite_master').get()
    return false
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return true
    throw error
  } finally {
    lock.close()
  }
}

/** With `allowMigrated`, also opens a file that has a migration mark: for migrate-store itself. */
export function openWriter(path: string, { allowMigrated = false }: { allowMigrated?: boolean } = {}): DatabaseSync {
  // What people did is in it: for its owner alone, whatever the umask. SQLite gives the files beside it the same mode.
  createPrivate(path)
  const database = new DatabaseSync(path)
  try {
    configure(database)
    migrate(database, path)
    if (!allowMigrated) rejectMigratedFile(database, path)
  } catch (error) {
    database.close()
    throw error
  }
  return database
}

/** `secure_delete = FAST` leaves no copies of a message behind when pages are split, which a purge could not find; it costs no writing. */
function configure(database: DatabaseSync): void {
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = ${LOG_BYTES};
    PRAGMA busy_timeout = 5000;
    PRAGMA cache_size = -32000;
    PRAGMA temp_store = MEMORY;
    PRAGMA foreign_keys = OFF;
    PRAGMA secure_delete = FAST;
  `)
}

/** During `work`, freed space is overwritten with zeros. Otherwise the old data could be read from the file until other data overwrites it. */
export function overwriting(database: DatabaseSync, work: () => void): void {
  database.exec('PRAGMA secure_delete = ON')
  try {
    work()
  } finally {
    database.exec('PRAGMA secure_delete = FAST')
  }
}

export function openReader(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true })
  database.exec('PRAGMA busy_timeout = 5000; PRAGMA cache_size = -8000')
  return database
}

function migrate(database: DatabaseSync, path: string): void {
  const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number }
  if (version > MIGRATIONS.length) {
    throw new StoreProblem(
      `${path} was written by a newer version of Switchyard (schema ${version}; this one knows ${MIGRATIONS.length}). Start the newer version, or restore a backup from before.`,
    )
  }
  for (let step = version; step < MIGRATIONS.length; step++) {
    database.exec(`BEGIN IMMEDIATE; ${MIGRATIONS[step]}; PRAGMA user_version = ${step + 1}; COMMIT`)
  }
}
