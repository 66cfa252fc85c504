// The audit log in the file. An entry is written in the transaction of the change.

import type { AuditRows } from '../../history/audit-rows.ts'
import { type RowIds, rowIdAt, SQLITE_ROW_ORDER } from '../schema/row-ids.ts'
import type { AuditNote } from '../threads/protocol.ts'
import type { Rows } from './rows.ts'

const DROPPED_PER_STEP = 1_000

export function auditRows(rows: Rows): AuditRows<number> {
  return {
    order: SQLITE_ROW_ORDER,
    newest: (subject, first, last, limit) =>
      rows.all(
        `SELECT id, at AS atMs, actor AS actorId, actor_name AS actorName, action, subject,
           ifnull(octet_length(before), 0) + ifnull(octet_length(after), 0) AS bytes
         FROM audit WHERE ${subject === undefined ? '' : 'subject = ? AND '}id >= ? AND id <= ? ORDER BY id DESC LIMIT ?`,
        ...(subject === undefined ? [first, last, limit] : [subject, first, last, limit]),
      ),
    texts: (ids) => rows.all('SELECT id, before, after FROM audit WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids)),
  }
}

export function insertAudit(rows: Rows, ids: RowIds, { atMs, actor, action, subject, before, after }: AuditNote): void {
  const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))
  const values = [ids.next(), atMs, actor.id, actor.name, action, subject, text(before), text(after)]
  rows.run('INSERT INTO audit (id, at, actor, actor_name, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)', ...values)
}

/** Drops some of the older entries, and returns how many. */
export function dropAudit(rows: Rows, beforeMs: number): number {
  const sql = `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ${DROPPED_PER_STEP})`
  return rows.run(sql, rowIdAt(beforeMs))
}
