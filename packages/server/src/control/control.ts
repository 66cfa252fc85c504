// The control API as a Fastify plugin. It authorizes a request before it reads the body, and parses requests and returns errors in the same
// way for all routes. The routes are data, in files named after their resources, so the OpenAPI document is made from the same list.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { entityTag } from '../api/entity-tag.ts'
import { bytesProblem } from '../api/json-problem.ts'
import { invalidField, object, shown } from '../api/schema.ts'
import { ApiError, errorBody } from '../errors.ts'
import { isTooDeep, MAX_DEPTH, mayBeDeep } from '../store/port/scan-json.ts'
import { InvalidCursor, SourceHasPlan, StoreUnavailable, UnknownVersion, WriteKeyTaken } from '../store/store.ts'
import { type Access, type Caller, TooManyAttempts } from './access/authorize.ts'
import { auditRoutes } from './administration/audit.ts'
import { loginRoutes } from './administration/login.ts'
import { oauthAppRoutes } from './administration/oauth-apps.ts'
import { tokenRoutes } from './administration/tokens.ts'
import { alertRoutes } from './alerts/alerts.ts'
import { fieldChoicesRoutes } from './catalog/field-choices.ts'
import { catalogInstallRoutes } from './catalog/install.ts'
import { withConfiguration } from './configuration.ts'
import { deletionRoutes } from './deletions/deletions.ts'
import { catalogRoutes } from './destinations/catalog.ts'
import { destinationRoutes } from './destinations/destinations.ts'
import { previewRoutes } from './destinations/preview.ts'
import { versionRoutes } from './destinations/versions.ts'
import { backupRoutes } from './diagnostics/backups.ts'
import { diagnosticRoutes } from './diagnostics/diagnostics.ts'
import { nodeRoutes } from './diagnostics/nodes.ts'
import { eventRoutes } from './events/events.ts'
import { answerRoutes } from './history/answers.ts'
import { deliveryRoutes } from './history/deliveries.ts'
import { differenceRoutes } from './history/differences.ts'
import { ledgerRoutes } from './history/ledger.ts'
import { liveRoutes } from './history/live.ts'
import { messageRoutes } from './history/messages.ts'
import { statsRoutes } from './history/stats.ts'
import { type StreamEvent, streamEvents } from './history/stream.ts'
import { withDescription } from './openapi/openapi-route.ts'
import { orderRoutes } from './order/order.ts'
import { commandLineRoutes } from './people/command-line.ts'
import { peopleRoutes } from './people/people.ts'
import { singleSignOnRoutes } from './people/single-sign-on.ts'
import { learnPlanRoutes } from './plans/learn-plan.ts'
import { planRoutes } from './plans/plans.ts'
import { violationRoutes } from './plans/violations.ts'
import { quarantineRoutes } from './quarantine/quarantine.ts'
import { replayRoutes } from './replays/replays.ts'
import { sendCompressed } from './routes/compressed-answer.ts'
import type { ControlParts, Page, Route } from './routes/route.ts'
import { assertFields, assertRole, assertWhole, faultInOrder, isWholeFor, ScopedRoutes } from './scope/authorization.ts'
import { privacyRoutes } from './sources/privacy.ts'
import { sourceRoutes } from './sources/sources.ts'
import { savedQueryRoutes } from './sql/saved-queries.ts'
import { sqlRoutes } from './sql/sql.ts'
import { warehouseCheckRoutes } from './warehouses/check.ts'
import { warehouseTableRoutes } from './warehouses/tables.ts'
import { warehouseUpkeepRoutes } from './warehouses/upkeep.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller; null before authorization and on public routes. */
    caller: Caller | null
  }
  interface FastifyContextConfig {
    controlRoute?: Route
  }
}

