// The audit log: who did what. A change that a person makes has an Audit, so that the entry is written in the transaction of the change.

import type { JsonObject } from '@switchyard/protocol'
import type { TimeRange } from './pages.ts'

/** The control token that makes a change. */
export interface Actor {
  id: string
  name: string
}

export interface NewAuditEntry {
  actor: Actor
  /** The kind of resource and what was done to it, for example `source.update`. */
  action: string
  /** The id of the resource. */
  subject: string | null
  /** The resource as the API shows it, without secrets. `before` is null if it was created, `after` is null if it was deleted. */
  before: JsonObject | null
  after: JsonObject | null
}

export interface AuditEntry extends NewAuditEntry {
  id: string
  atMs: number
}

/** Returns the audit entry of a change. The entry is written in the transaction of the change, and only if something was changed. */
export type Audit<T> = (after: T | null, before: T | null) => NewAuditEntry

export interface AuditFilter extends TimeRange {
  actorId?: string | undefined
  action?: string | undefined
  subject?: string | undefined
}
