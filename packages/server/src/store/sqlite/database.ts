// Opens the file: one process at a time, the settings that make a commit durable, and the schema brought up to date.
// Checkpoints are made by whoever commits, between two commits, and never by SQLite in the middle of one.

import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MIGRATIONS } from './migrations.ts'

const SQLITE_BUSY = 5

/** What a person who starts the service can do something about. */
export class StoreProblem extends Error {
  override name = 'StoreProblem'
}

/**
 * Holds the store for this process until it is closed or the process ends, however it ends: the lock is the operating
 * system's, on a file of its own, because a lock on the database itself would keep our own reading thread out too.
 */
export function lockStore(path: string): { release(): void } {
  mkdirSync(dirname(path), { recursive: true })
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

export function openWriter(path: string): DatabaseSync {
  const database = new DatabaseSync(path)
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA busy_timeout = 5000;
    PRAGMA cache_size = -32000;
    PRAGMA temp_store = MEMORY;
    PRAGMA foreign_keys = OFF;
  `)
  migrate(database, path)
  return database
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
