// Deletion requests, and users whose new messages are dropped.

import type { Audit } from './audit.ts'
import type { FromStored } from './from-stored.ts'
import type { Page, PageRequest } from './pages.ts'

export interface NewDeletion {
  userIds: readonly string[]
  /** Null means all sources. */
  sourceIds: readonly string[] | null
  suppress: boolean
  /** For each source that hashes user ids: the users by their hashes. Only these are sent to its destinations; both are purged. */
  hashedUserIds?: ReadonlyMap<string, readonly string[]>
}

export type DeletionState = 'pending' | 'running' | 'finished' | 'failed'

export interface DeletionSummary {
  id: string
  createdAtMs: number
  suppress: boolean
  userCount: number
  sourceIds: readonly string[]
  state: DeletionState
  /** Messages purged so far. */
  purged: number
}

export interface DeletionFilter {
  state?: DeletionState | undefined
  /** Only requests about no other source than these. */
  sourceIds?: readonly string[] | undefined
  userId?: string | undefined
}

export interface DeletionTarget {
  /** As it was given, or its pseudonym if the request is older than the retention time and has ended. */
  userId: string
  sourceId: string
  /** Null if the source had no enabled destination, so that its messages are only purged. */
  destinationId: string | null
  deliveryId: string | null
  state: DeletionState
}

export interface DeletionDetail extends DeletionSummary {
  /** The number of targets in each state. */
  targetCounts: Record<DeletionState, number>
  /** The first 1,000 targets, from the same snapshot. */
  firstTargets: Page<DeletionTarget>
}

/** A user whose new messages are dropped by a source. */
export interface Suppression {
  userId: string
  sourceId: string
  since: number
}

export interface NewSuppressions {
  userIds: readonly string[]
  /** Null means all sources. */
  sourceIds: readonly string[] | null
}

export interface SuppressionFilter {
  /** Only of these sources, in addition to the other conditions. Undefined: all sources. */
  sourceIds?: readonly string[] | undefined
  userId?: string | undefined
  sourceId?: string | undefined
}

export interface DeletionStore {
  create(deletion: FromStored<NewDeletion>, audit?: Audit<NewDeletion & { id: string }>): Promise<DeletionDetail>
  list(filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionSummary>>
  one(id: string): Promise<DeletionDetail | undefined>
  /** One target per user, source and destination. Empty if there is no such deletion. */
  targets(id: string, filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionTarget>>
  suppressions(filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>>
  /** Drops new messages of the users from now on. Returns how many pairs of user and source were not suppressed before. Rejects if a source does not exist. */
  suppress(suppressions: FromStored<NewSuppressions>, audit?: Audit<NewSuppressions>): Promise<number>
  /** For these sources, or for all if `sourceIds` is null. */
  unsuppress(
    userId: string,
    sourceIds: readonly string[] | null,
    audit?: Audit<{ userId: string; sourceIds: readonly string[] | null }>,
  ): Promise<number>
  /** The pseudonym that replaces a user's id in records that are kept for a long time: the audit log, and deletion requests that ended long ago. */
  pseudonym(userId: string): Promise<string>
}
