// The HTTP server of the service, without routes: limits, timeouts, and what is answered to requests that no stage handles.

import fastify, { type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import { MAX_PARAM_LENGTH } from '../control/control.ts'
import { ApiError, errorBody } from '../errors.ts'
import { boundConnections } from '../http/connections.ts'
import { hasSeveralHosts } from '../http/proxies.ts'
import { rejectUnparsed, rewriteTrackingUrl } from '../ingest/ingest.ts'
import type { Log } from '../logging/log.ts'

export interface HttpServerOptions {
  /** The timeout for receiving the body of a request. */
  bodyTimeoutMs: number
  /** Called for every route that is registered. */
  onRoute?: ((route: { method: string | string[]; url: string }) => void) | undefined
}

export interface HttpServer extends Pick<ReturnType<typeof boundConnections>, 'silent'> {
  app: FastifyInstance
}

export function createHttpServer(log: Log, { bodyTimeoutMs, onRoute }: HttpServerOptions): HttpServer {
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
    // 1.5 times the body timeout, so that the tracking API responds with its own error first. Node.js applies the longer of the two
    // timeouts to the whole request, so headersTimeout, which is a minute by default, must be the shorter one. Node.js only checks
    // the timeouts at an interval.
    requestTimeout: 1.5 * bodyTimeoutMs,
    http: { headersTimeout: bodyTimeoutMs, connectionsCheckingInterval: bodyTimeoutMs / 2 },
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  }) as unknown as FastifyInstance
  if (onRoute) app.addHook('onRoute', onRoute)
  const { silent } = boundConnections(app)
  // Bodies for unknown paths, and for paths that expect none, are not read: they would only use memory and be discarded.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, next) => next(null))
  app.addHook('onRequest', (request, reply, next) => {
    if (!hasSeveralHosts(request.raw)) return next()
    void reply
      .code(400)
      .send(errorBody(new ApiError('invalid_request', { message: 'The request has more than one Host header. Send exactly one.' })))
  })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send(errorBody(new ApiError('not_found'))))
  app.setErrorHandler((error, request, reply) => {
    // Anyone can send such requests, for example a body that cannot be read for a path that does not exist. They are not logged.
    if (((error as { statusCode?: number }).statusCode ?? 500) < 500)
      return reply.code(400).send(errorBody(new ApiError('invalid_request')))
    request.log.error({ err: error }, 'a request failed')
    return reply.code(500).send(errorBody(new ApiError('internal_error')))
  })
  return { app, silent }
}

function noSchemas(): never {
  throw new Error('routes check their input themselves and must not have a schema for Fastify')
}
