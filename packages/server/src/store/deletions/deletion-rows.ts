// The row port of deletion requests and suppressions.

import { type Awaitable, isTrue, type RowOrder, type Sql, type SqlValue } from '../encoding/sql.ts'
import type { DeletionSummary, FinalStateName, RowId, Suppression, SuppressionFilter } from '../store.ts'

export interface DeletionRow<Id extends RowId> extends Pick<DeletionSummary, 'id' | 'createdAtMs' | 'suppress' | 'purged'> {
  num: Id
  /** JSON that is not parsed, because a page may skip many requests, each with thousands of users. */
  userIds: string
  /** A list of row ids, as JSON. */
  sources: string
  isPurged: boolean
  ended: 'finished' | 'failed' | null
}

/** A delete message is alone in its segment, so counting its attempts shows how its delivery ended. */
export interface TargetProgress {
  /** How the delivery ended, recorded when retention drops its attempts. */
  final: FinalStateName | null
  attempts: number
  delivered: number
  failed: number
}

export interface TargetRow<Id extends RowId> extends TargetProgress {
  userId: string
  source: Id
  destinationId: string
  origin: Id
}

export interface SuppressionRow<Id extends RowId> extends Suppression {
  source: Id
}

export interface DeletionRows<Id extends RowId> {
  readonly order: RowOrder<Id>
  /** Newest first, starting at `last`. */
  newest(last: Id, limit: number): Awaitable<readonly DeletionRow<Id>[]>
  byId(id: string): Awaitable<DeletionRow<Id> | undefined>
  /** In the order of `sources`. */
  sourceIds(sources: readonly Id[]): Awaitable<readonly string[]>
  /** The number of targets, by source and progress. */
  progress(deletion: Id): Awaitable<readonly (TargetProgress & { source: Id; count: number })[]>
  /** Ordered by destination. */
  targets(deletion: Id, userIds: readonly string[]): Awaitable<readonly TargetRow<Id>[]>
  /** Ordered by source and user, starting at `source` and `userId`. */
  suppressions(filter: SuppressionFilter, source: Id, userId: string, limit: number): Awaitable<readonly SuppressionRow<Id>[]>
  /** Whether any request still has user ids instead of pseudonyms. */
  hasUserIds(): Awaitable<boolean>

  /** The first request after `after` that still has user ids, and that has not ended or was created before `beforeMs`. */
  nextWithUserIds(after: Id, beforeMs: number): Awaitable<DeletionRow<Id> | undefined>
  end(deletion: Id, ended: 'finished' | 'failed'): Awaitable<void>
  /** Replaces each user by the pseudonym at the same index. */
  replaceUserIds(deletion: Id, userIds: readonly string[], pseudonyms: readonly string[]): Awaitable<void>
}

const REQUESTS = `
  SELECT num, id, created_at AS "createdAtMs", suppress, user_ids AS "userIds", sources, purged,
         purge_cursor >= purge_end AS "isPurged", ended
  FROM deletions`

type SharedRows = 'order' | 'newest' | 'byId' | 'hasUserIds' | 'nextWithUserIds' | 'end'

export function deletionRows<Id extends RowId>(sql: Sql<Id>, own: Omit<DeletionRows<Id>, SharedRows>): DeletionRows<Id> {
  const requests = async (where: string, values: readonly SqlValue[]): Promise<DeletionRow<Id>[]> => {
    const rows = await sql.all<DeletionRow<Id>>(`${REQUESTS} ${where}`, values)
    return rows.map((row) => Object.assign(row, { suppress: isTrue(row.suppress), isPurged: isTrue(row.isPurged) }))
  }
  return {
    ...own,
    order: sql.order,
    newest: (last, limit) => requests('WHERE num <= ? ORDER BY num DESC LIMIT ?', [last, limit]),
    byId: async (id) => (await requests('WHERE id = ?', [sql.text(id)]))[0],
    hasUserIds: async () => (await sql.all('SELECT 1 FROM deletions WHERE NOT pseudonyms LIMIT 1')).length > 0,
    // Skips a request that another node is processing.
    nextWithUserIds: async (after, beforeMs) =>
      (
        await requests(
          `WHERE NOT pseudonyms AND num > ? AND (ended IS NULL OR created_at < ?) ORDER BY num LIMIT 1 ${sql.lock('FOR UPDATE SKIP LOCKED')}`,
          [after, beforeMs],
        )
      )[0],
    end: async (deletion, ended) => void (await sql.run('UPDATE deletions SET ended = ? WHERE num = ?', [ended, deletion])),
  }
}
