// What one connection may make the service hold. Node.js parses all requests of a chunk that were sent ahead (pipelined) and keeps their
// answers until they are read, for as long as the other side likes. So a connection may have so many requests unanswered, and is
// closed when it has not read for a while. One that waits for an answer, or for the next request, is not concerned.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

export interface Connections {
  /** Those that have not sent the head of a request. Node.js counts as idle only those that have. */
  silent: ReadonlySet<Socket>
  /** Closes those whose answers were not read for too long. Called by itself every few seconds. */
  sweep: (nowMs: number) => void
}

interface Watched {
  unanswered: number
  /** How far the answers had come when they last moved, and when that was. */
  sentBytes: number
  queuedBytes: number
  sinceMs: number
}

/** Clients that pipeline at all send a handful. */
export const MAX_UNANSWERED = 64
/** In which not one byte of what is waiting has left. */
export const UNREAD_MS = 30_000
const SWEEP_EVERY_MS = 5_000

/** To be called before routes and plugins are added, so that it comes before them. */
export function boundConnections(app: FastifyInstance): Connections {
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

  app.server.on('connection', watch)
  app.addHook('onRequest', (request, reply, next) => {
    const { socket } = request.raw
    // Fastify listens on both addresses of localhost with a server each, and shows only one of them.
    const connection = watched.get(socket) ?? watch(socket)
    if (connection.unanswered === 0) silent.delete(socket)
    if (connection.unanswered >= MAX_UNANSWERED) {
      reply.hijack()
      socket.destroy()
      return
    }
    connection.unanswered++
    reply.raw.on('close', answered)
    next()
  })
  const timer = setInterval(() => sweep(performance.now()), SWEEP_EVERY_MS)
  timer.unref()
  app.addHook('onClose', (_app, next) => {
    clearInterval(timer)
    next()
  })
  return { silent, sweep }
}

/** What of the write under way the kernel has not taken yet: only so a large answer is seen to move before all of it has left. */
export function queuedIn(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null }
  return handle?.writeQueueSize ?? 0
}
