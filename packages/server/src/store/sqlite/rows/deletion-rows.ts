// The row ports of deletion requests, of suppressions and of the text of attempts, for SQLite.

import { type DeletionRows, type SuppressionRow, deletionRows as sharedRows, type TargetRow } from '../../deletions/deletion-rows.ts'
import { type AttemptTextRows, attemptTextRows as sharedTextRows } from '../../deletions/purged-attempts.ts'
import { overwriting } from '../schema/database.ts'
import type { Rows } from '../schema/rows.ts'

const TARGETS = `
  SELECT t.source, t.destination, t.origin, t.final, ifnull(max(a.attempt), 0) AS attempts,
         ifnull(sum(a.delivered), 0) AS delivered, ifnull(sum(a.failed + a.expired + a.cancelled), 0) AS failed
  FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin WHERE t.deletion = ?`

export function deletionRows(rows: Rows): DeletionRows<number> {
  const { sources, destinations } = rows
  return sharedRows(rows, {
    sourceIds: (nums) => nums.map((num) => sources.id(num)),
    progress: (deletion) =>
      rows.all(
        `SELECT source, final, min(attempts, 1) AS attempts, min(delivered, 1) AS delivered, min(failed, 1) AS failed, count(*) AS count
         FROM (${TARGETS} GROUP BY t.user_id, t.source, t.destination) GROUP BY 1, 2, 3, 4, 5`,
        [deletion],
      ),
    targets: (deletion, userIds) =>
      userIds.flatMap((userId) =>
        rows
          .all<TargetRow<number> & { destination: number }>(
            `${TARGETS} AND t.user_id = ? GROUP BY t.source, t.destination ORDER BY t.destination`,
            [deletion, userId],
          )
          .map((row) => Object.assign(row, { userId, destinationId: destinations.id(row.destination) })),
      ),
    suppressions({ userId, sourceId, sourceIds }, source, user, limit) {
      const conditions = ['(p.source, p.user_id) >= (?, ?)']
      const values: (number | string)[] = [source, user]
      if (sourceId !== undefined) {
        conditions.push('p.source = ?')
        values.push(sources.num(sourceId) ?? 0)
      }
      if (sourceIds !== undefined) {
        conditions.push('p.source IN (SELECT value FROM json_each(?))')
        values.push(JSON.stringify(sourceIds.map((id) => sources.num(id) ?? 0)))
      }
      if (userId !== undefined) {
        conditions.push('p.user_id = ?')
        values.push(userId)
      }
      // A user is looked up source by source, because there is no index by user, and there are few sources.
      const from = userId === undefined ? 'suppressions p' : 'sources s CROSS JOIN suppressions p ON p.source = s.num'
      const found = rows.all<SuppressionRow<number>>(
        `SELECT p.source, p.user_id AS userId, p.since FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY p.source, p.user_id LIMIT ?`,
        [...values, limit],
      )
      return found.map((row) => Object.assign(row, { sourceId: sources.id(row.source) }))
    },
    replaceUserIds: (deletion, userIds, pseudonyms) =>
      overwriting(rows.database, () => {
        rows.run('UPDATE deletions SET user_ids = ?, pseudonyms = 1 WHERE num = ?', [JSON.stringify(pseudonyms), deletion])
        for (const [at, userId] of userIds.entries())
          rows.run('UPDATE deletion_targets SET user_id = ? WHERE deletion = ? AND user_id = ?', [
            pseudonyms[at] as string,
            deletion,
            userId,
          ])
      }),
  })
}

export function attemptTextRows(rows: Rows): AttemptTextRows<number> {
  return sharedTextRows(rows, (attempts) =>
    overwriting(rows.database, () => {
      for (const { id, doc } of attempts) rows.run('UPDATE attempts SET doc = ? WHERE id = ?', [doc, id])
    }),
  )
}
