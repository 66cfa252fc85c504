// GET /healthz and /readyz, for load balancers and probes, without a token. An error of the database can contain hosts, users and
// paths, so only callers with a control token see it. Each check commits a transaction; concurrent requests share one check.

import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ApiError, errorBody } from '../errors.ts'

export interface Readiness {
  /** Whether the store can commit now. */
  check: () => Promise<{ ok: true } | { ok: false; message: string }>
  authorize: (request: IncomingMessage) => boolean | Promise<boolean>
}

const NOT_READY = 'The store cannot be written to. See the log for the reason, or send this request with a control token.'

export function registerReadiness(app: FastifyInstance, { check, authorize }: Readiness): void {
  let checking: ReturnType<Readiness['check']> | null = null
  app.get('/healthz', () => ({ success: true }))
  app.get('/readyz', async (request, reply) => {
    checking ??= check().finally(() => {
      checking = null
    })
    const state = await checking
    if (state.ok) return { success: true }
    const isAuthorized = request.raw.headers.authorization !== undefined && (await authorize(request.raw))
    return reply
      .code(503)
      .header('retry-after', '1')
      .send(errorBody(new ApiError('store_unavailable', { message: isAuthorized ? state.message : NOT_READY })))
  })
}
