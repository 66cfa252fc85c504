// The progress of a store migration from SQLite into this database (not of a schema migration: see migrate.ts). It is a setting that is
// written in the same transaction as the rows. Until the migration is complete no node starts here, because acknowledged messages may
// still be missing.

import type { Ask, Database } from '../session/database.ts'
import { readSetting } from '../tables/sql.ts'
import { SchemaProblem } from './migrate.ts'

const SETTING = 'moved_from_sqlite'

export interface MigrationState {
  /** Id of this migration; the mark in the file has the same. */
  id: string
  /** A hash that identifies the installation. */
  installation: string
  /** The path of the file, for messages. */
  from: string
  /** Id of the key that encrypts the migrated secrets: see secret-box.ts. */
  keyId: string
  /** Tables that are complete. */
  done: readonly string[]
  /** The table being copied, and the key of its last copied row. */
  table: string | null
  after: readonly (number | string)[] | null
  /** The number of rows copied so far. */
  rows: number
  isOver: boolean
}

export async function readMigrationState(ask: Ask): Promise<MigrationState | undefined> {
  const value = await readSetting(ask, SETTING)
  return value === undefined ? undefined : (JSON.parse(value) as MigrationState)
}

/** Returns false if the stored state is not `before`, because another process changed it. */
export async function writeMigrationState(ask: Ask, state: MigrationState, before: MigrationState | null): Promise<boolean> {
  const values = [SETTING, JSON.stringify(state)]
  const { count } =
    before === null
      ? await ask('INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', values)
      : await ask('UPDATE settings SET value = $2 WHERE name = $1 AND value = $3', [...values, JSON.stringify(before)])
  return count === 1
}

export async function deleteMigrationState(ask: Ask): Promise<void> {
  await ask('DELETE FROM settings WHERE name = $1', [SETTING])
}

/** A node calls this after it has registered itself: a migration checks for registered nodes after it has written its state. */
export async function rejectUnfinishedMigration(database: Database): Promise<void> {
  const state = await readMigrationState(database.ask)
  if (state === undefined || state.isOver) return
  throw new SchemaProblem(
    `The migration of ${state.from} into this database is not finished. Run the same switchyard migrate-store command again to resume it. To start without the migrated data, drop the schema: DROP SCHEMA switchyard CASCADE;`,
  )
}
