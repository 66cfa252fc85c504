// Who did what: written in the transaction of what was done, and dropped when its time is over.

import type { NewAuditEntry } from '../../store.ts'
import { type RowIds, rowIdAt } from '../schema/ids.ts'
import type { Ask, Database } from '../session/database.ts'
import { writeText } from '../session/texts.ts'

const DROPPED_PER_STEP = 1_000

export async function writeAudit(ask: Ask, ids: RowIds, entry: NewAuditEntry | undefined, atMs: number): Promise<void> {
  if (entry === undefined) return
  const { actor, action, subject, before, after } = entry
  const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))
  const text = (value: string | null): string | null => (value === null ? null : writeText(value))
  await ask('INSERT INTO audit (id, at, actor, actor_name, action, subject, before, after) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)', [
    ids.next(),
    atMs,
    actor.id,
    writeText(actor.name),
    action,
    text(subject),
    json(before),
    json(after),
  ])
}

/** Some of those from before; how many. */
export async function dropAudit(database: Database, beforeMs: number): Promise<number> {
  const { count } = await database.query(
    `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < $1 ORDER BY id LIMIT ${DROPPED_PER_STEP} FOR UPDATE SKIP LOCKED)`,
    [rowIdAt(beforeMs)],
  )
  return count
}
