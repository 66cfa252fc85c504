// The rows of deletion requests and suppressions in the file.

import type { DeletionRow, DeletionRows, SuppressionRow, TargetProgress, TargetRow } from '../../deletions/deletion-rows.ts'
import { overwriting } from '../schema/database.ts'
import { SQLITE_ROWS } from '../schema/ids.ts'
import type { Rows } from './rows.ts'

const REQUESTS = `
  SELECT num, id, created_at AS createdAtMs, suppress, user_ids AS userIds, sources, purged, purge_cursor >= purge_end AS isPurged, ended
  FROM deletions`

const TARGETS = `
  SELECT t.source, t.destination, t.origin, t.final, ifnull(max(a.attempt), 0) AS attempts,
         ifnull(sum(a.delivered), 0) AS delivered, ifnull(sum(a.failed + a.expired + a.cancelled), 0) AS failed
  FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin WHERE t.deletion = ?`

export function deletionRows({
  database,
  sources,
  destinations,
}: Pick<Rows, 'database' | 'sources' | 'destinations'>): DeletionRows<number> {
  return {
    order: SQLITE_ROWS,
    newest: (last, limit) => database.prepare(`${REQUESTS} WHERE num <= ? ORDER BY num DESC LIMIT ?`).all(last, limit).map(deletionRow),
    byId: (id) => database.prepare(`${REQUESTS} WHERE id = ?`).all(id).map(deletionRow)[0],
    sourceIds: (nums) => nums.map((num) => sources.id(num)),
    progress: (deletion) =>
      database
        .prepare(
          `SELECT source, final, min(attempts, 1) AS attempts, min(delivered, 1) AS delivered, min(failed, 1) AS failed, count(*) AS count
           FROM (${TARGETS} GROUP BY t.user_id, t.source, t.destination) GROUP BY 1, 2, 3, 4, 5`,
        )
        .all(deletion) as unknown as (TargetProgress & { source: number; count: number })[],
    targets(deletion, userIds) {
      const ofUser = database.prepare(`${TARGETS} AND t.user_id = ? GROUP BY t.source, t.destination ORDER BY t.destination`)
      return userIds.flatMap((userId) =>
        (ofUser.all(deletion, userId) as unknown as (TargetRow<number> & { destination: number })[]).map((row) =>
          Object.assign(row, { userId, destinationId: destinations.id(row.destination) }),
        ),
      )
    },
    suppressions({ userId, sourceId }, source, user, limit) {
      const conditions = ['(p.source, p.user_id) >= (?, ?)']
      const values: (number | string)[] = [source, user]
      if (sourceId !== undefined) {
        conditions.push('p.source = ?')
        values.push(sources.num(sourceId) ?? 0)
      }
      if (userId !== undefined) {
        conditions.push('p.user_id = ?')
        values.push(userId)
      }
      // One user is looked up source by source: there is no index by user, and there are few sources.
      const from = userId === undefined ? 'suppressions p' : 'sources s CROSS JOIN suppressions p ON p.source = s.num'
      const rows = database
        .prepare(
          `SELECT p.source, p.user_id AS userId, p.since FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY p.source, p.user_id LIMIT ?`,
        )
        .all(...values, limit) as unknown as SuppressionRow<number>[]
      return rows.map((row) => Object.assign(row, { sourceId: sources.id(row.source) }))
    },
    areNamed: () => database.prepare('SELECT 1 FROM deletions WHERE pseudonyms = 0 LIMIT 1').get() !== undefined,
    nextNamed: (after, beforeMs) =>
      database
        .prepare(`${REQUESTS} WHERE pseudonyms = 0 AND num > ? AND (ended IS NULL OR created_at < ?) ORDER BY num LIMIT 1`)
        .all(after, beforeMs)
        .map(deletionRow)[0],
    end(deletion, ended) {
      database.prepare('UPDATE deletions SET ended = ? WHERE num = ?').run(ended, deletion)
    },
    rename(deletion, userIds, pseudonyms) {
      const rename = database.prepare('UPDATE deletion_targets SET user_id = ? WHERE deletion = ? AND user_id = ?')
      overwriting(database, () => {
        database.prepare('UPDATE deletions SET user_ids = ?, pseudonyms = 1 WHERE num = ?').run(JSON.stringify(pseudonyms), deletion)
        for (const [at, userId] of userIds.entries()) rename.run(pseudonyms[at] as string, deletion, userId)
      })
    },
  }
}

function deletionRow(row: object): DeletionRow<number> {
  const { suppress, isPurged } = row as { suppress: number; isPurged: number }
  return Object.assign(row, { suppress: suppress === 1, isPurged: isPurged === 1 }) as DeletionRow<number>
}
