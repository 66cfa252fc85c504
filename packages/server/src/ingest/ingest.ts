// The paths of the tracking API. Requests are hijacked from Fastify before it checks the content type, because a JSON body is
// accepted whatever its content type; the receiver then handles the request. Every response under /v1 has the shape of this API
// and may be read by pages of any origin. Trailing and doubled slashes in a path are ignored: Segment's Java client posts to
// /v1/import/, and a host setting that ends in a slash gives //v1/batch.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { MESSAGE_TYPES, type MessageType } from '@switchyard/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods, RouteOptions } from 'fastify'
import type { IngestDeps } from './accepting.ts'
import { answerError, answerPreflight, pathOf } from './answers.ts'
import { Deciding } from './deciding.ts'
import type { Route } from './parse-request.ts'
import { Receiver } from './receive.ts'

export type { IngestDeps, IngestSettings } from './accepting.ts'
export { rejectUnparsed } from './answers.ts'
export { MAX_BODIES_BYTES } from './receive.ts'

const PREFIX = '/v1'
const METRICS_PATH = '/m'
/** Answered with an image whatever follows it, even nothing. */
const PIXEL_PATH = '/pixel/'
/** RudderStack's browser client uses these two paths and cannot be configured otherwise. */
const SOURCE_CONFIG_PATH = '/sourceConfig'
const BEACON_PATH = '/beacon/v1/batch'
const SHORT_FORMS: Readonly<Record<MessageType, string>> = { identify: 'i', track: 't', page: 'p', screen: 's', group: 'g', alias: 'a' }
const POST_PATHS: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/batch', 'batch'],
  ['/import', 'batch'],
  ['/b', 'batch'],
  ...MESSAGE_TYPES.map((type): [string, Route] => [`/${type}`, type]),
  ...MESSAGE_TYPES.map((type): [string, Route] => [`/${SHORT_FORMS[type]}`, type]),
])

/** For Fastify's `rewriteUrl`: returns the URL under which a tracking path is registered. Other URLs stay as they are. */
export function rewriteTrackingUrl({ url = '/' }: { url?: string | undefined }): string {
  const query = url.indexOf('?')
  const end = query === -1 ? url.length : query
  const doubled = url.indexOf('//')
  if (url[end - 1] !== '/' && (doubled === -1 || doubled >= end)) return url
  let path = url.slice(0, end).replaceAll(/\/{2,}/g, '/')
  if (path.endsWith('/') && path !== `${PREFIX}${PIXEL_PATH}`) path = path.slice(0, -1)
  return isTracking(path) ? path + url.slice(end) : url
}

function isTracking(url: string): boolean {
  return url.startsWith(`${PREFIX}/`) || url === BEACON_PATH || url.startsWith(`${BEACON_PATH}?`)
}

type Handle = (raw: IncomingMessage, response: ServerResponse, request: FastifyRequest) => void

/** Makes the HTTP server call what `handlerOf` returns for a request, instead of Fastify. */
export type Bypass = (handlerOf: (request: IncomingMessage) => RequestListener | undefined) => void

/** `bypass`: for the requests that arrive most. Without it, they take the same way as all others. */
export function registerIngest(app: FastifyInstance, deps: IngestDeps, bypass?: Bypass): void {
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
    [...POST_PATHS].map(([url, route]): [string, RequestListener] => [
      `${PREFIX}${url}`,
      (request, response) => receiver.messages(request, response, route),
    ]),
  )
  bypass?.(({ method, url }) => (method === 'POST' ? direct.get(url ?? '') : undefined))
  // Without this listener, Node.js sends 100 Continue by itself.
  app.server.on('checkContinue', (request, response) => {
    if (!isTracking(rewriteTrackingUrl(request)) || !receiver.rejectsUnread(request)) response.writeContinue()
    app.server.emit('request', request, response)
  })
  void app.register(plugin, { prefix: PREFIX })
  app.route({ method: 'OPTIONS', url: BEACON_PATH, ...hijacked((_raw, response) => answerPreflight(response)) })
  app.route({ method: 'POST', url: BEACON_PATH, ...hijacked((raw, response) => receiver.beacon(raw, response)) })
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

function typeNamed(name: string): MessageType | undefined {
  return MESSAGE_TYPES.find((type) => type === name || SHORT_FORMS[type] === name)
}
