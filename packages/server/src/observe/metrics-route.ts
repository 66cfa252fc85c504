// GET /metrics, and who may read it: it names sources and destinations and tells how much they send.

import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ApiError, errorBody } from '../errors.ts'
import { METRICS_CONTENT_TYPE } from './metrics.ts'

/**
 * `token`: with a control token of any role. `local`: open to what was sent on this machine to this machine, else as `token`.
 * `off`: as if there were no such path.
 */
export type MetricsAccess = 'open' | 'local' | 'token' | 'off'

export interface MetricsRoute {
  access: MetricsAccess
  text: () => Promise<string>
  authorize: (request: IncomingMessage) => boolean
}

export function registerMetrics(app: FastifyInstance, { access, text, authorize }: MetricsRoute): void {
  if (access === 'off') return
  const isOpen = (request: IncomingMessage): boolean => access === 'open' || (access === 'local' && isLocal(request))
  let writing: Promise<Buffer> | null = null
  app.get('/metrics', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
    if (!isOpen(request.raw) && !authorize(request.raw))
      return reply
        .code(401)
        .header('www-authenticate', 'Bearer')
        .send(errorBody(new ApiError('unauthorized')))
    // Scrapes that come together share one text: however many ask, calls wait for one.
    writing ??= text()
      .then((all) => Buffer.from(all))
      .finally(() => {
        writing = null
      })
    return reply.type(METRICS_CONTENT_TYPE).send(await writing)
  })
}

/**
 * On loopback whoever connects is on this machine, but may speak for somebody who is not: a proxy, which says so, or a browser
 * with a page of a name that was made to point here, and then Host has that name.
 */
function isLocal({ headers }: IncomingMessage): boolean {
  if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) return false
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i.test(headers.host ?? '')
}
