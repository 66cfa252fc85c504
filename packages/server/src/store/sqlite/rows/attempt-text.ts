// The row port of the text of attempts, for SQLite.

import { type AttemptTextRows, attemptTextRows as sharedRows } from '../../deletions/purged-attempts.ts'
import { overwriting } from '../schema/database.ts'
import type { Rows } from '../schema/rows.ts'

export function attemptTextRows(rows: Rows): AttemptTextRows<number> {
  return sharedRows(rows, (attempts) =>
    overwriting(rows.database, () => {
      for (const { id, doc } of attempts) rows.run('UPDATE attempts SET doc = ? WHERE id = ?', [doc, id])
    }),
  )
}
