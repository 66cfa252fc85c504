// The audit log's rows in the file.

import type { DatabaseSync } from 'node:sqlite'
import type { AuditRow, AuditRows, AuditTexts } from '../../history/audit-rows.ts'
import { SQLITE_ROWS } from '../schema/ids.ts'

export function auditRows(database: DatabaseSync): AuditRows<number> {
  return {
    order: SQLITE_ROWS,
    newest: (subject, first, last, limit) =>
      database
        .prepare(
          `SELECT id, at AS atMs, actor AS actorId, actor_name AS actorName, action, subject,
             ifnull(octet_length(before), 0) + ifnull(octet_length(after), 0) AS bytes
           FROM audit WHERE ${subject === undefined ? '' : 'subject = ? AND '}id >= ? AND id <= ? ORDER BY id DESC LIMIT ?`,
        )
        .all(...(subject === undefined ? [] : [subject]), first, last, limit) as unknown as AuditRow<number>[],
    texts: (ids) =>
      database
        .prepare('SELECT id, before, after FROM audit WHERE id IN (SELECT value FROM json_each(?))')
        .all(JSON.stringify(ids)) as unknown as AuditTexts<number>[],
  }
}
