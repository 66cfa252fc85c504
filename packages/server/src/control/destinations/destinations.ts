// Routes for destinations: their settings, a test that sends one message at once, and their health. Responses never contain secrets:
// destinationView is the only place that builds a destination for a response, from the fields that responses have.

import type { JsonObject } from '@switchyard/protocol'
import {
  anyObject,
  array,
  boolean,
  integer,
  nullable,
  number,
  object,
  oneOf,
  optional,
  record,
  string,
  time,
  withDefault,
} from '../../api/schema.ts'
import type { DestinationHealth, SentRequest } from '../../delivery/delivery.ts'
import { KINDS, kindOf } from '../../destinations/kinds.ts'
import { COMMON_SETTINGS } from '../../destinations/settings/common-settings.ts'
import { retryOf } from '../../destinations/settings/retry-settings.ts'
import { ApiError } from '../../errors.ts'
import {
  type Actor,
  type Audit,
  CLASSIC,
  type Destination,
  type DestinationType,
  type NewDestination,
  type Role,
} from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { ATTEMPT_FIELDS, attemptView } from '../history/attempt-view.ts'
import { expiryOf } from '../history/expiry.ts'
import { emptyLedger, LEDGER_FIELDS } from '../history/ledger.ts'
import { NOT_AS_SENT, replaceSignatures, urlFor, wasAnswered } from '../history/redaction.ts'
import { audited, recordAction } from '../routes/audit-entries.ts'
import { createRoute, deleteRoute, found, listRoute, type ResourceKind, readRoute, updateRoute } from '../routes/resource-routes.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { dueTime } from '../routes/times.ts'
import { checkSources } from '../sources/sources.ts'
import { assertLoadable } from './code-check.ts'
import { checkDeadLetter } from './dead-letter-setting.ts'
import { DESTINATION, DESTINATION_PATCH, NEW_DESTINATION } from './destination-settings.ts'
import { checkDuplicate, DESTINATION_QUERY } from './duplicates.ts'
import { definitionToUse, installedDefinition } from './integration-definition.ts'
import { checkedSettings, patchedSettings } from './patched-settings.ts'
import { SAMPLE_TYPES, sampleMessage } from './sample-message.ts'
import { CONTENT_HEALTH, contentHealth, FAILING_TABLES, failingTables } from './stored-health.ts'
import { summaryRoute } from './summaries.ts'
import { contentToRestore } from './versions.ts'

const TEST = object({ type: withDefault(oneOf(SAMPLE_TYPES, { description: 'The type of the sample message.' }), 'track') })
const TEST_ANSWER = object({
  success: boolean({
    description:
      'Whether at least one URL answered with a 2xx status, or, for an integration, whether all subscriptions that match the message succeeded.',
  }),
  message: anyObject({ description: 'The sample message.' }),
  request: nullable(
    object(
      { headers: record(string()), body: string() },
      {
        description:
          'The request as sent to each URL, without Host and Content-Length. If no URL answered, signatures are replaced with `(not shown)`, because the request may not have been sent. `secrets` are replaced with `(hidden)`, and then signatures are not shown either. Null for an integration, whose attempts contain its requests.',
      },
    ),
  ),
  attempts: array(
    object(
      {
        ...ATTEMPT_FIELDS,
        request: optional(
          object(
            { headers: record(string()), body: string() },
            { description: 'Only for an integration: the request as sent, without secrets.' },
          ),
        ),
      },
      { title: 'Attempt' },
    ),
  ),
})

