// The route that lists the audit log. Its entries are made in routes/audit-entries.ts.

import type { JsonObject } from '@switchyard/protocol'
import { queryTime } from '../../api/query-values.ts'
import { anyObject, nullable, object, oneOf, optional, string, time } from '../../api/schema.ts'
import { maskedWriteKey } from '../../api/write-key-mask.ts'
import type { AuditEntry, Role } from '../../store/store.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const ACTOR = object({
  id: string({ description: 'The id of the person or of the token; `service` if the service made the change itself.' }),
  name: string({ description: 'The name of the person or of the token at that time.' }),
  type: oneOf(['person', 'token', 'service']),
  subject: optional(string({ description: 'The id of the person at the identity provider; only for a person.' })),
  email: optional(nullable(string({ description: 'Only for a person.' }))),
  owner: nullable(
    object({ subject: string(), email: nullable(string()) }, { description: 'The person to whom the token belonged; null if nobody.' }),
  ),
})
const ENTRY = object(
  {
    id: string(),
    at: time(),
    actor: ACTOR,
    action: string({ description: 'The kind of resource and the change, such as `source.update`.' }),
    subject: nullable(string({ description: 'The id of the resource; for a suppression, the pseudonym of the user.' })),
    before: nullable(anyObject({ description: 'The resource before the change; null if it was created.' })),
    after: nullable(anyObject({ description: 'The resource after the change; null if it was deleted.' })),
  },
  { title: 'AuditEntry', description: 'An entry of the audit log. It contains no secrets.' },
)

const FILTERS = {
  actor: optional(
    string({ min: 1, description: 'Only changes made by this actor. The value is the id of a person or of a control token.' }),
  ),
  action: optional(string({ min: 1, description: 'Only entries with this action, such as `source.update`.' })),
  subject: optional(string({ min: 1, description: 'Only entries about the resource with this id.' })),
  userId: optional(string({ min: 1, description: 'Only entries about the suppressions of this user.' })),
  from: optional(queryTime({ description: 'Only entries at this time or later.' })),
  to: optional(queryTime({ description: 'Only entries at this time or earlier.' })),
}

export function auditRoutes({ store }: ControlParts): Route[] {
  return [
    route('GET', '/audit', {
      summary: 'List audit log entries, newest first',
      description: 'If your access is limited to some sources, only entries that concern these sources and no others.',
      access: { role: 'viewer', sources: 'limited' },
      query: listQuery(FILTERS),
      answer: listAnswer(ENTRY),
      async handle({ query, role }) {
        const { actor: actorId, action, from: fromMs, to } = query
        const subject = query.userId === undefined ? query.subject : await store.deletions.pseudonym(query.userId)
        const filter = { actorId, action, subject, fromMs, toMs: to === undefined ? undefined : to - 1 }
        return pageAnswer('audit', await store.history.audit(filter, pageRequest('audit', query)), (entry) => entryView(entry, role))
      },
    }),
  ]
}

function entryView(entry: AuditEntry, role: Role) {
  return role !== 'viewer' ? entry : { ...entry, before: withoutWriteKeys(entry.before), after: withoutWriteKeys(entry.after) }
}

/** The state of a source as viewers see it. No other resource has a field of this name. */
function withoutWriteKeys(state: JsonObject | null): JsonObject | null {
  const keys = state?.['writeKeys']
  return Array.isArray(keys) ? { ...state, writeKeys: keys.map((key) => maskedWriteKey(String(key))) } : state
}
