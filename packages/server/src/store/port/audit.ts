// The audit log: who did what. A change that a person makes carries an Audit, so that the entry is written in the transaction of the change.

import type { JsonObject } from '@switchyard/protocol'
import type { TimeRange } from './pages.ts'

/** Who makes a change: a control token. */
export interface Actor {
  id: string
  name: string
}

export interface NewAuditEntry {
  actor: Actor
  /** The thing and what was done to it: `source.update`. */
  action: string
  /** The thing's id. */
  subject: string | null
  /** As answers show it, so without secrets; null where there was nothing before, or is nothing after. */
  before: JsonObject | null
  after: JsonObject | null
}

export interface AuditEntry extends NewAuditEntry {
  id: string
  atMs: number
}

/** Says what to write down about a change. It is written in the change's own transaction, and not if nothing was changed. */
export type Audit<T> = (after: T | null, before: T | null) => NewAuditEntry

export interface AuditFilter extends TimeRange {
  actorId?: string | undefined
  action?: string | undefined
  subject?: string | undefined
}
