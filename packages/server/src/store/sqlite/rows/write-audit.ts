// Who did what, appended inside the transaction of what was done.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { NewAuditEntry } from '../../store.ts'
import { type RowIds, rowIdAt } from '../schema/ids.ts'

const DROPPED_PER_STEP = 1_000

/** Who did what, written in the transaction of the change. */
export interface AuditNote extends NewAuditEntry {
  atMs: number
}

export function auditNote(entry: NewAuditEntry | undefined, atMs: number): { audit?: AuditNote } {
  return entry === undefined ? {} : { audit: { ...entry, atMs } }
}

export class AuditWriter {
  readonly #insert: StatementSync
  readonly #drop: StatementSync
  readonly #ids: RowIds

  constructor(database: DatabaseSync, ids: RowIds) {
    this.#ids = ids
    this.#insert = database.prepare(
      'INSERT INTO audit (id, at, actor, actor_name, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    )
    this.#drop = database.prepare(`DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ${DROPPED_PER_STEP})`)
  }

  /** Some of those from before; how many, until there are none. */
  drop(beforeMs: number): number {
    return Number(this.#drop.run(rowIdAt(beforeMs)).changes)
  }

  insert({ atMs, actor, action, subject, before, after }: AuditNote): void {
    const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))
    this.#insert.run(this.#ids.next(), atMs, actor.id, actor.name, action, subject, text(before), text(after))
  }
}
