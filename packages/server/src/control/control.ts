// The control API as a Fastify plugin: authorization before anything of a body is read, one way to parse, one way to
// refuse. What the routes do is in the files named after their resources; they are data, so what serves them here can
// also describe them.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, errorBody } from '../errors.ts'
import { type Actor, InvalidCursor, StoreUnavailable, WriteKeyTaken } from '../store/store.ts'
import { deletionRoutes } from './deletions.ts'
import { deliveryRoutes } from './deliveries.ts'
import { destinationRoutes } from './destinations.ts'
import { ledgerRoutes } from './ledger.ts'
import { messageRoutes } from './messages.ts'
import type { ControlParts, Route } from './route.ts'
import { object } from './schema.ts'
import { sourceRoutes } from './sources.ts'
import type { Authorize } from './tokens.ts'
import { createTurns } from './turns.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks; null until that is known. */
    actor: Actor | null
  }
}

export interface ControlDeps extends ControlParts {
  authorize: Authorize
}

export const CONTROL_PREFIX = '/api'
export const MAX_CONTROL_BODY_BYTES = 1024 * 1024
/** What the router must let through: a messageId or a write key of 100 characters, each escaped. */
export const MAX_PARAM_LENGTH = 1_000

const RETRY_AFTER_SECONDS = 2
const NO_QUERY = object({})

export function controlRoutes(parts: ControlParts): Route[] {
  const shared = { ...parts, inTurn: createTurns() }
  return [sourceRoutes, destinationRoutes, ledgerRoutes, messageRoutes, deliveryRoutes, deletionRoutes].flatMap((routes) => routes(shared))
}

export async function registerControl(app: FastifyInstance, deps: ControlDeps): Promise<void> {
  const routes = controlRoutes(deps)

  await app.register(
    async (api) => {
      api.decorateRequest('actor', null)
      api.removeAllContentTypeParsers()
      // Whatever it is called: a body that is not JSON is told as such.
      api.addContentTypeParser(
        '*',
        { parseAs: 'buffer', bodyLimit: MAX_CONTROL_BODY_BYTES },
        async (_request: FastifyRequest, body: Buffer) => parseBody(body),
      )

      api.addHook('onRequest', async (request, reply) => {
        reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
        request.actor = await authorize(request, deps.authorize)
        if (request.is404) refusePath(request, reply, routes)
        const encoding = request.headers['content-encoding'] ?? 'identity'
        if (encoding !== 'identity')
          throw new ApiError('unsupported_encoding', { message: 'The control API takes bodies without Content-Encoding.' })
      })

      api.setErrorHandler(async (error, request, reply) => {
        const fault = faultOf(error)
        if (fault.status === 401) reply.header('www-authenticate', 'Bearer')
        if (fault.status === 503) reply.header('retry-after', String(RETRY_AFTER_SECONDS))
        if (fault.status >= 500) request.log.error({ err: error, method: request.method, url: request.url }, 'control request failed')
        return reply.code(fault.status).send(errorBody(fault))
      })
      api.setNotFoundHandler((request, reply) => refusePath(request, reply, routes))

      for (const route of routes) serve(api, route)
    },
    { prefix: CONTROL_PREFIX },
  )
}

function serve(api: FastifyInstance, route: Route): void {
  api.route({
    method: route.method,
    url: route.path,
    async handler(request, reply) {
      const params = request.params as Record<string, string>
      // The router takes /sources/ for a source without an id.
      if (Object.values(params).includes('')) throw new ApiError('not_found')
      const query = (route.query ?? NO_QUERY).parse(request.query, '')
      const body = route.body?.parse(request.body === undefined ? {} : request.body, '')
      const answer = await route.handle({ params, body, query, actor: actorOf(request) })
      reply.code(route.status)
      return route.status === 204 ? reply.send() : reply.send(answer)
    },
  })
}

async function authorize({ headers }: FastifyRequest, check: Authorize): Promise<Actor> {
  const [, token] = /^Bearer +([^\s]+) *$/i.exec(headers.authorization ?? '') ?? []
  const authorization = token === undefined ? null : await check(token)
  if (authorization === null) throw new ApiError('unauthorized')
  return authorization.actor
}

function actorOf({ actor }: FastifyRequest): Actor {
  if (actor === null) throw new Error('a request reached its route unauthorized')
  return actor
}

/** Throws for a path that is not there at all, and for one that does not take this method. */
function refusePath(request: FastifyRequest, reply: FastifyReply, routes: readonly Route[]): never {
  const path = (request.url.split('?', 1)[0] as string).slice(CONTROL_PREFIX.length)
  const methods = routes.filter((route) => isPathOf(route, path)).map(({ method }): string => method)
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
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown
  } catch (cause) {
    throw new ApiError('invalid_json', { cause })
  }
}

/** Everything that can go wrong on the way, as one of the table's errors. */
function faultOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof WriteKeyTaken) return new ApiError('write_key_taken')
  if (error instanceof InvalidCursor) return new ApiError('invalid_cursor', { field: 'cursor' })
  if (error instanceof StoreUnavailable) {
    return new ApiError('store_unavailable', {
      message: 'The store cannot be used now. Nothing was changed; try again after the time in Retry-After.',
    })
  }
  switch ((error as { code?: unknown } | null)?.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError('body_too_large', { message: `The body may have at most ${MAX_CONTROL_BODY_BYTES} bytes.` })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError('invalid_request', { message: 'The Content-Type header is not valid. Send application/json.' })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ApiError('invalid_request', { message: 'The body is not as long as Content-Length says.' })
    default:
      return new ApiError('internal_error', { cause: error })
  }
}
