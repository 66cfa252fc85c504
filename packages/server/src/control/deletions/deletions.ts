// Routes for deletion requests and suppressed users. Records that are kept for a long time contain no user ids: the audit log refers to a
// deletion request by its id and to a user by a pseudonym.

import { MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import { DELETION_FILTERS, DELETION_STATES, SUPPRESSION_FILTERS } from '../../api/list-filters.ts'
import { array, boolean, integer, invalidField, nullable, object, oneOf, optional, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Privacy } from '../../ingest/privacy/privacy.ts'
import type { Configuration, DeletionDetail, NewAuditEntry, NewDeletion, NewSuppressions, Store } from '../../store/store.ts'
import { audited } from '../routes/audit-entries.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { checkSources } from '../sources/sources.ts'

/** The maximum number of rows that one request may write. It writes them in one commit, and other writes wait for it. */
const MAX_ROWS = 50_000

const USERS = {
  userIds: array(string({ min: 1, max: MAX_MESSAGE_BYTES }), {
    min: 1,
    max: 5_000,
    description: 'The ids of the users. Duplicates are ignored.',
  }),
  sourceIds: optional(
    array(string({ min: 1, max: 100 }), {
      min: 1,
      max: 1_000,
      description: 'Limits the request to these sources. If left out, it applies to all sources.',
    }),
  ),
}
const NEW_DELETION = object({
  ...USERS,
  suppress: withDefault(boolean({ description: 'If true, new messages of these users are dropped as well.' }), false),
})
const NEW_SUPPRESSIONS = object(USERS)

const SUMMARY_FIELDS = {
  id: string(),
  createdAt: time(),
  suppress: boolean({ description: 'Whether new messages of the users are dropped as well.' }),
  userCount: integer({ description: 'The number of user ids in the request, including their hashes for sources that hash user ids.' }),
  sourceIds: array(string()),
  state: oneOf(DELETION_STATES),
  purged: integer({ description: 'The number of stored messages deleted so far.' }),
}
const TARGET = object({
  userId: string({ description: 'The id of the user; a pseudonym once the request has ended and is older than the retention period.' }),
  sourceId: string(),
  destinationId: nullable(
    string({ description: 'The destination that receives the delete message; null if the source has no enabled destination.' }),
  ),
  deliveryId: nullable(string({ description: 'The id of the delivery of the delete message; null if there is none.' })),
  state: oneOf(DELETION_STATES),
})
const DELETION_SUMMARY = object(SUMMARY_FIELDS, { title: 'DeletionSummary' })
const DELETION = object({
  ...SUMMARY_FIELDS,
  targetCounts: object(
    { pending: integer(), running: integer(), finished: integer(), failed: integer() },
    { description: 'The number of targets in each state.' },
  ),
  targets: array(TARGET, { description: 'The first page of targets: one per user, source and destination.' }),
  nextTargets: nullable(
    string({ description: 'The `cursor` for the next page of targets at `/api/deletions/{id}/targets`; null if this is the last page.' }),
  ),
})

const SUPPRESSION = object(
  { userId: string(), sourceId: string(), since: time({ description: 'When the suppression started.' }) },
  { title: 'Suppression' },
)
const REMOVAL_QUERY = object({
  userId: string({ min: 1, description: 'The user whose messages are accepted again.' }),
  sourceId: optional(string({ min: 1, description: 'Ends the suppression for this source only. If left out, it ends for all sources.' })),
})

export function deletionRoutes({ store, privacy }: ControlParts): Route[] {
  return [...requestRoutes(store, privacy), ...suppressionRoutes(store)]
}

function requestRoutes(store: Store, privacy: Privacy): Route[] {
  return [
    route('GET', '/deletions', {
      summary: 'List deletion requests, newest first',
      access: { role: 'viewer', sources: 'limited' },
      query: listQuery(DELETION_FILTERS),
      answer: listAnswer(DELETION_SUMMARY),
      async handle({ query }) {
        const { state, userId } = query
        return pageAnswer('deletions', await store.deletions.list({ state, userId }, pageRequest('deletions', query)))
      },
    }),
    route('POST', '/deletions', {
      summary: 'Create a deletion request',
      access: { role: 'admin', sources: 'all' },
      description:
        'Deletes the stored messages of the users, and sends a `delete` message to the destinations of the sources so that receivers can delete their copies. If a source hashes user ids, send the original ids: the service also deletes the messages with their hashes, and sends the hashes to the destinations of that source.',
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
          return { ...request, hashedUserIds: hashedUserIds(privacy, configuration, request) }
        }
        return detailView(
          await store.deletions.create(
            checked,
            audited(actor, 'deletion.create', requestView, ({ sourceIds }) => sourceIds),
          ),
        )
      },
    }),
    route('GET', '/deletions/:id', {
      summary: 'Retrieve a deletion request, with its state per user, source and destination',
      access: { role: 'viewer', sources: 'limited', subject: 'deletion' },
      answer: DELETION,
      errors: ['deletion_not_found'],
      async handle({ params }) {
        const deletion = await store.deletions.one(params['id'] ?? '')
        if (deletion === undefined) throw new ApiError('deletion_not_found')
        return detailView(deletion)
      },
    }),
    route('GET', '/deletions/:id/targets', {
      summary: 'List the state of a deletion request per user, source and destination',
      access: { role: 'viewer', sources: 'limited', subject: 'deletion' },
      query: listQuery(DELETION_FILTERS),
      answer: listAnswer(TARGET),
      errors: ['deletion_not_found'],
      async handle({ params, query }) {
        const id = params['id'] ?? ''
        const { state, userId } = query
        const page = await store.deletions.targets(id, { state, userId }, pageRequest(targetList(id), query))
        // An existing request always has targets. The page can still be empty because of the filter.
        if (page.data.length === 0 && (await store.deletions.one(id)) === undefined) throw new ApiError('deletion_not_found')
        return pageAnswer(targetList(id), page)
      },
    }),
  ]
}

