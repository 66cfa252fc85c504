// What is written down about a change: who made it, and the thing before and after as answers show it. Views leave secrets
// out, and so do these. The entry is stored in the change's own transaction. Here too is how the log is read.

import { isoTime, type JsonObject } from '@switchyard/protocol'
import { anyObject, nullable, object, optional, string, time } from '../../api/schema.ts'
import type { Actor, Audit, AuditEntry, HistoryStore, NewAuditEntry } from '../../store/store.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest, queryTime } from '../query.ts'
import { type ControlParts, type Route, route } from '../route.ts'

/** `action` is the thing and what was done to it: `source.update`. */
export function audited<T extends { id: string }>(actor: Actor, action: string, view: (thing: T) => JsonObject): Audit<T> {
  const shown = (thing: T | null): JsonObject | null => (thing === null ? null : view(thing))
  return (after, before) => ({ actor, action, subject: (after ?? before)?.id ?? null, before: shown(before), after: shown(after) })
}

/** For what is done and changes nothing here, such as a test. */
export function recordAction(
  store: Pick<HistoryStore, 'noteAudit'>,
  { actor, action, subject, after }: Omit<NewAuditEntry, 'before'>,
): Promise<void> {
  return store.noteAudit({ actor, action, subject, before: null, after })
}

const ENTRY = object(
  {
    id: string(),
    at: time(),
    actor: object({ id: string({ description: 'Of the token.' }), name: string({ description: 'Of the token, at that time.' }) }),
    action: string({ description: 'The thing and what was done to it: source.update.' }),
    subject: nullable(string({ description: "The thing's id; of a suppression, the user's pseudonym." })),
    before: nullable(anyObject({ description: 'Null if there was no value before the change.' })),
    after: nullable(anyObject({ description: 'Null if there is no value after the change.' })),
  },
  { title: 'AuditEntry', description: 'Who did what, without secrets.' },
)

const FILTERS = {
  actor: optional(string({ min: 1, description: 'The id of a token.' })),
  action: optional(string({ min: 1, description: 'What was done: `source.update`.' })),
  subject: optional(string({ min: 1, description: 'The id of the thing that it was done to.' })),
  userId: optional(string({ min: 1, description: 'What was done to the suppressions of this user.' })),
  from: optional(queryTime({ description: 'At this time or later.' })),
  to: optional(queryTime({ description: 'At this time or earlier.' })),
}

export function auditRoutes({ store }: ControlParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/audit',
      summary: 'List audit log entries, newest first',
      query: listQuery(FILTERS),
      status: 200,
      answer: listAnswer(ENTRY),
      errors: ['invalid_cursor'],
      async handle({ query }) {
        const { actor: actorId, action, from: fromMs, to } = query
        const subject = query.userId === undefined ? query.subject : await store.deletions.pseudonym(query.userId)
        const filter = { actorId, action, subject, fromMs, toMs: to === undefined ? undefined : to - 1 }
        return pageAnswer('audit', await store.history.audit(filter, pageRequest('audit', query)), entryView)
      },
    }),
  ]
}

function entryView({ id, atMs, actor, action, subject, before, after }: AuditEntry) {
  return { id, at: isoTime(atMs), actor: { id: actor.id, name: actor.name }, action, subject, before, after }
}
