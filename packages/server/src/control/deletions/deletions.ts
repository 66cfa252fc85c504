// Deletion requests and the users whose new messages are dropped. What is written down of them for long names no user: a
// request by its id, a user by pseudonym.

import { isoTime, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import { array, boolean, integer, invalidField, nullable, object, oneOf, optional, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type {
  Configuration,
  DeletionDetail,
  DeletionState,
  DeletionSummary,
  DeletionTarget,
  NewAuditEntry,
  NewDeletion,
  NewSuppressions,
} from '../../store/store.ts'
import { audited } from '../access/audit.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../query.ts'
import { type ControlParts, type Route, route } from '../route.ts'
import { checkSources } from '../sources/sources.ts'

/** Rows that one request may write: it does so in one commit, and calls wait for it. */
const MAX_ROWS = 50_000

const STATES = ['pending', 'running', 'finished', 'failed'] as const satisfies readonly DeletionState[]

const USERS = {
  userIds: array(string({ min: 1, max: MAX_MESSAGE_BYTES }), { min: 1, max: 5_000, description: 'One named twice counts once.' }),
  sourceIds: optional(
    array(string({ min: 1, max: 100 }), { min: 1, max: 1_000, description: 'Only of these sources; of all when left out.' }),
  ),
}
const NEW_DELETION = object({
  ...USERS,
  suppress: withDefault(boolean({ description: 'Whether new messages of these users are dropped from now on.' }), false),
})
const NEW_SUPPRESSIONS = object(USERS)

const FILTERS = {
  state: optional(oneOf(STATES, { description: 'In this state.' })),
  userId: optional(string({ min: 1, description: 'The id of the user. Also finds requests that show the user by pseudonym.' })),
}

const SUMMARY_FIELDS = {
  id: string(),
  createdAt: time(),
  suppress: boolean(),
  userCount: integer(),
  sourceIds: array(string()),
  state: oneOf(STATES),
  purged: integer({ description: 'Stored messages removed so far.' }),
}
const TARGET = object({
  userId: string({ description: 'A pseudonym once the request has ended and is older than the retention time.' }),
  sourceId: string(),
  destinationId: nullable(string({ description: 'Null: the source has no enabled destination, so there is nobody to tell.' })),
  deliveryId: nullable(string()),
  state: oneOf(STATES),
})
const DELETION_SUMMARY = object(SUMMARY_FIELDS, { title: 'DeletionSummary' })
const DELETION = object({
  ...SUMMARY_FIELDS,
  targetCounts: object({ pending: integer(), running: integer(), finished: integer(), failed: integer() }),
  targets: array(TARGET, { description: 'The first of them.' }),
  nextTargets: nullable(string({ description: '`cursor` of the rest, at /deletions/{id}/targets; null when all are here.' })),
})

const SUPPRESSION = object({ userId: string(), sourceId: string(), since: time() }, { title: 'Suppression' })
const SUPPRESSION_FILTERS = {
  userId: optional(string({ min: 1, description: 'Of this user.' })),
  sourceId: optional(string({ min: 1, description: 'Of this source.' })),
}
const REMOVAL_QUERY = object({
  userId: string({ min: 1, description: 'Whose messages are taken again.' }),
  sourceId: optional(string({ min: 1, description: 'Only of this source; of all when left out.' })),
})

export function deletionRoutes({ store }: ControlParts): Route[] {
  /** One user is never too many, whatever there is to write: there would be no way to ask for less. */
  function checkSize(
    { sources, destinations }: Configuration,
    users: number,
    sourceIds: readonly string[] | null,
    what: 'deletion' | 'suppression',
  ): void {
    const concerned = new Set(sourceIds ?? sources.keys())
    let perUser = concerned.size
    if (what === 'deletion') {
      for (const { enabled, sourceIds: of } of destinations.values()) if (enabled) perUser += of.filter((id) => concerned.has(id)).length
    }
    if (users === 1 || users * perUser <= MAX_ROWS) return
    const most = Math.max(1, Math.floor(MAX_ROWS / perUser))
    throw invalidField(
      'userIds',
      `has too many users for one request with this number of sources and destinations. Send at most ${most} users per request`,
    )
  }

  /** What a list of targets is paged by is good for that deletion alone. */
  const targetList = (id: string): string => `targets of ${id}`

  function detailView(deletion: DeletionDetail) {
    const { data: targets, next: nextTargets } = pageAnswer(targetList(deletion.id), deletion.firstTargets, targetView)
    return { ...summaryView(deletion), targetCounts: { ...deletion.targetCounts }, targets, nextTargets }
  }

  return [
    route({
      method: 'GET',
      path: '/deletions',
      summary: 'Deletion requests, newest first',
      query: listQuery(FILTERS),
      status: 200,
      answer: listAnswer(DELETION_SUMMARY),
      errors: ['invalid_cursor'],
      async handle({ query }) {
        const { state, userId } = query
        return pageAnswer('deletions', await store.deletions.list({ state, userId }, pageRequest('deletions', query)), summaryView)
      },
    }),
    route({
      method: 'POST',
      path: '/deletions',
      summary: 'Deletes the stored messages of users and tells the webhooks of their sources',
      body: NEW_DELETION,
      status: 202,
      answer: DELETION,
      async handle({ body, actor }) {
        const request = {
          userIds: [...new Set(body.userIds)],
          sourceIds: body.sourceIds === undefined ? null : [...new Set(body.sourceIds)],
          suppress: body.suppress,
        }
        const checked = (configuration: Configuration): NewDeletion => {
          checkSources(configuration, body.sourceIds)
          checkSize(configuration, request.userIds.length, request.sourceIds, 'deletion')
          return request
        }
        return detailView(await store.deletions.create(checked, audited(actor, 'deletion.create', requestView)))
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
        const deletion = await store.deletions.one(params['id'] ?? '')
        if (deletion === undefined) throw new ApiError('deletion_not_found')
        return detailView(deletion)
      },
    }),
    route({
      method: 'GET',
      path: '/deletions/:id/targets',
      summary: 'The state of a deletion request per user, source and destination',
      query: listQuery(FILTERS),
      status: 200,
      answer: listAnswer(TARGET),
      errors: ['deletion_not_found', 'invalid_cursor'],
      async handle({ params, query }) {
        const id = params['id'] ?? ''
        const { state, userId } = query
        const page = await store.deletions.targets(id, { state, userId }, pageRequest(targetList(id), query))
        // A request always has targets, unless it is the filter that leaves none.
        if (page.data.length === 0 && (await store.deletions.one(id)) === undefined) throw new ApiError('deletion_not_found')
        return pageAnswer(targetList(id), page, targetView)
      },
    }),
    route({
      method: 'GET',
      path: '/suppressions',
      summary: 'Users whose new messages are dropped',
      query: listQuery(SUPPRESSION_FILTERS),
      status: 200,
      answer: listAnswer(SUPPRESSION),
      errors: ['invalid_cursor'],
      async handle({ query }) {
        const { userId, sourceId } = query
        const page = await store.deletions.suppressions({ userId, sourceId }, pageRequest('suppressions', query))
        return pageAnswer('suppressions', page, (row) => ({ userId: row.userId, sourceId: row.sourceId, since: isoTime(row.since) }))
      },
    }),
    route({
      method: 'POST',
      path: '/suppressions',
      summary: 'Drops new messages of users from now on, and deletes nothing',
      body: NEW_SUPPRESSIONS,
      status: 200,
      answer: object({ added: integer({ description: 'How many pairs of user and source were not suppressed before.' }) }),
      async handle({ body, actor }) {
        const userIds = [...new Set(body.userIds)]
        const subject = userIds.length === 1 ? await store.deletions.pseudonym(userIds[0] as string) : null
        const sourceIds = body.sourceIds === undefined ? null : [...new Set(body.sourceIds)]
        const entry = { actor, action: 'suppression.create', subject, before: null, after: { userCount: userIds.length, sourceIds } }
        const checked = (configuration: Configuration): NewSuppressions => {
          checkSources(configuration, body.sourceIds)
          checkSize(configuration, userIds.length, sourceIds, 'suppression')
          return { userIds, sourceIds }
        }
        return { added: await store.deletions.suppress(checked, (): NewAuditEntry => entry) }
      },
    }),
    route({
      method: 'DELETE',
      path: '/suppressions',
      summary: 'Accepts the messages of a user again',
      query: REMOVAL_QUERY,
      status: 200,
      answer: object({ removed: integer() }),
      async handle({ query, actor }) {
        const sourceIds = query.sourceId === undefined ? null : [query.sourceId]
        const subject = await store.deletions.pseudonym(query.userId)
        const entry = { actor, action: 'suppression.delete', subject, before: { userCount: 1, sourceIds }, after: null }
        return { removed: await store.deletions.unsuppress(query.userId, query.sourceId ?? null, (): NewAuditEntry => entry) }
      },
    }),
  ]
}

function summaryView({ id, createdAtMs, suppress, userCount, sourceIds, state, purged }: DeletionSummary) {
  return { id, createdAt: isoTime(createdAtMs), suppress, userCount, sourceIds: [...sourceIds], state, purged }
}

function targetView({ userId, sourceId, destinationId, deliveryId, state }: DeletionTarget) {
  return { userId, sourceId, destinationId, deliveryId, state }
}

function requestView({ id, userIds, sourceIds, suppress }: NewDeletion & { id: string }) {
  return { id, userCount: userIds.length, sourceIds: sourceIds === null ? null : [...sourceIds], suppress }
}
