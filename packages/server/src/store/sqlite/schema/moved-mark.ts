// The mark in a file whose rows are in PostgreSQL, or on their way there: whoever started a service on it would have two stores
// that go apart. A setting, which a person can take away again: the rows stay.

import type { DatabaseSync } from 'node:sqlite'
import { readSetting, writeSetting } from './settings.ts'
import { StoreProblem } from './store-problem.ts'

export const MOVED_SETTING = 'moved'

export interface MovedMark {
  /** Of this move; the other store has the same. */
  id: string
  /** Without a login. */
  to: string
  atMs: number
  isOver: boolean
}

export function readMoved(database: DatabaseSync): MovedMark | undefined {
  const mark = readSetting(database, MOVED_SETTING)
  return mark === undefined ? undefined : (JSON.parse(mark) as MovedMark)
}

/** Null: none from now on. */
export function writeMoved(database: DatabaseSync, mark: MovedMark | null): void {
  writeSetting(database, MOVED_SETTING, mark && JSON.stringify(mark))
}

export function refuseMoved(database: DatabaseSync, path: string): void {
  const mark = readMoved(database)
  if (mark === undefined) return
  const at = new Date(mark.atMs).toISOString()
  const undo = `switchyard migrate-store --from sqlite:${path} --undo`
  throw new StoreProblem(
    mark.isOver
      ? `${path} was moved to PostgreSQL at ${mark.to} (${at}): set SWITCHYARD_STORE to that address. To use the file all the same, with what was in it then: ${undo}`
      : `${path} is being moved to PostgreSQL at ${mark.to} (begun ${at}). Run the same switchyard migrate-store again to go on, or give it up: ${undo}`,
  )
}
