// Routes for the queries that people save for a lake. Only for callers with all sources of the lake, because a query may name any of its tables.

import { array, nullable, object, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { MAX_SAVED_QUERIES, readSavedQueries, removeQuery, type SavedQuery, saveQuery } from '../../store/port/saved-queries.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { storedWarehouse } from '../warehouses/tables.ts'

const MAX_NAME = 100
const MAX_QUERY = 10_000

const NEW_QUERY = object({
  name: string({
    min: 1,
    max: MAX_NAME,
    check: (text) => (text.trim() !== text || /\p{Cc}/u.test(text) ? 'must not have control characters, or a space at either end' : null),
    description: 'A query that has this name already is replaced.',
  }),
  query: string({ min: 1, max: MAX_QUERY, description: 'Not checked for errors until it is run.' }),
})
const QUERY = object(
  {
    id: string(),
    name: string(),
    query: string(),
    savedAt: time(),
    savedBy: object({ id: string(), name: string() }),
  },
  { title: 'SavedQuery' },
)

const ACCESS = { role: 'editor', sources: 'limited', subject: 'destination', whole: true } as const

export function savedQueryRoutes({ store, clock }: ControlParts): Route[] {
  return [
    route('GET', '/destinations/:id/queries', {
      summary: 'List the saved queries of a warehouse',
      description: `Sorted by name. A warehouse has at most ${MAX_SAVED_QUERIES}.`,
      access: ACCESS,
      answer: object({ data: array(QUERY), next: nullable(string({ description: 'Always null: the list is complete.' })) }),
      errors: ['destination_not_found', 'not_a_warehouse'],
      async handle({ params }) {
        const { id } = storedWarehouse(store, params['id'])
        return { data: (await readSavedQueries(store.documents, id)).map(shown), next: null }
      },
    }),
    route('POST', '/destinations/:id/queries', {
      summary: 'Save a query of a warehouse',
      description: 'Everybody who may query all of the warehouse sees it on the page SQL.',
      access: ACCESS,
      body: NEW_QUERY,
      answer: QUERY,
      errors: ['destination_not_found', 'not_a_warehouse', 'too_many_saved_queries'],
      async handle({ params, body: { name, query }, actor }) {
        const { id, sourceIds } = storedWarehouse(store, params['id'])
        const savedBy = { id: actor.id, name: actor.name }
        const saved = await saveQuery(store.documents, id, { name, query, savedAtMs: clock.wallMs(), savedBy })
        if (saved === null) throw new ApiError('too_many_saved_queries')
        const after = audited(id, saved.after)
        const before = saved.before === null ? null : audited(id, saved.before)
        await store.history.noteAudit({ actor, action: 'sql.save', subject: id, before, after, sources: sourceIds })
        return shown(saved.after)
      },
    }),
    route('DELETE', '/destinations/:id/queries/:queryId', {
      summary: 'Remove a saved query',
      access: ACCESS,
      status: 204,
      errors: ['destination_not_found', 'not_a_warehouse', 'saved_query_not_found'],
      async handle({ params, actor }) {
        const { id, sourceIds } = storedWarehouse(store, params['id'])
        const removed = await removeQuery(store.documents, id, params['queryId'] ?? '')
        if (removed === null) throw new ApiError('saved_query_not_found')
        await recordAction(store.history, { actor, action: 'sql.remove', subject: id, after: audited(id, removed), sources: sourceIds })
      },
    }),
  ]
}

function shown({ id, name, query, savedAtMs, savedBy }: SavedQuery) {
  return { id, name, query, savedAt: new Date(savedAtMs).toISOString(), savedBy: { id: savedBy.id, name: savedBy.name } }
}

function audited(destinationId: string, { name, query }: SavedQuery) {
  return { destinationId, name, query }
}
