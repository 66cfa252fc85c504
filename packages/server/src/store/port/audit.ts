// The audit log: who did what. A change that a person makes has an Audit, so that the entry is written in the transaction of the change.

import type { JsonObject } from '@switchyard/protocol'
import type { TokenOwner } from '../../model/configuration.ts'
import type { TimeRange } from './pages.ts'

export type ActorType = 'person' | 'token' | 'service'

/** Who makes a change. */
export interface Actor {
  id: string
  name: string
  /** Default: `token`. */
  type?: ActorType
  /** The person to whom a token belongs. */
  owner?: Pick<TokenOwner, 'subject' | 'email'> | null
  /** Only a person has these. */
  subject?: string
  email?: string | null
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
  /** The sources that the change concerns. Missing or null: none, or all of them; then only callers with all sources see the entry. */
  sources?: readonly string[] | null
}

export interface AuditEntry extends NewAuditEntry {
  id: string
  atMs: number
  sources: readonly string[] | null
}

/** Returns the audit entry of a change. The entry is written in the transaction of the change, and only if something was changed. */
export type Audit<T> = (after: T | null, before: T | null) => NewAuditEntry

export interface AuditFilter extends TimeRange {
  actorId?: string | undefined
  action?: string | undefined
  subject?: string | undefined
  /** Only entries that concern at least one source, and no other source than these. */
  sourceIds?: readonly string[] | undefined
}