export const CONTROL_PREFIX = '/api'
export const MAX_CONTROL_BODY_BYTES = 1024 * 1024
/** The body limit of public routes, which receive nothing larger than a token. */
const MAX_PUBLIC_BODY_BYTES = 16 * 1024
/** The longest path parameter: a messageId or write key of 100 characters, with every character percent-encoded. */
export const MAX_PARAM_LENGTH = 1_000

const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const RETRY_AFTER_SECONDS = 2
const NO_QUERY = object({})

export function controlRoutes(parts: ControlParts): Route[] {
  return withDescription(
    withConfiguration(
      [
        sourceRoutes,
        privacyRoutes,
        learnPlanRoutes,
        destinationRoutes,
        warehouseTableRoutes,
        warehouseCheckRoutes,
        warehouseUpkeepRoutes,
        sqlRoutes,
        savedQueryRoutes,
        planRoutes,
        violationRoutes,
        catalogRoutes,
        fieldChoicesRoutes,
        versionRoutes,
        orderRoutes,
        previewRoutes,
        ledgerRoutes,
        messageRoutes,
        eventRoutes,
        answerRoutes,
        differenceRoutes,
        deliveryRoutes,
        quarantineRoutes,
        replayRoutes,
        deletionRoutes,
        alertRoutes,
        oauthAppRoutes,
        diagnosticRoutes,
        nodeRoutes,
        backupRoutes,
        catalogInstallRoutes,
        statsRoutes,
        liveRoutes,
        tokenRoutes,
        loginRoutes,
        singleSignOnRoutes,
        commandLineRoutes,
        peopleRoutes,
        auditRoutes,
      ].flatMap((routes) => routes(parts)),
      parts,
    ),
  )
}

/** Returns the routes that it serves. */
export async function registerControl(app: FastifyInstance, deps: ControlParts): Promise<readonly Route[]> {
  const scoped = new ScopedRoutes(deps, controlRoutes)
  const { routes } = scoped.all

  await app.register(
    async (api) => {
      api.decorateRequest('caller', null)
      api.removeAllContentTypeParsers()
      // Any Content-Type is accepted; a body that is not JSON is rejected as invalid_json.
      api.addContentTypeParser(
        '*',
        { parseAs: 'buffer', bodyLimit: MAX_CONTROL_BODY_BYTES },
        async (request: FastifyRequest, body: Buffer) =>
          request.routeOptions.config.controlRoute?.form ? parseForm(request, body) : parseBody(body),
      )

      api.addHook('onRequest', async (request, reply) => {
        reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
        // Pages of other origins must not load anything from here.
        reply.header('cross-origin-resource-policy', 'same-origin')
        const route = request.routeOptions.config.controlRoute
        if (route?.access !== 'public') request.caller = await deps.access.authorize(request.raw)
        if (request.is404) rejectPath(request, reply, routes)
        if (request.caller !== null && route !== undefined) assertRole(route, request.caller, idOf(request))
        const encoding = request.headers['content-encoding'] ?? 'identity'
        if (encoding !== 'identity')
          throw new ApiError('unsupported_encoding', {
            message: 'The control API does not accept compressed request bodies. Send the body without Content-Encoding.',
          })
      })

      api.setErrorHandler(async (error, request, reply) => {
        const { caller, routeOptions } = request
        const { controlRoute } = routeOptions.config
        const thrown = toApiError(error, routeOptions.bodyLimit)
        const isLimited = caller !== null && caller.sources !== 'all' && controlRoute !== undefined
        let fault = thrown
        try {
          if (isLimited) fault = await faultInOrder(thrown, controlRoute, scoped.of(caller.sources), idOf(request))
        } catch (other) {
          fault = toApiError(other)
        }
        if (fault.status === 401) reply.header('www-authenticate', 'Bearer')
        if (fault.status === 503) reply.header('retry-after', String(RETRY_AFTER_SECONDS))
        if (fault instanceof TooManyAttempts) reply.header('retry-after', String(fault.retryAfterSeconds))
        // Logs the route and not the URL, which may contain a write key or a user id.
        const { method } = request
        if (fault.status >= 500) request.log.error({ err: error, method, route: routeOptions.url }, 'control request failed')
        return reply.code(fault.status).send(errorBody(fault))
      })
      api.setNotFoundHandler((request, reply) => rejectPath(request, reply, routes))

      for (const at of routes.keys()) serve(api, at, scoped, deps.access)
    },
    { prefix: CONTROL_PREFIX },
  )
  return routes
}

