// Destinations: their settings, a test that sends one message now, and their health. Secrets go in and never come out:
// an answer is built field by field in destinationView and nowhere else.

import { isoTime } from '@switchyard/protocol'
import {
  anyObject,
  array,
  boolean,
  integer,
  invalidField,
  nullable,
  number,
  object,
  oneOf,
  record,
  string,
  time,
  withDefault,
} from '../../api/schema.ts'
import type { DestinationHealth } from '../../delivery/delivery.ts'
import { KINDS, kindOf } from '../../destinations/kinds.ts'
import { ApiError } from '../../errors.ts'
import type { Actor, Audit, Configuration, Destination, EventFilter, NewDestination, Role } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { audited, recordAction } from '../access/audit.ts'
import { ATTEMPT_FIELDS, attemptView } from '../history/attempt-view.ts'
import { emptyLedger, LEDGER_FIELDS } from '../history/ledger.ts'
import { CREATION_QUERY, checkName } from '../name.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from '../query.ts'
import { type ControlParts, checkIfMatch, type Route, route } from '../route.ts'
import { checkSources } from '../sources/sources.ts'
import { dueTime } from '../times.ts'
import { BATCH_VIEW, DESTINATION_PATCH, FILTER_VIEW, NEW_DESTINATION } from './destination-settings.ts'
import { NOT_AS_SENT, replaceSignatures, urlFor, wasAnswered } from './redaction.ts'
import { SAMPLE_TYPES, sampleMessage } from './sample-message.ts'

export const DESTINATION = object(
  {
    id: string(),
    type: oneOf(['webhook']),
    name: string(),
    enabled: boolean({ description: 'While false, new messages skip it and what it is owed is held.' }),
    paused: boolean({ description: 'While true, nothing is sent to the destination; new messages wait for it too.' }),
    sourceIds: array(string()),
    ...KINDS.webhook.shownSettings,
    batch: BATCH_VIEW,
    timeoutMs: integer(),
    retryWindowMs: integer(),
    maxInFlight: integer(),
    historical: boolean(),
    filter: FILTER_VIEW,
    createdAt: time(),
  },
  { title: 'Destination', description: 'A webhook: where messages go.' },
)

const TEST = object({ type: withDefault(oneOf(SAMPLE_TYPES, { description: 'The type of the sample message.' }), 'track') })
const TEST_ANSWER = object({
  success: boolean({ description: 'Whether at least one URL answered with success.' }),
  message: anyObject({ description: 'What was sent.' }),
  request: object(
    { headers: record(string()), body: string() },
    {
      description:
        'The request as sent to each URL, without Host and Content-Length. Signatures are (not shown) if no URL answered, because the request may not have been sent.',
    },
  ),
  attempts: array(object(ATTEMPT_FIELDS, { title: 'Attempt' })),
})

const LATENCY = nullable(object({ p50: number(), p95: number(), p99: number() }))
const RECENT_FIELDS = {
  inFlight: integer({ description: 'Requests under way.' }),
  success: nullable(number({ description: 'Share of the recent attempts that succeeded, 0 to 1; null when there was none.' })),
  latencyMs: LATENCY,
}
const STANDING_FIELDS = {
  breaker: oneOf(['closed', 'open', 'probing'], { description: 'With several nodes, the worst state among them.' }),
  openSince: nullable(time({ description: 'The time since which the breaker of the answering node is not closed; null if it is closed.' })),
  ...RECENT_FIELDS,
  pending: integer(),
  oldestPendingAt: nullable(time()),
  nextAttemptAt: nullable(time({ description: 'Earliest next attempt across all nodes.' })),
}
const ALL_HEALTH = object({
  data: array(object({ destinationId: string(), ...STANDING_FIELDS })),
  next: nullable(string({ description: 'Always null: the list is complete.' })),
})
const HEALTH = object({
  ...STANDING_FIELDS,
  ledger: object(LEDGER_FIELDS),
  urls: array(object({ url: string(), ...RECENT_FIELDS }, { description: 'As the node that answers sees it.' })),
})

/** Before the first attempt since the start. */
const NO_HEALTH: DestinationHealth = {
  breaker: 'closed',
  openSinceMs: null,
  inFlight: 0,
  nextAttemptAtMs: null,
  success: null,
  latencyMs: null,
  urls: [],
}

