// The rows of the audit log, as an adapter gives them.

import type { Awaitable, RowOrder } from '../encoding/row-port.ts'
import type { RowId } from '../port/model.ts'

export interface AuditRow<Id extends RowId> {
  id: Id
  atMs: number
  actorId: string
  actorName: string
  action: string
  subject: string | null
  /** Bytes of what it says was there before and after. */
  bytes: number
}

/** What an entry says was there, as JSON. */
export interface AuditTexts<Id extends RowId> {
  id: Id
  before: string | null
  after: string | null
}

export interface AuditRows<Id extends RowId> {
  readonly order: RowOrder<Id>
  /** Newest first, with names from `first` to `last`, of a subject if one is given. */
  newest(subject: string | undefined, first: Id, last: Id, limit: number): Awaitable<readonly AuditRow<Id>[]>
  texts(ids: readonly Id[]): Awaitable<readonly AuditTexts<Id>[]>
}
