// The HTTP server of the service, without routes: limits, timeouts, and what is answered to requests that no stage handles.

import type { RequestListener } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import { MAX_PARAM_LENGTH } from '../control/control.ts'
import { ApiError, errorBody } from '../errors.ts'
import { boundConnections, type Connections } from '../http/connections.ts'
import { hasSeveralHosts } from '../http/proxies.ts'
import { serverTimeouts } from '../http/server-timeouts.ts'
import { rejectUnparsed, rewriteTrackingUrl, type ShortWays } from '../ingest/ingest.ts'
import type { Log } from '../logging/log.ts'

export interface HttpServerOptions {
  /** The timeout for receiving the body of a request. */
  bodyTimeoutMs: number
  /** Called for every route that is registered. */
  onRoute?: ((route: { method: string | string[]; url: string }) => void) | undefined
}

export interface HttpServer {
  app: FastifyInstance
  connections: Connections
  /** Set by the stage that has pages. */
  pages: { sendNotFound?: (reply: FastifyReply) => FastifyReply }
  /** Handles requests before Fastify does, if `handlerOf` returns a function for them. */
  bypass: NonNullable<ShortWays['bypass']>
}

export function createHttpServer(log: Log, { bodyTimeoutMs, onRoute }: HttpServerOptions): HttpServer {
  const { requestTimeout, headersTimeout, connectionsCheckingInterval, keepAliveTimeout } = serverTimeouts(bodyTimeoutMs)
  const app = fastify({
    loggerInstance: log,
    // One logger for all requests: nothing is logged per request, so a child logger for each would be wasted.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    // No route has a schema for Fastify. By default, it would load two compilers for them at every start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    clientErrorHandler: rejectUnparsed,
    rewriteUrl: rewriteTrackingUrl,
    // For paths that cannot be decoded. Fastify rejects them before it looks for a route.
    frameworkErrors: (_error, _request, reply: FastifyReply) => {
      void reply
        .code(400)
        .send(
          errorBody(new ApiError('invalid_request', { message: 'The path or the query string is not valid. Check its percent-encoding.' })),
        )
    },
    requestTimeout,
    http: { headersTimeout, connectionsCheckingInterval },
    keepAliveTimeout,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  }) as unknown as FastifyInstance
  if (onRoute) app.addHook('onRoute', onRoute)
  const connections = boundConnections(app)
  // Bodies for unknown paths, and for paths that expect none, are not read: they would only use memory and be discarded.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, next) => next(null))
  app.addHook('onRequest', (request, reply, next) => {
    if (!hasSeveralHosts(request.raw)) return next()
    void reply
      .code(400)
      .send(errorBody(new ApiError('invalid_request', { message: 'The request has more than one Host header. Send exactly one.' })))
  })
  const pages: HttpServer['pages'] = {}
  app.setNotFoundHandler((request, reply) => {
    // Somebody who mistyped an address gets a page. Programs get JSON.
    const isForPeople = request.method === 'GET' && (request.headers.accept ?? '').includes('text/html')
    if (isForPeople && pages.sendNotFound !== undefined) return pages.sendNotFound(reply)
    return reply.code(404).send(errorBody(new ApiError('not_found')))
  })
  app.setErrorHandler((error, request, reply) => {
    // Anyone can send such requests, for example a body that cannot be read for a path that does not exist. They are not logged.
    if (((error as { statusCode?: number }).statusCode ?? 500) < 500)
      return reply.code(400).send(errorBody(new ApiError('invalid_request')))
    request.log.error({ err: error }, 'a request failed')
    return reply.code(500).send(errorBody(new ApiError('internal_error')))
  })
  return { app, connections, pages, bypass: createBypass(app, connections.admit) }
}

/**
 * Fastify's own work for a request takes as long as parsing and checking a message. What it does for every request is done here too: the hooks above, and
 * the header by which clients close their connections while the service stops, for which it gets the request.
 */
function createBypass(app: FastifyInstance, admit: Connections['admit']): HttpServer['bypass'] {
  let isClosing = false
  app.addHook('preClose', (done) => {
    isClosing = true
    done()
  })
  return (handlerOf) => {
    const { server } = app
    const [viaFastify] = server.listeners('request') as RequestListener[]
    server.removeAllListeners('request')
    server.on('request', (request, response) => {
      const handle = isClosing || hasSeveralHosts(request) ? undefined : handlerOf(request)
      if (handle === undefined) viaFastify?.(request, response)
      else if (admit(request, response)) {
        // Without a listener, an error of a response would end the process. Fastify has one too.
        response.on('error', () => {})
        handle(request, response)
      }
    })
  }
}

function noSchemas(): never {
  throw new Error('routes check their input themselves and must not have a schema for Fastify')
}
