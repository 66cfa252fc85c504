// The audit log in the database. An entry is written in the transaction of the change, and dropped when its retention time is over.

import type { AuditRow, AuditRows, AuditTexts } from '../../history/audit-rows.ts'
import type { NewAuditEntry } from '../../store.ts'
import { POSTGRES_ROWS, type RowIds, rowIdAt } from '../schema/ids.ts'
import type { Ask, Database } from '../session/database.ts'
import { readText, writeText } from '../session/text-columns.ts'

const DROPPED_PER_STEP = 1_000

export function auditRows(ask: Ask): AuditRows<string> {
  return {
    order: POSTGRES_ROWS,
    async newest(subject, first, last, limit) {
      // Reads only the sizes of the texts, which may be large.
      const { rows } = await ask<AuditRow<string>>(
        `SELECT id, at AS "atMs", actor AS "actorId", actor_name AS "actorName", action, subject,
           coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) AS bytes
         FROM audit WHERE id >= $1 AND id <= $2 ${subject === undefined ? '' : 'AND subject = $4'} ORDER BY id DESC LIMIT $3`,
        [first, last, limit, ...(subject === undefined ? [] : [writeText(subject)])],
      )
      return rows.map((row) =>
        Object.assign(row, { actorName: readText(row.actorName), subject: row.subject === null ? null : readText(row.subject) }),
      )
    },
    texts: async (ids) => (await ask<AuditTexts<string>>('SELECT id, before, after FROM audit WHERE id = ANY($1::bigint[])', [ids])).rows,
  }
}

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

/** Drops some of the entries from before `beforeMs`, and returns how many. */
export async function dropAudit(database: Database, beforeMs: number): Promise<number> {
  const { count } = await database.query(
    `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < $1 ORDER BY id LIMIT ${DROPPED_PER_STEP} FOR UPDATE SKIP LOCKED)`,
    [rowIdAt(beforeMs)],
  )
  return count
}
