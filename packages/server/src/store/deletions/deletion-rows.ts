// The row port of deletion requests and suppressions.

import type { Awaitable, RowOrder } from '../encoding/row-port.ts'
import type { DeletionSummary, Suppression, SuppressionFilter } from '../port/deletions.ts'
import type { FinalStateName, RowId } from '../port/model.ts'

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
