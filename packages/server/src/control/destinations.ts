// Destinations: their settings, a test that sends one message now, and their health. Secrets go in and never come out:
// an answer is built field by field in destinationView and nowhere else.

import { isoTime } from '@switchyard/protocol'
import { ApiError } from '../errors.ts'
import type { Destination, EventFilter, NewDestination } from '../store/store.ts'
import { ATTEMPT_FIELDS, attemptView } from './attempt-view.ts'
import { audited } from './audit.ts'
import type { DestinationHealth, UrlHealth } from './control-delivery.ts'
import { BATCH_VIEW, DESTINATION_PATCH, FILTER_VIEW, NEW_DESTINATION } from './destination-settings.ts'
import { emptyLedger, LEDGER_FIELDS } from './ledger.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from './query.ts'
import { type Route, type RouteParts, route } from './route.ts'
import { SAMPLE_TYPES, sampleMessage } from './sample-message.ts'
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
} from './schema.ts'
import { dueTime } from './times.ts'

export const DESTINATION = object(
  {
    id: string(),
    type: oneOf(['webhook']),
    name: string(),
    enabled: boolean(),
    sourceIds: array(string()),
    urls: array(string()),
    headers: record(string()),
    hasSharedSecret: boolean(),
    hasSigningSecrets: boolean(),
    signingSecretCount: integer(),
    batch: BATCH_VIEW,
    timeoutMs: integer(),
    retryWindowMs: integer(),
    maxInFlight: integer(),
    historical: boolean(),
    filter: FILTER_VIEW,
    createdAt: time(),
  },
  { description: 'A webhook: where messages go.' },
)

const TEST = object({ type: withDefault(oneOf(SAMPLE_TYPES, { description: 'The type of the sample message.' }), 'track') })
const TEST_ANSWER = object({
  success: boolean({ description: 'Whether one of the URLs took it.' }),
  message: anyObject({ description: 'What was sent.' }),
  attempts: array(object(ATTEMPT_FIELDS)),
})

const LATENCY = nullable(object({ p50: number(), p95: number(), p99: number() }))
const RECENT_FIELDS = {
  inFlight: integer({ description: 'Requests under way.' }),
  success: nullable(number({ description: 'Share of the recent attempts that succeeded, 0 to 1; null when there was none.' })),
  latencyMs: LATENCY,
}
const HEALTH = object({
  breaker: oneOf(['closed', 'open', 'probing']),
  ...RECENT_FIELDS,
  pending: integer(),
  oldestPendingAt: nullable(time()),
  nextAttemptAt: nullable(time()),
  ledger: object(LEDGER_FIELDS),
  urls: array(object({ url: string(), ...RECENT_FIELDS })),
})

/** Before the first attempt since the start. */
const NO_HEALTH: DestinationHealth = { breaker: 'closed', inFlight: 0, nextAttemptAtMs: null, success: null, latencyMs: null, urls: [] }

