// The row port of the text of attempts, for SQLite.

import type { DatabaseSync } from 'node:sqlite'
import type { AttemptTextRows } from '../../deletions/purged-attempts.ts'
import { overwriting } from '../schema/database.ts'
import type { Rows } from './rows.ts'

export function attemptTextRows({ rows, database }: { rows: Rows; database: DatabaseSync }): AttemptTextRows<number> {
  return {
    replays: (segments) =>
      segments.flatMap((segment) =>
        rows.all<{ segment: number; origin: number }>('SELECT DISTINCT segment, origin FROM replays WHERE segment = ?', segment),
      ),
    attempts: (origins) =>
      origins.flatMap((origin) =>
        rows.all<{ id: number; origin: number; doc: string }>('SELECT id, origin, doc FROM attempts WHERE origin = ?', origin),
      ),
    rewrite: (attempts) =>
      overwriting(database, () => {
        for (const { id, doc } of attempts) rows.run('UPDATE attempts SET doc = ? WHERE id = ?', doc, id)
      }),
  }
}