export function destinationRoutes({ store, clock, delivery, checkUrl }: ControlParts): Route[] {
  function found(destination: Destination | undefined): Destination {
    if (destination === undefined) throw new ApiError('destination_not_found')
    return destination
  }
  const find = (id: string | undefined): Destination => found(store.configuration().destinations.get(id ?? ''))

  function checkSettings(type: Destination['type'], settings: Partial<Destination>): void {
    const found = KINDS[type].problem(settings, (url) => checkUrl?.(url) ?? null)
    if (found !== null) throw invalidField(found.field, found.problem)
  }

  return [
    route({
      method: 'GET',
      path: '/destinations',
      summary: 'Destinations, oldest first',
      query: listQuery({}),
      status: 200,
      answer: listAnswer(DESTINATION),
      errors: ['invalid_cursor'],
      handle: ({ query, role }) =>
        pageAnswer('destinations', pageOf(store.configuration().destinations.values(), pageRequest('destinations', query)), viewFor(role)),
    }),
    route({
      method: 'POST',
      path: '/destinations',
      summary: 'Creates a destination',
      query: CREATION_QUERY,
      body: NEW_DESTINATION,
      status: 201,
      answer: DESTINATION,
      tagged: true,
      errors: ['name_taken'],
      async handle({ body, query, actor }) {
        checkSettings(body.type, body)
        const checked = (configuration: Configuration): NewDestination => {
          checkName(query, body.name, configuration.destinations)
          checkSources(configuration, body.sourceIds)
          return body
        }
        return destinationView(await store.settings.createDestination(checked, destinationAudit(actor, 'destination.create')))
      },
    }),
    route({
      method: 'GET',
      path: '/destinations/health',
      summary: 'The health of all destinations',
      status: 200,
      answer: ALL_HEALTH,
      async handle() {
        const [rows, waiting] = await Promise.all([store.books.ledger(), store.books.oldestPending()])
        const pending = new Map(rows.map((row) => [row.destinationId, row.pending]))
        const oldest = new Map(waiting.map(({ destinationId, atMs }) => [destinationId, atMs]))
        const data = [...store.configuration().destinations.keys()].map((destinationId) => {
          const health = delivery.health(destinationId) ?? NO_HEALTH
          const standing = standingView(clock, health, pending.get(destinationId) ?? 0, oldest.get(destinationId) ?? null)
          return Object.assign({ destinationId }, standing)
        })
        return { data, next: null }
      },
    }),
    route({
      method: 'GET',
      path: '/destinations/:id',
      summary: 'One destination',
      status: 200,
      answer: DESTINATION,
      tagged: true,
      errors: ['destination_not_found'],
      handle: ({ params, role }) => viewFor(role)(find(params['id'])),
    }),
    route({
      method: 'PATCH',
      path: '/destinations/:id',
      summary: 'Changes only the fields that are given, also within batch',
      body: DESTINATION_PATCH,
      status: 200,
      answer: DESTINATION,
      tagged: true,
      errors: ['destination_not_found'],
      async handle({ params, body: { batch, ...rest }, actor, role, exchange }) {
        const changed = (before: Destination, configuration: Configuration): Partial<NewDestination> => {
          checkIfMatch(exchange, viewFor(role)(before))
          checkSources(configuration, rest.sourceIds)
          checkSettings(before.type, rest)
          return batch === undefined ? rest : { ...rest, batch: { ...before.batch, ...batch } }
        }
        const audit = destinationAudit(actor, 'destination.update')
        return destinationView(found(await store.settings.updateDestination(params['id'] ?? '', changed, audit)))
      },
    }),
    route({
      method: 'DELETE',
      path: '/destinations/:id',
      summary: 'Deletes a destination; what it is still owed is cancelled',
      status: 204,
      tagged: true,
      errors: ['destination_not_found'],
      async handle({ params, actor, role, exchange }) {
        const audit = destinationAudit(actor, 'destination.delete')
        const check = (before: Destination): void => checkIfMatch(exchange, viewFor(role)(before))
        if (!(await store.settings.deleteDestination(params['id'] ?? '', audit, check))) throw new ApiError('destination_not_found')
      },
    }),
    route({
      method: 'POST',
      path: '/destinations/:id/test',
      summary: 'Sends one sample message now, even if the destination is disabled or paused, and returns the attempts',
      body: TEST,
      status: 200,
      answer: TEST_ANSWER,
      errors: ['destination_not_found'],
      async handle({ params, body, actor, role }) {
        const { id } = find(params['id'])
        const message = sampleMessage(body.type, clock.wallMs())
        // Before it is sent: what leaves the house is written down also when no answer comes.
        await recordAction(store.history, { actor, action: 'destination.test', subject: id, after: { type: body.type } })
        const sent = await delivery.test(id, message)
        if (sent === undefined) throw new ApiError('destination_not_found')
        const { headers, body: sentBody } = sent.request
        return {
          success: sent.attempts.some(({ reason }) => reason === null),
          message,
          request: { headers: sent.attempts.some(wasAnswered) ? headers : replaceSignatures(headers, NOT_AS_SENT), body: sentBody },
          attempts: sent.attempts.map((attempt) => attemptView(attempt, urlFor(role))),
        }
      },
    }),
    route({
      method: 'GET',
      path: '/destinations/:id/health',
      summary: 'The health of a destination: breaker, backlog, recent success and latency',
      status: 200,
      answer: HEALTH,
      errors: ['destination_not_found'],
      async handle({ params, role }) {
        const destination = find(params['id'])
        const { id } = destination
        const [rows, oldestMs] = await Promise.all([store.books.ledger(), store.books.oldestPendingAtMs(id)])
        const { destinationId: _, ...ledger } = rows.find((row) => row.destinationId === id) ?? emptyLedger(id)
        const health = delivery.health(id) ?? NO_HEALTH
        return {
          ...standingView(clock, health, ledger.pending, oldestMs),
          ledger,
          urls: kindOf(destination)
            .targets(destination)
            .map((url) => urlView(url, urlFor(role)(url), health)),
        }
      },
    }),
  ]
}

