// The row port of the audit log.

import type { Awaitable, RowOrder } from '../encoding/row-port.ts'
import type { RowId } from '../port/model.ts'

export interface AuditRow<Id extends RowId> {
  id: Id
  atMs: number
  actorId: string
  actorName: string
  action: string
  subject: string | null
  /** The size of `before` and `after` together, in bytes. */
  bytes: number
}

/** The values before and after a change, as JSON. */
export interface AuditTexts<Id extends RowId> {
  id: Id
  before: string | null
  after: string | null
}

export interface AuditRows<Id extends RowId> {
  readonly order: RowOrder<Id>
  /** Newest first, with row ids from `first` to `last`. With a subject, only its entries. */
  newest(subject: string | undefined, first: Id, last: Id, limit: number): Awaitable<readonly AuditRow<Id>[]>
  texts(ids: readonly Id[]): Awaitable<readonly AuditTexts<Id>[]>
}