function idOf(request: FastifyRequest): string {
  return (request.params as Record<string, string> | undefined)?.['id'] ?? ''
}

function serve(api: FastifyInstance, at: number, scoped: ScopedRoutes, access: Access): void {
  const route = scoped.all.routes[at] as Route
  api.route({
    method: route.method,
    url: route.path,
    config: { controlRoute: route },
    bodyLimit: route.access !== 'public' ? MAX_CONTROL_BODY_BYTES : MAX_PUBLIC_BODY_BYTES,
    async handler(request, reply) {
      const params = request.params as Record<string, string>
      // The router matches /sources/ as a source with an empty id.
      if (Object.values(params).includes('')) throw new ApiError('not_found')
      const { caller } = request
      const own = scoped.of(caller?.sources ?? 'all')
      const isWhole = isWholeFor(own, scoped.all)
      if (caller !== null) {
        assertFields(route, caller, request.body)
        assertWhole(route, own, scoped.all, idOf(request))
      }
      const query = (route.query ?? NO_QUERY).parse(request.query, '')
      const given = route.body?.parse(request.body === undefined ? {} : request.body, '')
      // HEAD gets only the headers, because the event stream has no end.
      if (route.stream && request.method === 'HEAD') return reply.type('text/event-stream; charset=utf-8').send()
      const answer = await (own.routes[at] as Route).handle({
        params,
        body: given,
        query,
        // Getters, because reading them throws on a public route, which has no caller.
        get actor() {
          return callerOf(request).actor
        },
        get role() {
          return callerOf(request).role
        },
        get sources() {
          return callerOf(request).sources
        },
        // The credentials of a shared destination belong to others, too.
        roleOn: (id) => (isWhole(id) ? callerOf(request).role : 'viewer'),
        isWhole,
        exchange: { request: request.raw, caller: request.caller, setHeader: (name, value) => void reply.header(name, value) },
      })
      if (route.stream) return stream(request, reply, answer as AsyncIterable<StreamEvent>, access)
      if (route.pages) return sendPage(reply, answer as Page)
      reply.code(route.status)
      if (route.bytes) return reply.type('application/octet-stream').send(answer)
      if (route.answer === undefined) return reply.send()
      const body = shown(route.answer, answer)
      if (route.tagged) reply.header('etag', entityTag(body))
      return route.compressed ? sendCompressed(request, reply, body) : reply.send(body)
    },
  })
}

function stream(request: FastifyRequest, reply: FastifyReply, events: AsyncIterable<StreamEvent>, access: Access): FastifyReply {
  const headers = Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]))
  const caller = callerOf(request)
  const stillAllowed = (): Promise<boolean> => access.isStillValid(caller)
  reply.hijack()
  reply.raw.once(
    'close',
    access.watch(caller, () => void reply.raw.end()),
  )
  streamEvents(reply.raw, { events, headers, stillAllowed }).catch((error: unknown) => {
    request.log.error({ err: error }, 'a stream failed')
    reply.raw.destroy()
  })
  return reply
}

/** The page loads nothing, and no other page may frame it. */
function sendPage(reply: FastifyReply, { status, html, location, contentSecurityPolicy }: Page): FastifyReply {
  reply.code(status).header('referrer-policy', 'same-origin').header('x-frame-options', 'DENY')
  if (html === undefined) return reply.header('location', location).send()
  return reply
    .header('content-security-policy', contentSecurityPolicy ?? PAGE_POLICY)
    .type('text/html; charset=utf-8')
    .send(html)
}

