// GET /metrics and its access control, which is needed because the metrics contain the names and the traffic of sources and destinations.

import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ApiError, errorBody } from '../errors.ts'
import { singleFlight } from '../timing/single-flight.ts'
import { METRICS_CONTENT_TYPE } from './metrics.ts'

/**
 * `token` requires a control token of any role. `local` requires no token for requests from this machine, and otherwise is like `token`.
 * With `off`, the path does not exist.
 */
export type MetricsAccess = 'open' | 'local' | 'token' | 'off'

export interface MetricsRoute {
  access: MetricsAccess
  /** Null if the other processes on the port could not be asked. */
  text: () => Promise<string | null>
  authorize: (request: IncomingMessage) => boolean | Promise<boolean>
}

/** The numbers of one process alone would look as if the other processes had been reset, so none are returned. */
const NO_TOTALS = 'The supervisor did not report the metrics of all processes in time. Try again.'

export function registerMetrics(app: FastifyInstance, { access, text, authorize }: MetricsRoute): void {
  if (access === 'off') return
  const isOpen = (request: IncomingMessage): boolean => access === 'open' || (access === 'local' && isLocal(request))
  // Concurrent scrapes share one text, so that many scrapers delay other requests no more than one does.
  const written = singleFlight(async () => {
    const all = await text()
    return all === null ? null : Buffer.from(all)
  })
  app.get('/metrics', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
    if (!isOpen(request.raw) && !(await authorize(request.raw)))
      return reply
        .code(401)
        .header('www-authenticate', 'Bearer')
        .send(errorBody(new ApiError('unauthorized')))
    const metrics = await written()
    if (metrics !== null) return reply.type(METRICS_CONTENT_TYPE).send(metrics)
    return reply
      .code(503)
      .header('retry-after', '1')
      .send(errorBody(new ApiError('overloaded', { message: NO_TOTALS })))
  })
}

/**
 * On loopback, every client is on this machine, but it may act for someone who is not. A proxy adds a forwarding header. A browser that
 * shows a page whose domain resolves to this machine (DNS rebinding) sends that domain in the Host header.
 */
function isLocal({ headers }: IncomingMessage): boolean {
  if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) return false
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i.test(headers.host ?? '')
}
