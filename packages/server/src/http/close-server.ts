// Stops accepting requests.

import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Finishes requests in progress and closes idle connections. After the grace period, closes all connections. */
export async function closeServer(app: FastifyInstance, silent: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  const forceClose = setTimeout(() => app.server.closeAllConnections(), graceMs)
  const closeIdle = setInterval(() => {
    app.server.closeIdleConnections()
    for (const socket of silent) socket.destroy()
  }, 50)
  try {
    await app.close()
  } finally {
    clearTimeout(forceClose)
    clearInterval(closeIdle)
  }
}