export function destinationRoutes({ store, clock, delivery, checkUrl, inTurn }: RouteParts): Route[] {
  function find(id: string | undefined): Destination {
    const destination = store.configuration().destinations.get(id ?? '')
    if (destination === undefined) throw new ApiError('destination_not_found')
    return destination
  }

  /** What cannot be seen from the settings alone. */
  function check({ sourceIds = [], urls = [] }: { sourceIds?: readonly string[]; urls?: readonly string[] }): void {
    const { sources } = store.configuration()
    for (const [index, id] of sourceIds.entries()) {
      if (!sources.has(id)) throw invalidField(`sourceIds[${index}]`, 'is not the id of a source')
    }
    for (const [index, url] of urls.entries()) {
      const problem = checkUrl?.(url) ?? null
      if (problem !== null) throw invalidField(`urls[${index}]`, problem)
    }
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
      handle: ({ query }) =>
        pageAnswer(
          'destinations',
          pageOf(store.configuration().destinations.values(), pageRequest('destinations', query)),
          destinationView,
        ),
    }),
    route({
      method: 'POST',
      path: '/destinations',
      summary: 'Creates a destination',
      body: NEW_DESTINATION,
      status: 201,
      answer: DESTINATION,
      handle: ({ body, actor }) =>
        inTurn(async () => {
          check(body)
          return destinationView(await store.control.createDestination(body, audited(actor, 'destination.create', destinationView)))
        }),
    }),
    route({
      method: 'GET',
      path: '/destinations/:id',
      summary: 'One destination',
      status: 200,
      answer: DESTINATION,
      errors: ['destination_not_found'],
      handle: ({ params }) => destinationView(find(params['id'])),
    }),
    route({
      method: 'PATCH',
      path: '/destinations/:id',
      summary: 'Changes the fields that are given, of batch likewise',
      body: DESTINATION_PATCH,
      status: 200,
      answer: DESTINATION,
      errors: ['destination_not_found'],
      handle: ({ params, body, actor }) =>
        inTurn(async () => {
          const before = find(params['id'])
          check(body)
          const { batch, ...rest } = body
          const change: Partial<NewDestination> = batch === undefined ? rest : { ...rest, batch: { ...before.batch, ...batch } }
          const destination = await store.control.updateDestination(
            before.id,
            change,
            audited(actor, 'destination.update', destinationView),
          )
          if (destination === undefined) throw new ApiError('destination_not_found')
          return destinationView(destination)
        }),
    }),
    route({
      method: 'DELETE',
      path: '/destinations/:id',
      summary: 'Deletes a destination; what it is still owed is cancelled',
      status: 204,
      errors: ['destination_not_found'],
      handle: ({ params, actor }) =>
        inTurn(async () => {
          const audit = audited(actor, 'destination.delete', destinationView)
          if (!(await store.control.deleteDestination(find(params['id']).id, audit))) throw new ApiError('destination_not_found')
        }),
    }),
    route({
      method: 'POST',
      path: '/destinations/:id/test',
      summary: 'Sends one sample message now, enabled or not, and answers with its attempts',
      body: TEST,
      status: 200,
      answer: TEST_ANSWER,
      errors: ['destination_not_found'],
      async handle({ params, body }) {
        const { id } = find(params['id'])
        const message = sampleMessage(body.type, clock.wallMs())
        const attempts = await delivery.test(id, message)
        return { success: attempts.some(({ reason }) => reason === null), message, attempts: attempts.map(attemptView) }
      },
    }),
    route({
      method: 'GET',
      path: '/destinations/:id/health',
      summary: 'How a destination does: breaker, backlog, recent success and latency',
      status: 200,
      answer: HEALTH,
      errors: ['destination_not_found'],
      async handle({ params }) {
        const { id, urls } = find(params['id'])
        const [rows, oldestMs] = await Promise.all([store.control.ledger(), store.control.oldestPendingAtMs(id)])
        const { destinationId: _, ...ledger } = rows.find((row) => row.destinationId === id) ?? emptyLedger(id)
        const health = delivery.health(id) ?? NO_HEALTH
        return {
          breaker: health.breaker,
          ...recentView(health),
          pending: ledger.pending,
          oldestPendingAt: oldestMs === null ? null : isoTime(oldestMs),
          nextAttemptAt: health.nextAttemptAtMs === null ? null : dueTime(clock, health.nextAttemptAtMs),
          ledger,
          urls: urls.map((url) => urlView(url, health)),
        }
      },
    }),
  ]
}

function urlView(url: string, { urls }: DestinationHealth) {
  return { url, ...recentView(urls.find((known) => known.url === url) ?? NO_HEALTH) }
}

function recentView({ inFlight, success, latencyMs }: Pick<UrlHealth, 'inFlight' | 'success' | 'latencyMs'>) {
  return { inFlight, success, latencyMs: latencyMs === null ? null : { p50: latencyMs.p50, p95: latencyMs.p95, p99: latencyMs.p99 } }
}

function filterView({ types, events }: EventFilter) {
  return {
    types: { allow: [...types.allow], deny: [...types.deny] },
    events: { allow: [...events.allow], deny: [...events.deny] },
  }
}

export function destinationView(destination: Destination) {
  const { id, type, name, enabled, sourceIds, urls, headers, batch, timeoutMs, retryWindowMs, maxInFlight, historical, filter } =
    destination
  return {
    id,
    type,
    name,
    enabled,
    sourceIds: [...sourceIds],
    urls: [...urls],
    headers: { ...headers },
    hasSharedSecret: destination.sharedSecret !== null,
    hasSigningSecrets: destination.signingSecrets.length > 0,
    signingSecretCount: destination.signingSecrets.length,
    batch: { size: batch.size, bytes: batch.bytes, lingerMs: batch.lingerMs },
    timeoutMs,
    retryWindowMs,
    maxInFlight,
    historical,
    filter: filterView(filter),
    createdAt: isoTime(destination.createdAtMs),
  }
}