function callerOf({ caller }: FastifyRequest): Caller {
  if (caller === null) throw new Error('an unauthorized request reached its route')
  return caller
}

/** Throws not_found for an unknown path, and method_not_allowed for a known path without this method. */
function rejectPath(request: FastifyRequest, reply: FastifyReply, routes: readonly Route[]): never {
  const path = (request.url.split('?', 1)[0] as string).slice(CONTROL_PREFIX.length)
  // A path can match two routes: /deliveries/causes also matches /deliveries/:id.
  const methods = [...new Set(routes.filter((route) => isPathOf(route, path)).map(({ method }): string => method))]
  if (methods.length === 0) throw new ApiError('not_found')
  if (methods.includes('GET')) methods.push('HEAD')
  reply.header('allow', methods.join(', '))
  throw new ApiError('method_not_allowed')
}

function isPathOf(route: Route, path: string): boolean {
  const [pattern, parts] = [route.path.split('/'), path.split('/')]
  return (
    pattern.length === parts.length && pattern.every((part, index) => (part.startsWith(':') ? parts[index] !== '' : part === parts[index]))
  )
}

function parseBody(body: Buffer): unknown {
  if (body.length === 0) return undefined
  let parsed: unknown
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    parsed = JSON.parse(text)
  } catch (cause) {
    throw new ApiError('invalid_json', { message: bytesProblem('The request body', body), cause })
  }
  // Values that are copied or returned, such as a message to preview, would overflow the stack.
  if (mayBeDeep(text) && isTooDeep(Buffer.from(text)))
    throw new ApiError('invalid_request', { message: `The request body is nested too deeply. At most ${MAX_DEPTH} levels are allowed.` })
  return parsed
}

/** Of a name that is sent twice, both values are kept, so that the schema rejects them. */
function parseForm(request: FastifyRequest, body: Buffer): Record<string, unknown> {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded')
    throw new ApiError('invalid_request', { message: 'The request body must be a form: application/x-www-form-urlencoded.' })
  const fields = new URLSearchParams(body.toString('utf8'))
  return Object.fromEntries(
    [...new Set(fields.keys())].map((name) => [name, fields.getAll(name).length > 1 ? fields.getAll(name) : fields.get(name)]),
  )
}

/** Converts anything that was thrown to an error of the table. */
function toApiError(error: unknown, bodyLimit?: number): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof WriteKeyTaken) return new ApiError('write_key_taken')
  if (error instanceof SourceHasPlan)
    return new ApiError('source_has_plan', {
      field: 'sourceIds',
      message: `The source ${error.sourceId} already has another tracking plan. Detach it from that plan first.`,
    })
  // It was dropped while it was being restored.
  if (error instanceof UnknownVersion) return invalidField('version', 'is no longer kept; choose a newer one')
  if (error instanceof InvalidCursor) return new ApiError('invalid_cursor', { field: 'cursor' })
  if (error instanceof StoreUnavailable) {
    return new ApiError('store_unavailable', {
      message:
        'The store is unavailable, so nothing was changed. Wait for the number of seconds in the Retry-After header, then try again.',
    })
  }
  if ((error as Error).name === 'TooManyPreviews') return new ApiError('too_many_previews')
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown }
  // The sender closed the connection early, which is not a failure of the service.
  if (code === 'ECONNRESET' && statusCode === 400)
    return new ApiError('invalid_request', {
      message: 'The connection closed before the whole request body arrived. Send the request again.',
    })
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError('body_too_large', {
        message: `The request body is larger than ${bodyLimit} bytes. Split it into several requests.`,
      })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError('invalid_request', { message: 'The Content-Type header is not valid. Send application/json.' })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ApiError('invalid_request', {
        message: 'The length of the request body differs from its Content-Length header. Correct the header or leave it out.',
      })
    default:
      return new ApiError('internal_error', { cause: error })
  }
}
