// Messages that a tracking plan holds back. They are stored and acknowledged like all others, but are owed to no destination until somebody
// releases them. A message leaves the quarantine exactly once: it is released or deleted, or it expires.

import type { Violation } from '@switchyard/protocol'
import type { Routing, RowId, SegmentContent } from '../../model/messages.ts'
import type { Audit } from './audit.ts'
import type { Page, PageRequest } from './pages.ts'

/** A message of a batch that is not sent anywhere until it is released. */
export interface NewQuarantined {
  /** The index of the message in the batch. */
  index: number
  planId: string
  /** At least one. All have the rule of the message. */
  violations: readonly Violation[]
}

export interface QuarantineFilter {
  sourceId?: string | undefined
  /** Only of these sources, in addition to the other conditions. Undefined: all sources. */
  sourceIds?: readonly string[] | undefined
  planId?: string | undefined
  /** A key of a rule: see `ruleKey`. */
  rule?: string | undefined
}

export interface QuarantinedMessage {
  /** `segment-index`, as in the history. */
  id: string
  segment: RowId
  index: number
  planId: string
  rule: string
  /** Only this message of its segment. Its item is null if it cannot be read. */
  content: SegmentContent
}

export interface ReleasedMessage {
  id: string
  /** Where the message is sent now. Indexes other than that of the message are ignored. */
  routing: Routing
}

/** What the audit entry of a release or a deletion can say. */
export interface QuarantineChange {
  ids: readonly string[]
}

export interface QuarantineStore {
  /** Newest first, unless `oldestFirst` is set. A page may be short although there are more. */
  list(filter: QuarantineFilter, page: PageRequest & { oldestFirst?: boolean }): Promise<Page<QuarantinedMessage>>
  /** Those of the ids that are in quarantine. */
  find(ids: readonly string[]): Promise<readonly QuarantinedMessage[]>
  /**
   * Creates the deliveries that the plans name, in one transaction with the end of the quarantine. Returns the ids of the messages that were
   * released: another process may have released or deleted the others. A destination that was deleted since the plan was made gets nothing.
   */
  release(messages: readonly ReleasedMessage[], audit?: Audit<QuarantineChange>): Promise<readonly string[]>
  /** The messages are never sent. They stay in the history until the retention time is over. Returns the ids of those that were in quarantine. */
  delete(ids: readonly string[], audit?: Audit<QuarantineChange>): Promise<readonly string[]>
  /** Deletes some of the messages that were received before a time, and records that they expired. Returns how many; 0 if none are left. */
  expire(beforeMs: number): Promise<number>
}
