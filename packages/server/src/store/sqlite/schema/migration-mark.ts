// The mark in a SQLite file that was or is being migrated to PostgreSQL. It keeps a service from starting on the file: the two stores
// would diverge. It is a setting that the operator can remove again (`migrate-store --undo`); the rows stay in the file.

import type { DatabaseSync } from 'node:sqlite'
import { readSetting, writeSetting } from './settings.ts'
import { StoreProblem } from './store-problem.ts'

export const MIGRATION_MARK_SETTING = 'moved'

export interface MigrationMark {
  /** Id of this migration; the database has the same. */
  id: string
  /** The address without credentials. */
  to: string
  atMs: number
  isOver: boolean
}

export function readMigrationMark(database: DatabaseSync): MigrationMark | undefined {
  const mark = readSetting(database, MIGRATION_MARK_SETTING)
  return mark === undefined ? undefined : (JSON.parse(mark) as MigrationMark)
}

/** Null removes the mark. */
export function writeMigrationMark(database: DatabaseSync, mark: MigrationMark | null): void {
  writeSetting(database, MIGRATION_MARK_SETTING, mark && JSON.stringify(mark))
}

/** Throws StoreProblem if the file has a migration mark. */
export function rejectMigratedFile(database: DatabaseSync, path: string): void {
  const mark = readMigrationMark(database)
  if (mark === undefined) return
  const at = new Date(mark.atMs).toISOString()
  const undo = `switchyard migrate-store --from sqlite:${path} --undo`
  throw new StoreProblem(
    mark.isOver
      ? `${path} was migrated to PostgreSQL at ${mark.to} (${at}). Set SWITCHYARD_STORE to that address. To use the file anyway, with the data it had then, run: ${undo}`
      : `${path} is being migrated to PostgreSQL at ${mark.to} (started ${at}). Run the same switchyard migrate-store command again to resume, or abandon the migration: ${undo}`,
  )
}