const LATENCY = nullable(
  object(
    { p50: number(), p95: number(), p99: number() },
    { description: 'The latency of recent attempts that were answered, in milliseconds, as percentiles; null if there were none.' },
  ),
)
const RECENT_FIELDS = {
  inFlight: integer({ description: 'The number of requests in flight.' }),
  success: nullable(number({ description: 'The share of recent attempts that succeeded, from 0 to 1; null if there were none.' })),
  latencyMs: LATENCY,
}
const STATUS_FIELDS = {
  breaker: oneOf(['closed', 'open', 'probing'], {
    description: 'The state of the circuit breaker. With several nodes, the worst state of all nodes.',
  }),
  openSince: nullable(
    time({ description: 'When the circuit breaker opened, on the node that answers this request; null if it is closed.' }),
  ),
  failure: nullable(
    object(
      { reason: string(), error: string({ description: 'A sentence that says why.' }) },
      { description: 'Why the latest attempt of the node that answers this API request failed; null if it succeeded.' },
    ),
  ),
  mostFrequentFailure: nullable(
    object(
      {
        reason: string(),
        error: string({ description: 'A sentence that says why.' }),
        attempts: integer({ description: 'The number of recent attempts that failed with this reason.' }),
        responseStart: nullable(string({ description: 'The start of the last response with this reason, at most 300 characters.' })),
      },
      {
        description: 'The most frequent reason why recent attempts failed, on the node that answers this API request; null if none failed.',
      },
    ),
  ),
  ...RECENT_FIELDS,
  held: nullable(
    string({
      description:
        'Why deliveries are held back although the destination is enabled and not paused: on at least one node, it does not fit the installed version of its integration, for example because an upgrade removed an action. They stay pending, and are sent when it fits again. Null if nothing is held.',
    }),
  ),
  failingTables: FAILING_TABLES,
  pending: integer({ description: 'The number of pending deliveries.' }),
  oldestPendingAt: nullable(time({ description: 'When the oldest pending delivery was accepted; null if none is pending.' })),
  nextAttemptAt: nullable(time({ description: 'Earliest next attempt across all nodes; null if none is scheduled.' })),
  nextExpiryAt: nullable(
    time({
      description:
        'When the first pending delivery expires if no attempt succeeds by then: at the end of the retry window, which begins with the first attempt of a delivery. Null if no pending delivery has been attempted yet, and while the destination is paused, disabled or held, because nothing expires then.',
    }),
  ),
}
const ALL_HEALTH = object({
  data: array(object({ destinationId: string(), ...STATUS_FIELDS })),
  next: nullable(string({ description: 'Always null: the list is complete.' })),
})
const HEALTH = object({
  ...STATUS_FIELDS,
  ledger: object(LEDGER_FIELDS),
  content: CONTENT_HEALTH,
  urls: array(
    object(
      { url: string(), ...RECENT_FIELDS },
      { description: 'The values for each URL, as measured by the node that answers this request.' },
    ),
  ),
})

/** The health of a destination without any attempt since the service started. */
const NO_HEALTH: DestinationHealth = {
  breaker: 'closed',
  openSinceMs: null,
  inFlight: 0,
  nextAttemptAtMs: null,
  held: null,
  failure: null,
  mostFrequentFailure: null,
  success: null,
  latencyMs: null,
  urls: [],
}

export function destinationRoutes(parts: ControlParts): Route[] {
  const { store, checkUrl = () => null, checkCode, catalog } = parts
  const kind: ResourceKind<Destination> = {
    path: '/destinations',
    noun: 'a destination',
    plural: 'destinations',
    action: 'destination',
    subject: 'destination',
    changedBy: 'editor',
    sourcesOf: ({ sourceIds }) => sourceIds,
    notFound: 'destination_not_found',
    answer: DESTINATION,
    stored: () => store.configuration().destinations,
    view: destinationView,
    viewFor: viewOf,
    audit: destinationAudit,
    warnings: async (destination) => kindOf(destination).warnings(destination, await installedDefinition(catalog, destination)),
  }
  return [
    listRoute(kind),
    createRoute(kind, {
      body: NEW_DESTINATION,
      query: DESTINATION_QUERY,
      errors: ['destination_exists', 'not_installed'],
      others: ({ destinations }) => destinations,
      async wanted(body, query) {
        assertInstalled(parts, body.type)
        const definition = await definitionToUse(catalog, body)
        const settings = checkedSettings(body.type, body, undefined, { checkUrl, definition })
        await assertLoadable(checkCode, body.type, settings, undefined)
        return (configuration): NewDestination => {
          checkSources(configuration, body.sourceIds)
          checkDeadLetter(configuration, body.deadLetter, null)
          const wanted = { ...CLASSIC, ...settings, ...retryOf(body) } as NewDestination
          checkDuplicate(query, wanted, configuration)
          return wanted
        }
      },
      create: (wanted, audit) => store.resources.createDestination(wanted, audit),
    }),
    allHealthRoute(parts),
    summaryRoute(parts),
    readRoute(kind),
    updateRoute(kind, {
      description:
        'Changes only the fields that you send, including those inside `batch` and `retry`. `secrets` of a webhook and `settings` of an integration are merged by key, and null removes one. `filter`, `request`, `transformation` and `subscriptions` are replaced as a whole. `version` restores a version. If the change points to another server, stored secrets must be sent again; otherwise it is refused with `secrets_needed`.',
      body: DESTINATION_PATCH,
      errors: ['secrets_needed'],
      async wanted(body, id) {
        // Another node may have created it a moment ago. A change of nothing reads what is stored, and writes nothing.
        const before = kind.stored().get(id) ?? found(kind, await store.resources.updateDestination(id, {}))
        await assertLoadable(checkCode, before.type, body, before)
        const restored = await contentToRestore(store.resources, id, body)
        const definition = await installedDefinition(catalog, before)
        return (stored, configuration): Partial<NewDestination> =>
          patchedSettings(body, stored, { configuration, restored, checkUrl, definition })
      },
      update: (id, change, audit) => store.resources.updateDestination(id, change, audit),
    }),
    deleteRoute(kind, {
      description:
        'Its pending deliveries are cancelled. In destinations that have it as their dead-letter destination, `deadLetter` becomes null.',
      remove: (id, audit, check) => store.resources.deleteDestination(id, audit, check),
    }),
    testRoute(parts),
    retryRoute(parts),
    healthRoute(parts),
  ]
}

