// The connections of our own request client. A connection whose answer was read to its end is kept for the next request, as long as the agent of
// Node.js would keep it. All others are closed. Each is dialled with net.connect or tls.connect, so the address guard, dial-watch.ts and the
// certificate authorities of the host apply.

import { isIP, connect as netConnect, type Socket } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import type { AnswerHead } from './plain-answer.ts'
import type { RequestTarget } from './request-target.ts'

/** The request that is in progress on a connection. */
export interface ConnectionUser {
  received: (bytes: Buffer) => void
  /** The other side has ended or closed the connection. */
  ended: () => void
  failed: (error: Error) => void
}

/** The same as in the default agent of Node.js. */
const IDLE_MS = 5_000
const KEEP_ALIVE_MS = 1_000
const MAX_IDLE_PER_ORIGIN = 256
/** A connection is kept this much shorter than a tool announces, because a request takes time to arrive. */
const MARGIN_MS = 1_000
const CHECK_MS = 1_000
const MAX_SESSIONS = 100

/** Free connections by origin; the last one is taken first. */
const idle = new Map<string, Connection[]>()
/** By origin, so that a new connection needs no full handshake. */
const sessions = new Map<string, Buffer>()
let check: NodeJS.Timeout | null = null

export function takeConnection(target: RequestTarget, user: ConnectionUser): Connection {
  const kept = idle.get(target.origin)
  const now = performance.now()
  for (let connection = kept?.pop(); connection !== undefined; connection = kept?.pop()) {
    if (connection.isFresh(now)) return connection.taken(user)
    connection.close()
  }
  return new Connection(target, user)
}

export class Connection {
  readonly #origin: string
  readonly #socket: Socket
  #user: ConnectionUser | null
  #idleUntil = 0

  constructor(target: RequestTarget, user: ConnectionUser) {
    const { origin } = target
    this.#origin = origin
    this.#user = user
    const socket = open(target)
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    // Bytes that arrive without a request are not expected, so the connection is not used again.
    socket.on('data', (bytes: Buffer) => (this.#user === null ? this.close() : this.#user.received(bytes)))
    socket.on('end', () => this.#ended())
    socket.on('close', (hadError) => {
      if (hadError) sessions.delete(origin)
      this.#ended()
    })
    socket.on('error', (error: Error) => this.#user?.failed(error))
    socket.on('session', (session: Buffer) => keepSession(origin, session))
  }

  write(head: string, body: Buffer | null): void {
    const socket = this.#socket
    if (body === null) {
      socket.write(head, 'latin1')
      return
    }
    socket.cork()
    socket.write(head, 'latin1')
    socket.write(body)
    socket.uncork()
  }

  /** From now on, another user gets the rest of the answer. */
  pass(user: ConnectionUser): void {
    this.#user = user
  }

  isFresh(now: number): boolean {
    return now < this.#idleUntil && this.#socket.writable && !this.#socket.readableEnded
  }

  taken(user: ConnectionUser): this {
    this.#user = user
    this.#socket.ref()
    return this
  }

  /** Keeps the connection, whose answer was read to its end, if the headers of the answer allow it. */
  release(headers: AnswerHead['headers']): void {
    this.#user = null
    const idleMs = idleMsOf(headers)
    if (idleMs <= 0) this.close()
    // Node.js may deliver the answer before it reports that the request was written.
    else if (this.#socket.writableLength > 0) setImmediate(() => this.#keep(idleMs))
    else this.#keep(idleMs)
  }

  #keep(idleMs: number): void {
    const kept = idle.get(this.#origin) ?? []
    // If the answer came before the whole request was sent, the rest of the request would be sent before the next one.
    if (this.#socket.writableLength > 0 || kept.length >= MAX_IDLE_PER_ORIGIN) return this.close()
    this.#idleUntil = performance.now() + idleMs
    this.#socket.unref()
    kept.push(this)
    idle.set(this.#origin, kept)
    check ??= setInterval(closeStale, CHECK_MS).unref()
  }

  close(): void {
    this.#user = null
    this.#socket.destroy()
  }

  /** Called for `end` and for `close`, but informs the user only once. */
  #ended(): void {
    const user = this.#user
    this.#user = null
    if (user === null) this.#socket.destroy()
    else user.ended()
  }
}

function open({ origin, protocol, hostname, port }: RequestTarget): Socket {
  if (protocol === 'http:') return netConnect({ host: hostname, port: Number(port ?? 80) })
  const session = sessions.get(origin)
  return tlsConnect({
    host: hostname,
    port: Number(port ?? 443),
    // An IP address must not be sent as a server name.
    servername: isIP(hostname) === 0 ? hostname : '',
    ALPNProtocols: ['http/1.1'],
    ...(session !== undefined && { session }),
  })
}

function keepSession(origin: string, session: Buffer): void {
  if (sessions.size >= MAX_SESSIONS && !sessions.has(origin)) sessions.clear()
  sessions.set(origin, session)
}

const CLOSE = /(^|,)[ \t]*close[ \t]*(,|$)/i

function idleMsOf({ connection, 'keep-alive': announced }: AnswerHead['headers']): number {
  if (connection !== undefined && CLOSE.test(String(connection))) return 0
  const [, seconds] = (announced !== undefined && /^timeout=(\d+)/.exec(String(announced))) || []
  return seconds === undefined ? IDLE_MS : Math.min(IDLE_MS, Number(seconds) * 1_000 - MARGIN_MS)
}

function closeStale(): void {
  const now = performance.now()
  for (const [origin, kept] of idle) {
    const fresh = kept.filter((connection) => connection.isFresh(now))
    for (const connection of kept) if (!fresh.includes(connection)) connection.close()
    if (fresh.length === 0) idle.delete(origin)
    else idle.set(origin, fresh)
  }
  if (idle.size > 0 || check === null) return
  clearInterval(check)
  check = null
}
