// Limits how much memory one connection can make the service hold. Node.js parses all pipelined requests of a chunk and keeps their
// responses until the client reads them, however long that takes. So the number of unanswered requests of a connection is limited, and a
// connection is closed if the client does not read for a while. Connections that wait for a response, or send no request, are not affected.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

export interface Connections {
  /** Connections without a request that Node.js does not count as idle: those that have not sent the headers of one yet. */
  silent: Set<Socket>
  /** All connections. */
  all: () => Iterable<Socket>
  /** Closes connections whose clients have not read their responses for too long. A timer calls it every few seconds. */
  sweep: (nowMs: number) => void
  /** Counts a request that Fastify does not see. Returns false if the connection has too many unanswered requests; then it is closed. */
  admit: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Stops the timer. */
  close: () => void
}

interface Watched {
  unanswered: number
  /** The bytes sent and queued when either of them last changed; `sinceMs` is the time of that change. */
  sentBytes: number
  queuedBytes: number
  sinceMs: number
}

/** Clients that use pipelining send only a few requests at a time. */
export const MAX_UNANSWERED = 64
/** A connection is closed if no byte of its pending responses was sent for this long. */
export const UNREAD_MS = 30_000
const SWEEP_EVERY_MS = 5_000

/** Call it before routes and plugins are added, so that its hooks run first. */
export function boundConnections(app: FastifyInstance): Connections {
  const connections = watchConnections(app.server)
  app.addHook('onRequest', (request, reply, next) => {
    if (connections.admit(request.raw, reply.raw)) next()
    else reply.hijack()
  })
  app.addHook('onClose', (_app, next) => {
    connections.close()
    next()
  })
  return connections
}

/** `admit` must be called for every request. */
export function watchConnections(server: Server): Connections {
  const watched = new Map<Socket, Watched>()
  const silent = new Set<Socket>()

  function watch(socket: Socket): Watched {
    const fresh: Watched = { unanswered: 0, sentBytes: -1, queuedBytes: 0, sinceMs: 0 }
    watched.set(socket, fresh)
    silent.add(socket)
    socket.once('close', () => {
      watched.delete(socket)
      silent.delete(socket)
    })
    return fresh
  }

  function answered(this: ServerResponse): void {
    const connection = watched.get(this.req.socket)
    if (connection !== undefined) connection.unanswered--
  }

  function sweep(nowMs: number): void {
    for (const [socket, connection] of watched) {
      if (socket.writableLength === 0) continue
      const sentBytes = socket.bytesWritten - socket.writableLength
      const queuedBytes = queuedIn(socket)
      if (sentBytes !== connection.sentBytes || queuedBytes !== connection.queuedBytes)
        Object.assign(connection, { sentBytes, queuedBytes, sinceMs: nowMs })
      else if (nowMs - connection.sinceMs >= UNREAD_MS) socket.destroy()
    }
  }

  function admit({ socket }: IncomingMessage, response: ServerResponse): boolean {
    // For localhost, Fastify creates a server for each of its two addresses, and `app.server` is only one of them.
    const connection = watched.get(socket) ?? watch(socket)
    if (connection.unanswered === 0) silent.delete(socket)
    if (connection.unanswered >= MAX_UNANSWERED) {
      socket.destroy()
      return false
    }
    connection.unanswered++
    response.on('close', answered)
    return true
  }

  server.on('connection', watch)
  const timer = setInterval(() => sweep(performance.now()), SWEEP_EVERY_MS)
  timer.unref()
  return { silent, all: () => watched.keys(), sweep, admit, close: () => clearInterval(timer) }
}

/** The bytes of the current write that the kernel has not accepted yet. Without them, a large response would seem stuck until all of it has been sent. */
export function queuedIn(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null }
  return handle?.writeQueueSize ?? 0
}
