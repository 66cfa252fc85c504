// Routes for the queries that people save for a lake. Only for callers with all sources of the lake, because a query may name any of its tables. A query
// that was saved when the lake had tables of more sources exists only for callers who have these sources, too.

import { array, nullable, object, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { MAX_SAVED_QUERIES, readSavedQueries, removeQuery, type SavedQuery, saveQuery } from '../../store/port/saved-queries.ts'
import type { SourceScope } from '../../store/store.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { sourcesWithTables, storedWarehouse } from '../warehouses/tables.ts'

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
      async handle({ params, sources }) {
        const { id } = storedWarehouse(store, params['id'])
        return { data: (await readSavedQueries(store.documents, id)).filter(isFor(sources)).map(shown), next: null }
      },
    }),
    route('POST', '/destinations/:id/queries', {
      summary: 'Save a query of a warehouse',
      description: 'Everybody who may query all of the warehouse sees it on the page SQL.',
      access: ACCESS,
      body: NEW_QUERY,
      answer: QUERY,
      errors: ['destination_not_found', 'not_a_warehouse', 'saved_query_name_taken', 'too_many_saved_queries'],
      async handle({ params, body: { name, query }, actor, sources }) {
        const lake = storedWarehouse(store, params['id'])
        const { id } = lake
        const sourceIds = await sourcesWithTables(store, lake, sources)
        const savedBy = { id: actor.id, name: actor.name }
        const saved = await saveQuery(store.documents, id, { name, query, savedAtMs: clock.wallMs(), savedBy, sourceIds }, isFor(sources))
        if (saved === 'full') throw new ApiError('too_many_saved_queries')
        if (saved === 'taken') throw new ApiError('saved_query_name_taken')
        const after = audited(id, saved.after)
        const before = saved.before === null ? null : audited(id, saved.before)
        const earlier = saved.before === null ? [] : saved.before.sourceIds
        const concerned = earlier === null ? null : [...new Set([...sourceIds, ...earlier])]
        await store.history.noteAudit({ actor, action: 'sql.save', subject: id, before, after, sources: concerned })
        return shown(saved.after)
      },
    }),
    route('DELETE', '/destinations/:id/queries/:queryId', {
      summary: 'Remove a saved query',
      access: ACCESS,
      status: 204,
      errors: ['destination_not_found', 'not_a_warehouse', 'saved_query_not_found'],
      async handle({ params, actor, sources }) {
        const { id } = storedWarehouse(store, params['id'])
        const removed = await removeQuery(store.documents, id, params['queryId'] ?? '', isFor(sources))
        if (removed === null) throw new ApiError('saved_query_not_found')
        const after = audited(id, removed)
        await recordAction(store.history, { actor, action: 'sql.remove', subject: id, after, sources: removed.sourceIds })
      },
    }),
  ]
}

function isFor(sources: SourceScope) {
  return ({ sourceIds }: Pick<SavedQuery, 'sourceIds'>): boolean =>
    sources === 'all' || sourceIds?.every((id) => sources.includes(id)) === true
}

function shown({ id, name, query, savedAtMs, savedBy }: SavedQuery) {
  return { id, name, query, savedAt: new Date(savedAtMs).toISOString(), savedBy: { id: savedBy.id, name: savedBy.name } }
}

function audited(destinationId: string, { name, query }: SavedQuery) {
  return { destinationId, name, query }
}
