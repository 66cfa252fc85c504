// The tracking API's paths. They are taken over from Fastify before it looks at a content type, because a body that is JSON
// is accepted whatever it is called; what happens to a request then is the receiver's. Nothing under /v1 is answered in
// another shape than the API's own, nor without letting pages of any origin read it. Trailing and doubled slashes in a
// path are ignored: Segment's Java client posts to /v1/import/, and a host setting that ends in a slash gives //v1/batch.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { MESSAGE_TYPES, type MessageType } from '@switchyard/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { answerError, answerPreflight, pathOf } from './answers.ts'
import type { Route } from './parse-request.ts'
import { createReceiver, type IngestDeps } from './receive.ts'

export { rejectUnparsed } from './answers.ts'
export { type IngestDeps, type IngestSettings, MAX_BODIES_BYTES } from './receive.ts'

const PREFIX = '/v1'
const METRICS_PATH = '/m'
/** Answered with an image whatever comes behind it, even nothing. */
const PIXEL_PATH = '/pixel/'
/** These two are RudderStack's browser client's, which puts them there itself. */
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

export function registerIngest(app: FastifyInstance, deps: IngestDeps): void {
  const receiver = createReceiver(deps, (error) => app.log.error({ err: error }, 'a request to the tracking API failed'))
  const plugin = (scope: FastifyInstance, _options: unknown, done: () => void): void => {
    for (const [url, route] of POST_PATHS) {
      scope.route({ method: 'POST', url, ...takenOver((raw, response) => receiver.messages(raw, response, route)) })
    }
    scope.route({ method: 'POST', url: METRICS_PATH, ...takenOver((raw, response) => receiver.ignored(raw, response)) })
    scope.route({
      method: ['GET', 'HEAD'],
      url: `${PIXEL_PATH}:type`,
      ...takenOver((raw, response, request) => receiver.pixel(raw, response, typeNamed((request.params as { type: string }).type))),
    })
    scope.route({
      method: ['GET', 'HEAD'],
      url: '/projects/:writeKey/settings',
      ...takenOver((raw, response, request) => receiver.settings(raw, response, (request.params as { writeKey: string }).writeKey)),
    })
    scope.route({
      method: ['GET', 'HEAD'],
      url: SOURCE_CONFIG_PATH,
      ...takenOver((raw, response) => receiver.sourceConfig(raw, response)),
    })
    scope.route({ method: [...scope.supportedMethods], url: '/*', ...takenOver(answerElsewhere) })
    // For methods that Fastify does not route.
    scope.setNotFoundHandler((request, reply) => {
      reply.hijack()
      answerElsewhere(request.raw, reply.raw)
    })
    done()
  }
  // Node.js asks for the body by itself where nobody listens to this.
  app.server.on('checkContinue', (request, response) => {
    if (!isTracking(rewriteTrackingUrl(request)) || !receiver.refusesUnread(request)) response.writeContinue()
    app.server.emit('request', request, response)
  })
  void app.register(plugin, { prefix: PREFIX })
  app.route({ method: 'OPTIONS', url: BEACON_PATH, ...takenOver((_raw, response) => answerPreflight(response)) })
  app.route({ method: 'POST', url: BEACON_PATH, ...takenOver((raw, response) => receiver.beacon(raw, response)) })
}

// In onRequest, which comes before Fastify's own reading: that refuses content types and knows no deadline.
function takenOver(handle: Handle): Pick<RouteOptions, 'onRequest' | 'handler'> {
  return {
    onRequest(request: FastifyRequest, reply: FastifyReply) {
      reply.hijack()
      handle(request.raw, reply.raw, request)
    },
    handler() {},
  }
}

/** A preflight; a method that a path does not take; a path that there is not. */
function answerElsewhere(request: IncomingMessage, response: ServerResponse): void {
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
