// Who did what, appended inside the transaction of what was done.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { AuditNote } from './commands.ts'
import type { RowIds } from './ids.ts'

export class AuditWriter {
  readonly #insert: StatementSync
  readonly #ids: RowIds

  constructor(database: DatabaseSync, ids: RowIds) {
    this.#ids = ids
    this.#insert = database.prepare(
      'INSERT INTO audit (id, at, actor, actor_name, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    )
  }

  insert({ atMs, actor, action, subject, before, after }: AuditNote): void {
    const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))
    this.#insert.run(this.#ids.next(), atMs, actor.id, actor.name, action, subject, text(before), text(after))
  }
}
