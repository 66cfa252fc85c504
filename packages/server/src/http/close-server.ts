// Stops accepting requests.

import type { FastifyInstance } from 'fastify'
import type { Connections } from './connections.ts'

/** Finishes requests in progress and closes idle connections. After the grace period, closes all connections. */
export async function closeServer(
  app: FastifyInstance,
  { silent, all }: Pick<Connections, 'silent' | 'all'>,
  graceMs: number,
): Promise<void> {
  const forceClose = setTimeout(() => {
    app.server.closeAllConnections()
    // Node.js does not know those that bring plain requests.
    for (const socket of all()) socket.destroy()
  }, graceMs)
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
