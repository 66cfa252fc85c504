// Deletion requests and the users whose new messages are dropped.

import { isoTime, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import { ApiError } from '../errors.ts'
import type { DeletionDetail, DeletionState, DeletionSummary } from '../store/store.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from './query.ts'
import { type ControlParts, type Route, route } from './route.ts'
import { array, boolean, integer, invalidField, nullable, object, oneOf, optional, string, time, withDefault } from './schema.ts'

const STATES = ['pending', 'running', 'finished', 'failed'] as const satisfies readonly DeletionState[]

const NEW_DELETION = object({
  userIds: array(string({ min: 1, max: MAX_MESSAGE_BYTES }), { min: 1, max: 5_000, description: 'One named twice is deleted once.' }),
  sourceIds: optional(
    array(string({ min: 1, max: 100 }), { min: 1, max: 1_000, description: 'Only of these sources; of all when left out.' }),
  ),
  suppress: withDefault(boolean({ description: 'Whether new messages of these users are dropped from now on.' }), false),
})

const SUMMARY_FIELDS = {
  id: string(),
  createdAt: time(),
  suppress: boolean(),
  userCount: integer(),
  sourceIds: array(string()),
  state: oneOf(STATES),
  purged: integer({ description: 'Stored messages removed so far.' }),
}
const DELETION_SUMMARY = object(SUMMARY_FIELDS)
const DELETION = object({
  ...SUMMARY_FIELDS,
  targets: array(
    object({
      userId: string(),
      sourceId: string(),
      destinationId: nullable(string({ description: 'Null: the source has no enabled destination, so there is nobody to tell.' })),
      deliveryId: nullable(string()),
      state: oneOf(STATES),
    }),
  ),
})

const SUPPRESSION = object({ userId: string(), sourceId: string(), since: time() })
const REMOVAL_QUERY = object({
  userId: string({ min: 1 }),
  sourceId: optional(string({ min: 1, description: 'Only of this source; of all when left out.' })),
})

export function deletionRoutes({ store }: ControlParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/deletions',
      summary: 'Deletion requests, newest first',
      query: listQuery({}),
      status: 200,
      answer: listAnswer(DELETION_SUMMARY),
      errors: ['invalid_cursor'],
      handle: async ({ query }) => pageAnswer('deletions', await store.control.deletions(pageRequest('deletions', query)), summaryView),
    }),
    route({
      method: 'POST',
      path: '/deletions',
      summary: 'Deletes the stored messages of users and tells the webhooks of their sources',
      body: NEW_DELETION,
      status: 202,
      answer: DELETION,
      async handle({ body }) {
        const { sources } = store.configuration()
        for (const [index, id] of (body.sourceIds ?? []).entries()) {
          if (!sources.has(id)) throw invalidField(`sourceIds[${index}]`, 'is not the id of a source')
        }
        const deletion = await store.control.createDeletion({
          userIds: [...new Set(body.userIds)],
          sourceIds: body.sourceIds === undefined ? null : [...new Set(body.sourceIds)],
          suppress: body.suppress,
        })
        return detailView(deletion)
      },
    }),
    route({
      method: 'GET',
      path: '/deletions/:id',
      summary: 'One deletion request, with its state per user, source and destination',
      status: 200,
      answer: DELETION,
      errors: ['deletion_not_found'],
      async handle({ params }) {
        const deletion = await store.control.deletion(params['id'] ?? '')
        if (deletion === undefined) throw new ApiError('deletion_not_found')
        return detailView(deletion)
      },
    }),
    route({
      method: 'GET',
      path: '/suppressions',
      summary: 'Users whose new messages are dropped',
      query: listQuery({}),
      status: 200,
      answer: listAnswer(SUPPRESSION),
      errors: ['invalid_cursor'],
      async handle({ query }) {
        const page = await store.control.suppressions(pageRequest('suppressions', query))
        return pageAnswer('suppressions', page, ({ userId, sourceId, since }) => ({ userId, sourceId, since: isoTime(since) }))
      },
    }),
    route({
      method: 'DELETE',
      path: '/suppressions',
      summary: 'Takes the messages of a user again',
      query: REMOVAL_QUERY,
      status: 200,
      answer: object({ removed: integer() }),
      handle: async ({ query }) => ({ removed: await store.control.deleteSuppression(query.userId, query.sourceId ?? null) }),
    }),
  ]
}

function summaryView({ id, createdAtMs, suppress, userCount, sourceIds, state, purged }: DeletionSummary) {
  return { id, createdAt: isoTime(createdAtMs), suppress, userCount, sourceIds: [...sourceIds], state, purged }
}

function detailView(deletion: DeletionDetail) {
  const targets = deletion.targets.map(({ userId, sourceId, destinationId, deliveryId, state }) => {
    return { userId, sourceId, destinationId, deliveryId, state }
  })
  return { ...summaryView(deletion), targets }
}
