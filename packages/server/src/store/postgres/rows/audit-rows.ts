// The audit log's rows in the database.

import type { AuditRow, AuditRows, AuditTexts } from '../../history/audit-rows.ts'
import { POSTGRES_ROWS } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'
import { readText, writeText } from '../session/texts.ts'

export function auditRows(ask: Ask): AuditRows<string> {
  return {
    order: POSTGRES_ROWS,
    async newest(subject, first, last, limit) {
      // Of the texts, which may be large, only how large they are.
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