function standingView(clock: Clock, health: DestinationHealth, pending: number, oldestMs: number | null) {
  const { breaker, openSinceMs, nextAttemptAtMs } = health
  return {
    breaker,
    openSince: openSinceMs === null ? null : dueTime(clock, openSinceMs),
    ...recentView(health),
    pending,
    oldestPendingAt: oldestMs === null ? null : isoTime(oldestMs),
    nextAttemptAt: nextAttemptAtMs === null ? null : dueTime(clock, nextAttemptAtMs),
  }
}

function urlView(url: string, shown: string, { urls }: DestinationHealth) {
  return { url: shown, ...recentView(urls.find((known) => known.url === url) ?? NO_HEALTH) }
}

function recentView({ inFlight, success, latencyMs }: Omit<DestinationHealth['urls'][number], 'url'>) {
  return { inFlight, success, latencyMs: latencyMs === null ? null : { p50: latencyMs.p50, p95: latencyMs.p95, p99: latencyMs.p99 } }
}

function filterView({ types, events }: EventFilter) {
  return {
    types: { allow: [...types.allow], deny: [...types.deny] },
    events: { allow: [...events.allow], deny: [...events.deny] },
  }
}

/** A viewer may look, and not send in Switchyard's place: credentials are in headers, and in the query of a URL. */
function viewFor(role: Role): (destination: Destination) => ReturnType<typeof destinationView> {
  if (role === 'admin') return destinationView
  return hiddenView
}

function hiddenView(destination: Destination): ReturnType<typeof destinationView> {
  return { ...destinationView(destination), ...kindOf(destination).showHidden(destination) }
}

/** The log is kept for long and read by many: nothing of what may be a secret is in it, only that it was changed. */
function destinationAudit(actor: Actor, action: string): Audit<Destination> {
  const audit = audited<Destination>(actor, action, hiddenView)
  return (after, before) => {
    const entry = audit(after, before)
    const changed = after !== null && before !== null ? kindOf(after).changedSecrets(before, after) : []
    return changed.length === 0 ? entry : { ...entry, after: { ...entry.after, changedSecrets: changed } }
  }
}

export function destinationView(destination: Destination) {
  const { id, type, name, enabled, paused, sourceIds, batch, filter } = destination
  const { timeoutMs, retryWindowMs, maxInFlight, historical } = destination
  return {
    id,
    type,
    name,
    enabled,
    paused,
    sourceIds: [...sourceIds],
    ...kindOf(destination).show(destination),
    batch: { size: batch.size, bytes: batch.bytes, lingerMs: batch.lingerMs },
    timeoutMs,
    retryWindowMs,
    maxInFlight,
    historical,
    filter: filterView(filter),
    createdAt: isoTime(destination.createdAtMs),
  }
}