/** Throws if the kind needs a package that is not installed. */
export function assertInstalled({ warehouseInstaller }: Pick<ControlParts, 'warehouseInstaller'>, type: DestinationType): void {
  if (KINDS[type].package !== 'warehouse' || warehouseInstaller === undefined || warehouseInstaller.state().state === 'installed') return
  throw new ApiError('not_installed', {
    message:
      'Warehouses need a package that is not installed on this server. Run `switchyard warehouse install` on the machine of the service, or call POST /api/warehouse/install.',
  })
}

function find({ store }: ControlParts, id: string | undefined): Destination {
  return found({ notFound: 'destination_not_found' }, store.configuration().destinations.get(id ?? ''))
}

function allHealthRoute(parts: ControlParts): Route {
  const { store, clock, delivery } = parts
  return route('GET', '/destinations/health', {
    summary: 'Retrieve the health of all destinations',
    description: 'Destinations that also serve sources outside of your access are left out.',
    access: { role: 'viewer', sources: 'limited' },
    answer: ALL_HEALTH,
    async handle({ isWhole, sources }) {
      const [rows, waiting] = await Promise.all([store.books.ledger(), store.books.oldestPending()])
      const pending = new Map(rows.map((row) => [row.destinationId, row.pending]))
      const oldest = new Map(waiting.map((each) => [each.destinationId, each]))
      const expires = expiryOf(parts)
      const known = [...store.configuration().destinations.values()].filter(({ id }) => isWhole(id))
      const data = known.map(async (destination) => {
        const { id: destinationId } = destination
        const health = delivery.health(destinationId) ?? NO_HEALTH
        const waiting = oldest.get(destinationId)
        const nextExpiryAt = expires(destinationId, waiting?.firstAttemptAtMs ?? null)
        const owed = pending.get(destinationId) ?? 0
        const tables = await failingTables(store, destination, owed, sources)
        return Object.assign({ destinationId, nextExpiryAt, failingTables: tables }, statusView(clock, health, owed, waiting?.atMs ?? null))
      })
      return { data: await Promise.all(data), next: null }
    },
  })
}

/** A test does not count against `maxInFlight`, and one of a mail server that does not answer takes more than a minute. */
const MAX_TESTS = 8

function testRoute(parts: ControlParts): Route {
  const { store, clock, delivery } = parts
  let running = 0
  return route('POST', '/destinations/:id/test', {
    summary: 'Send a test message to a destination',
    access: { role: 'editor', sources: 'limited', subject: 'destination', whole: true },
    description:
      'Immediately sends one sample message, even if the destination is disabled or paused, and returns the attempts. A test is not retried, and nothing is stored.',
    body: TEST,
    answer: TEST_ANSWER,
    errors: ['destination_not_found', 'too_many_previews'],
    async handle({ params, body, actor, roleOn }) {
      const destination = find(parts, params['id'])
      if (running >= MAX_TESTS)
        throw new ApiError('too_many_previews', {
          message: `Too many tests are running: at most ${MAX_TESTS} at the same time. Try again in a few seconds.`,
        })
      const { id, sourceIds } = destination
      const message = sampleMessage(body.type, clock.wallMs())
      running++
      try {
        // Recorded before the message is sent, so that the audit log has the entry even if the request does not finish.
        await recordAction(store.history, {
          actor,
          action: 'destination.test',
          subject: id,
          after: { type: body.type },
          sources: sourceIds,
        })
        const sent = await delivery.test(id, message)
        if (sent === undefined) throw new ApiError('destination_not_found')
        return {
          success: kindOf(destination).hasPassed(sent.attempts),
          message,
          request: sent.request === null ? null : testRequest(sent.request, sent.attempts.some(wasAnswered)),
          attempts: sent.attempts.map((attempt) =>
            Object.assign(attemptView(attempt, urlFor(roleOn(id))), attempt.sent === undefined ? {} : { request: attempt.sent }),
          ),
        }
      } finally {
        running--
      }
    },
  })
}

