// How far a move from SQLite into this database is: a setting, written with the rows in one transaction. As long as the move is
// not over, no node works here: half of what was acknowledged may be missing.

import { readSetting } from '../rows/settings.ts'
import type { Ask, Database } from '../session/database.ts'
import { SchemaProblem } from './migrate.ts'

const SETTING = 'moved_from_sqlite'

export interface MovingState {
  /** Of this move; the file has the same. */
  id: string
  /** Tells whether it is the same installation, and nothing of it. */
  installation: string
  /** The file, as people read it. */
  from: string
  /** Of the key that secrets are sealed with here: see secret-box.ts. */
  keyId: string
  /** Tables that are here as a whole. */
  done: readonly string[]
  /** The table under way, and the key of the last row of it that is here. */
  table: string | null
  after: readonly (number | string)[] | null
  /** Rows so far. */
  rows: number
  isOver: boolean
}

export async function readMoving(ask: Ask): Promise<MovingState | undefined> {
  const value = await readSetting(ask, SETTING)
  return value === undefined ? undefined : (JSON.parse(value) as MovingState)
}

/** False when it is no more as `before`: somebody else is at it. */
export async function writeMoving(ask: Ask, state: MovingState, before: MovingState | null): Promise<boolean> {
  const values = [SETTING, JSON.stringify(state)]
  const { count } =
    before === null
      ? await ask('INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', values)
      : await ask('UPDATE settings SET value = $2 WHERE name = $1 AND value = $3', [...values, JSON.stringify(before)])
  return count === 1
}

export async function forgetMoving(ask: Ask): Promise<void> {
  await ask('DELETE FROM settings WHERE name = $1', [SETTING])
}

/** To be called by a node that is among those that are alive: a move looks at these after it has written that it has begun. */
export async function refuseUnfinished(database: Database): Promise<void> {
  const state = await readMoving(database.ask)
  if (state === undefined || state.isOver) return
  throw new SchemaProblem(
    `The move of ${state.from} into this database is not finished. Run the same switchyard migrate-store again: it goes on where it was. To start without it, drop the schema: DROP SCHEMA switchyard CASCADE;`,
  )
}
