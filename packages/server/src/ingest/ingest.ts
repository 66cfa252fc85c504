// The paths of the tracking API. Requests are hijacked from Fastify before it checks the content type, because a JSON body is
// accepted whatever its content type; the receiver then handles the request. Every response under /v1 has the shape of this API
// and may be read by pages of any origin.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods, RouteOptions } from 'fastify'
import type { IngestDeps } from './accepting.ts'
import { answerError, answerPreflight, pathOf } from './answers.ts'
import { Deciding } from './deciding.ts'
import {
  BEACON_PATH,
  DIRECT_PATHS,
  isTracking,
  METRICS_PATH,
  PIXEL_PATH,
  POST_PATHS,
  PREFIX,
  rewriteTrackingUrl,
  SOURCE_CONFIG_PATH,
  typeNamed,
} from './paths.ts'
import { PlainConnections } from './plain/plain-connections.ts'
import { Receiver } from './receive.ts'

export type { IngestDeps, IngestSettings } from './accepting.ts'
export { rejectUnparsed } from './answers.ts'
export type { Deciding } from './deciding.ts'
export { rewriteTrackingUrl } from './paths.ts'
export { MAX_BODIES_BYTES } from './receive.ts'

type Handle = (raw: IncomingMessage, response: ServerResponse, request: FastifyRequest) => void

/** Shorter ways for the requests that arrive most. Without them, these take the same way as all others. */
export interface ShortWays {
  /** Makes the HTTP server call what `handlerOf` returns for a request, instead of Fastify. */
  bypass?: (handlerOf: (request: IncomingMessage) => RequestListener | undefined) => void
  /** If given, plain requests are read without node:http. The connections that have no request are in it: see PlainOptions. */
  silent?: Set<Socket>
}

/** Returns what decides about requests, for those that ingest threads read. */
export function registerIngest(app: FastifyInstance, deps: IngestDeps, { bypass, silent }: ShortWays = {}): Deciding {
  const deciding = new Deciding(deps, (error) => app.log.error({ err: error }, 'a request to the tracking API failed'))
  const receiver = new Receiver(deps, deciding)
  const plugin = (scope: FastifyInstance, _options: unknown, done: () => void): void => {
    const on = (method: HTTPMethods[], url: string, handle: Handle): void => void scope.route({ method, url, ...hijacked(handle) })
    for (const [url, route] of POST_PATHS) on(['POST'], url, (raw, response) => receiver.messages(raw, response, route))
    on(['POST'], METRICS_PATH, (raw, response) => receiver.ignored(raw, response))
    on(['GET', 'HEAD'], `${PIXEL_PATH}:type`, (raw, response, { params }) =>
      receiver.pixel(raw, response, typeNamed((params as { type: string }).type)),
    )
    on(['GET', 'HEAD'], '/projects/:writeKey/settings', (raw, response, { params }) =>
      receiver.settings(raw, response, (params as { writeKey: string }).writeKey),
    )
    on(['GET', 'HEAD'], SOURCE_CONFIG_PATH, (raw, response) => receiver.sourceConfig(raw, response))
    on([...scope.supportedMethods] as HTTPMethods[], '/*', answerUnrouted)
    // For methods that Fastify does not route.
    scope.setNotFoundHandler((request, reply) => {
      reply.hijack()
      answerUnrouted(request.raw, reply.raw)
    })
    done()
  }
  const direct = new Map(
    [...DIRECT_PATHS].map(([path, route]): [string, RequestListener] => [
      path,
      (request, response) => receiver.messages(request, response, route),
    ]),
  )
  bypass?.(({ method, url }) => (method === 'POST' ? direct.get(url ?? '') : undefined))
  if (silent !== undefined) {
    const plain = new PlainConnections({ server: app.server, silent, handler: receiver.plain(DIRECT_PATHS) })
    app.addHook('preClose', (done) => {
      plain.close()
      done()
    })
  }
  // Without this listener, Node.js sends 100 Continue by itself.
  app.server.on('checkContinue', (request, response) => {
    if (!isTracking(rewriteTrackingUrl(request)) || !receiver.rejectsUnread(request)) response.writeContinue()
    app.server.emit('request', request, response)
  })
  void app.register(plugin, { prefix: PREFIX })
  app.route({ method: 'OPTIONS', url: BEACON_PATH, ...hijacked((_raw, response) => answerPreflight(response)) })
  app.route({ method: 'POST', url: BEACON_PATH, ...hijacked((raw, response) => receiver.beacon(raw, response)) })
  return deciding
}

// In onRequest, which runs before Fastify reads the body: Fastify rejects content types and has no deadline.
function hijacked(handle: Handle): Pick<RouteOptions, 'onRequest' | 'handler'> {
  return {
    onRequest(request: FastifyRequest, reply: FastifyReply) {
      reply.hijack()
      handle(request.raw, reply.raw, request)
    },
    handler() {},
  }
}

/** Answers a preflight request, a method that the path does not support, or a path that does not exist. */
function answerUnrouted(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === 'OPTIONS') {
    answerPreflight(response)
    return
  }
  const path = pathOf(request).slice(PREFIX.length)
  const isPost = POST_PATHS.has(path) || path === METRICS_PATH
  const isGet = path === SOURCE_CONFIG_PATH || /^\/pixel\/[^/]+$|^\/projects\/[^/]+\/settings$/.test(path)
  if (!isPost && !isGet) answerError(response, 'not_found')
  else answerError(response, 'method_not_allowed', { headers: ['Allow', isPost ? 'POST, OPTIONS' : 'GET, HEAD, OPTIONS'] })
}