function suppressionRoutes(store: Store): Route[] {
  return [
    route('GET', '/suppressions', {
      summary: 'List suppressed users',
      access: { role: 'viewer', sources: 'limited' },
      query: listQuery(SUPPRESSION_FILTERS),
      answer: listAnswer(SUPPRESSION),
      async handle({ query }) {
        const { userId, sourceId } = query
        const page = await store.deletions.suppressions({ userId, sourceId }, pageRequest('suppressions', query))
        return pageAnswer('suppressions', page)
      },
    }),
    route('POST', '/suppressions', {
      summary: 'Suppress users',
      access: { role: 'editor', sources: 'limited' },
      description: 'New messages of these users are dropped. Stored messages are not deleted.',
      body: NEW_SUPPRESSIONS,
      answer: object({ added: integer({ description: 'The number of new suppressions. There is one for each user and source.' }) }),
      async handle({ body, actor }) {
        const userIds = [...new Set(body.userIds)]
        const subject = userIds.length === 1 ? await store.deletions.pseudonym(userIds[0] as string) : null
        const sourceIds = body.sourceIds === undefined ? null : [...new Set(body.sourceIds)]
        const audit = (after: NewSuppressions | null): NewAuditEntry => {
          const sources = after?.sourceIds ?? null
          return {
            actor,
            action: 'suppression.create',
            subject,
            before: null,
            after: { userCount: userIds.length, sourceIds: sources && [...sources] },
            sources,
          }
        }
        const checked = (configuration: Configuration): NewSuppressions => {
          checkSources(configuration, body.sourceIds)
          checkSize(configuration, userIds.length, sourceIds, 'suppression')
          return { userIds, sourceIds }
        }
        return { added: await store.deletions.suppress(checked, audit) }
      },
    }),
    route('DELETE', '/suppressions', {
      summary: 'End the suppression of a user',
      access: { role: 'editor', sources: 'limited' },
      description: 'New messages of the user are accepted again.',
      query: REMOVAL_QUERY,
      answer: object({ removed: integer({ description: 'The number of suppressions that ended.' }) }),
      async handle({ query, actor }) {
        const sourceIds = query.sourceId === undefined ? null : [query.sourceId]
        const subject = await store.deletions.pseudonym(query.userId)
        const audit = (_: unknown, before: { sourceIds: readonly string[] | null } | null): NewAuditEntry => {
          const sources = before?.sourceIds ?? null
          return {
            actor,
            action: 'suppression.delete',
            subject,
            before: { userCount: 1, sourceIds: sources && [...sources] },
            after: null,
            sources,
          }
        }
        return { removed: await store.deletions.unsuppress(query.userId, sourceIds, audit) }
      },
    }),
  ]
}

/** Throws if the request would write too many rows. One user is always accepted, because the request could not be split any further. */
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

function hashedUserIds(privacy: Privacy, { sources }: Configuration, { sourceIds, userIds }: NewDeletion): Map<string, string[]> {
  const hashed = new Map<string, string[]>()
  for (const id of sourceIds ?? sources.keys()) {
    const source = sources.get(id)
    const stored = source === undefined ? null : privacy.storedUserIds(source, userIds)
    if (stored !== null) hashed.set(id, stored)
  }
  return hashed
}

/** The name of a list of targets, for its cursors: a cursor is valid only for the deletion request that it came from. */
const targetList = (id: string): string => `targets of ${id}`

function detailView(deletion: DeletionDetail) {
  const { data: targets, next: nextTargets } = pageAnswer(targetList(deletion.id), deletion.firstTargets)
  return { ...deletion, targets, nextTargets }
}

function requestView({ id, userIds, sourceIds, suppress }: NewDeletion & { id: string }) {
  return { id, userCount: userIds.length, sourceIds: sourceIds === null ? null : [...sourceIds], suppress }
}
