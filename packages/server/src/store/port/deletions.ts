// Deletion requests, and users whose new messages are dropped.

import type { Audit } from './audit.ts'
import type { FromStored } from './from-stored.ts'
import type { Page, PageRequest } from './pages.ts'

export interface NewDeletion {
  userIds: readonly string[]
  /** Null: every source there is. */
  sourceIds: readonly string[] | null
  suppress: boolean
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
  userId?: string | undefined
}

export interface DeletionTarget {
  /** As it was given; of a request that ended before the retention time, its pseudonym. */
  userId: string
  sourceId: string
  /** Null: the source has no enabled destination, and there is only the purge. */
  destinationId: string | null
  deliveryId: string | null
  state: DeletionState
}

export interface DeletionDetail extends DeletionSummary {
  /** How many of its targets are in each state. */
  targetCounts: Record<DeletionState, number>
  /** The first 1,000 of them, as of the same moment. */
  firstTargets: Page<DeletionTarget>
}

/** A user whose new messages a source drops. */
export interface Suppression {
  userId: string
  sourceId: string
  since: number
}

export interface NewSuppressions {
  userIds: readonly string[]
  /** Null: every source there is. */
  sourceIds: readonly string[] | null
}

export interface SuppressionFilter {
  userId?: string | undefined
  sourceId?: string | undefined
}

export interface DeletionStore {
  create(deletion: FromStored<NewDeletion>, audit?: Audit<NewDeletion & { id: string }>): Promise<DeletionDetail>
  list(filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionSummary>>
  one(id: string): Promise<DeletionDetail | undefined>
  /** Per user, source and destination; none when there is no such deletion. */
  targets(id: string, filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionTarget>>
  suppressions(filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>>
  /** Drops the users' new messages from now on; says how many were not dropped before. Rejects for a source that is not there. */
  suppress(suppressions: FromStored<NewSuppressions>, audit?: Audit<NewSuppressions>): Promise<number>
  unsuppress(userId: string, sourceId: string | null, audit?: Audit<{ userId: string; sourceId: string | null }>): Promise<number>
  /** The name under which a user stands in what is kept for long: the audit log, and deletion requests that ended long ago. */
  pseudonym(userId: string): Promise<string>
}
