// Opens the database file: takes the lock that only one process can hold, sets the pragmas that make commits durable, and migrates the
// schema. The writing thread makes checkpoints between commits; SQLite never makes one in the middle of a commit.

import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { rejectMigratedFile } from './migration-mark.ts'
import { MIGRATIONS } from './migrations.ts'
import { StoreProblem } from './store-problem.ts'

export { StoreProblem } from './store-problem.ts'

const SQLITE_BUSY = 5
/** A long read or a burst of writes makes the write-ahead log grow. It is truncated to this size when it starts again from its beginning. */
const LOG_BYTES = 32 * 1024 * 1024

/** SQLite's error codes that mean a problem with the file: PERM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB. */
const FILE_ERRORS = new Set([3, 8, 10, 11, 13, 14, 26])

/** Converts errors of SQLite and the file system that concern the file to a StoreProblem. Other errors are bugs and are returned unchanged. */
export function openProblem(error: unknown, path: string): unknown {
  const { errcode, syscall, message } = error as { errcode?: number; syscall?: string; message: string }
  const isFileError = errcode === undefined ? syscall !== undefined : FILE_ERRORS.has(errcode & 0xff)
  return isFileError ? new StoreProblem(`Cannot open the store ${path}: ${message}.`, { cause: error }) : error
}

/**
 * Locks the store for this process until the lock is released or the process ends, even by a crash, because the operating system holds the
 * lock. The lock is on a separate file: a lock on the database itself would also lock out our own reading thread.
 */
export function lockStore(path: string): { release(): void } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // Private, because anybody who can open the file can take the lock and prevent the service from starting.
  createPrivate(`${path}.lock`)
  const lock = new DatabaseSync(`${path}.lock`)
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error
    throw new StoreProblem(
      `${path} is in use by another Switchyard process. Only one process can use a store file. Stop the other process, or set SWITCHYARD_STORE to a different file.`,
    )
  }
  return { release: () => lock.close() }
}

/** Does not touch an existing file: closing any handle of a file releases the locks that other connections of this process have on it. */
function createPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/** Whether a process holds the lock of the store now. Only reads, so it does not take the lock. */
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
  // The file contains personal data, so only its owner may read it, whatever the umask is. SQLite gives the -wal and -shm files the same mode.
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

/** With `secure_delete = FAST`, splitting a page leaves no copy of a message behind that a purge could not find. It causes no additional writes. */
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
      `${path} was written by a newer version of Switchyard (schema ${version}; this version supports up to ${MIGRATIONS.length}). Start the newer version, or restore a backup that was made before the upgrade.`,
    )
  }
  for (let step = version; step < MIGRATIONS.length; step++) {
    database.exec(`BEGIN IMMEDIATE; ${MIGRATIONS[step]}; PRAGMA user_version = ${step + 1}; COMMIT`)
  }
}