function retryRoute(parts: ControlParts): Route {
  const { store, delivery } = parts
  return route('POST', '/destinations/:id/retry', {
    summary: 'Attempt the pending deliveries of a destination now',
    access: { role: 'editor', sources: 'limited', subject: 'destination', whole: true },
    description:
      'For a receiver that works again: an open circuit breaker allows a request at once, and pending deliveries do not wait for the time of their next attempt. It ends with the first attempt that fails. Messages that are delivered in order still wait until the first of their key is due.',
    answer: object({ pending: integer({ description: 'The number of pending deliveries.' }) }),
    errors: ['destination_not_found', 'destination_not_sending'],
    async handle({ params, actor }) {
      const { id, sourceIds } = find(parts, params['id'])
      const rows = await store.books.ledger()
      const pending = rows.find((row) => row.destinationId === id)?.pending ?? 0
      if (!delivery.retryNow(id)) throw new ApiError('destination_not_sending')
      await recordAction(store.history, { actor, action: 'destination.retry', subject: id, after: { pending }, sources: sourceIds })
      return { pending }
    },
  })
}

function healthRoute(parts: ControlParts): Route {
  const { store, clock, delivery } = parts
  return route('GET', '/destinations/:id/health', {
    summary: 'Retrieve the health of a destination',
    access: { role: 'viewer', sources: 'limited', subject: 'destination', whole: true },
    description: 'Returns the state of the circuit breaker, the backlog, the recent success rate and the latency.',
    answer: HEALTH,
    errors: ['destination_not_found'],
    async handle({ params, roleOn, sources }) {
      const destination = find(parts, params['id'])
      const { id } = destination
      const [rows, oldest] = await Promise.all([store.books.ledger(), store.books.oldestPendingOf(id)])
      const { destinationId: _, ...ledger } = rows.find((row) => row.destinationId === id) ?? emptyLedger(id)
      const health = delivery.health(id) ?? NO_HEALTH
      return {
        ...statusView(clock, health, ledger.pending, oldest?.atMs ?? null),
        nextExpiryAt: expiryOf(parts)(id, oldest?.firstAttemptAtMs ?? null),
        failingTables: await failingTables(store, destination, ledger.pending, sources),
        ledger,
        content: await contentHealth(store, destination),
        urls: kindOf(destination)
          .targets(destination)
          .map((url) => Object.assign({}, health.urls.find((known) => known.url === url) ?? NO_HEALTH, { url: urlFor(roleOn(id))(url) })),
      }
    },
  })
}

function testRequest({ headers, body, hidesSecrets }: SentRequest, wasSent: boolean) {
  return { headers: wasSent && hidesSecrets !== true ? headers : replaceSignatures(headers, NOT_AS_SENT), body }
}

function statusView(clock: Clock, health: DestinationHealth, pending: number, oldestMs: number | null) {
  const { openSinceMs, nextAttemptAtMs } = health
  return {
    ...health,
    openSince: openSinceMs === null ? null : dueTime(clock, openSinceMs),
    pending,
    oldestPendingAt: oldestMs,
    nextAttemptAt: nextAttemptAtMs === null ? null : dueTime(clock, nextAttemptAtMs),
  }
}

function viewOf({ roleOn, isWhole }: { roleOn: (id: string) => Role; isWhole: (id: string) => boolean }) {
  return (destination: Destination): JsonObject => {
    const view = (roleOn(destination.id) === 'viewer' ? redactedView : destinationView)(destination)
    return isWhole(destination.id) ? view : { ...view, shared: true }
  }
}

/** Viewers do not see header values and query values of URLs: these can be credentials, with which a viewer could send to the receiver. */
function redactedView(destination: Destination): JsonObject {
  return { ...destinationView(destination), ...kindOf(destination).showHidden(destination) }
}

/** The audit log is kept for a long time and has many readers. So it contains no value that may be a secret, only the fact that it changed. */
function destinationAudit(actor: Actor, action: string): Audit<Destination> {
  const audit = audited<Destination>(actor, action, redactedView, ({ sourceIds }) => sourceIds)
  return (after, before) => {
    const entry = audit(after, before)
    const changed = after !== null && before !== null ? kindOf(after).changedSecrets(before, after) : []
    return changed.length === 0 ? entry : { ...entry, after: { ...entry.after, changedSecrets: changed } }
  }
}

export function destinationView(destination: Destination): JsonObject {
  const { type, timeoutMs, retry, retryWindowMs: windowMs } = destination
  // The settings of the kind are only in what the kind shows, because they contain secrets.
  const common = COMMON_SETTINGS.viewOf({ ...destination, retry: { windowMs, ...retry } })
  return { ...common, timeoutMs, type, ...kindOf(destination).show(destination) }
}
