// The rows of deletion requests and suppressions, as an adapter gives them.

import type { Awaitable, RowOrder } from '../encoding/row-port.ts'
import type { DeletionSummary, Suppression, SuppressionFilter } from '../port/deletions.ts'
import type { FinalStateName, RowId } from '../port/model.ts'

export interface DeletionRow<Id extends RowId> extends Pick<DeletionSummary, 'id' | 'createdAtMs' | 'suppress' | 'purged'> {
  num: Id
  /** As JSON: a page may pass over many requests, each with thousands of users. */
  userIds: string
  /** As JSON. */
  sources: string
  isPurged: boolean
  ended: 'finished' | 'failed' | null
}

/** A delete message is alone in its segment, so the counts of its attempts say how its delivery ended. */
export interface TargetProgress {
  /** How the delivery ended, once retention has dropped its attempts. */
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
  /** Newest first, from `last` on. */
  newest(last: Id, limit: number): Awaitable<readonly DeletionRow<Id>[]>
  byId(id: string): Awaitable<DeletionRow<Id> | undefined>
  /** In the order of `sources`. */
  sourceIds(sources: readonly Id[]): Awaitable<readonly string[]>
  /** How many targets of each source have made which progress. */
  progress(deletion: Id): Awaitable<readonly (TargetProgress & { source: Id; count: number })[]>
  /** In the order of their destinations. */
  targets(deletion: Id, userIds: readonly string[]): Awaitable<readonly TargetRow<Id>[]>
  /** Ordered by source and user, beginning with this source and user. */
  suppressions(filter: SuppressionFilter, source: Id, userId: string, limit: number): Awaitable<readonly SuppressionRow<Id>[]>
  /** Whether any request has users by their ids. */
  areNamed(): Awaitable<boolean>

  /** The first request after `after` that has users by their ids, and that has not ended or was created before `beforeMs`. */
  nextNamed(after: Id, beforeMs: number): Awaitable<DeletionRow<Id> | undefined>
  end(deletion: Id, ended: 'finished' | 'failed'): Awaitable<void>
  /** Replaces each user by the pseudonym in the same place. */
  rename(deletion: Id, userIds: readonly string[], pseudonyms: readonly string[]): Awaitable<void>
}
