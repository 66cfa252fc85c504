// Serves the connections of a server as long as they bring plain requests (plain-head.ts), which cost half as much as with node:http: no request and
// response objects, no streams, no timers. The first request that is not plain, or does not arrive at once, is given to Node.js with everything that
// follows it on its connection. So this file needs no limits and no errors of its own for what is unusual. Invariants: a connection has at
// most one request here that is not answered; bytes are given to Node.js in the order in which they arrived, and none twice.

import { type Server, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import { type PlainHead, readPlainHead } from './plain-head.ts'

export interface PlainHandler {
  /** Whether it handles a request with this head. If not, Node.js gets it. */
  takes(head: PlainHead): boolean
  /** Must call `answer` of the connection once. */
  handle(connection: PlainConnection, head: PlainHead, body: Buffer): void
}

export interface PlainOptions {
  server: Server
  /** Connections that Node.js does not count as idle: those without a request are kept in it. */
  silent: Set<Socket>
  handler: PlainHandler
  nowMs?: () => number
}

/** The largest request. It has room for the usual batches; larger ones arrive in many pieces, which Node.js collects within its limits. */
const MAX_REQUEST_BYTES = 64 * 1024
/** Some clients send the head and the body of a request separately. */
const MAX_PIECES = 4
/** The bytes of all incomplete requests together. Beyond, Node.js gets incomplete requests at once. */
const MAX_INCOMPLETE_BYTES = 4 * 1024 * 1024
/**
 * What clients have sent before their last request was answered, together, with what the sockets hold. Beyond, such a connection is closed: nobody needs to
 * send more than one request at a time over each of hundreds of connections.
 */
const MAX_AHEAD_BYTES = 32 * 1024 * 1024
/** A connection without a complete request is given to Node.js after this time, whose timeouts then apply. */
const COMPLETE_WITHIN_MS = 1_000
const SWEEP_EVERY_MS = 1_000
/** Node.js closes an idle connection this much later than it announces. */
const KEEP_ALIVE_MARGIN_MS = 1_000
const EMPTY: Buffer = Buffer.alloc(0)

export class PlainConnections {
  readonly silent: Set<Socket>
  readonly handler: PlainHandler
  readonly nowMs: () => number
  readonly keepAliveMs: number
  /** What answers say about a connection that is kept. */
  readonly keepAlive: string
  readonly #server: Server
  readonly #toNode: (socket: Socket) => void
  readonly #connections = new Set<PlainConnection>()
  readonly #timer: NodeJS.Timeout
  incompleteBytes = 0
  aheadBytes = 0
  isClosing = false

  constructor({ server, silent, handler, nowMs = () => performance.now() }: PlainOptions) {
    this.#server = server
    this.silent = silent
    this.handler = handler
    this.nowMs = nowMs
    this.keepAliveMs = server.keepAliveTimeout
    const seconds = Math.floor(this.keepAliveMs / 1_000)
    this.keepAlive = `Connection: keep-alive${this.keepAliveMs > 0 ? `\r\nKeep-Alive: timeout=${seconds}` : ''}`
    const [ofNode] = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
    if (ofNode === undefined) throw new Error('the HTTP server does not listen to its connections')
    this.#toNode = (socket) => ofNode.call(server, socket)
    server.removeListener('connection', ofNode)
    server.on('connection', this.#onConnection)
    this.#timer = setInterval(() => this.sweep(), SWEEP_EVERY_MS)
    this.#timer.unref()
  }

  readonly #onConnection = (socket: Socket): void => {
    // Ingest threads pass on connections that are no sockets.
    if (this.isClosing || !(socket instanceof Socket)) this.#toNode(socket)
    else this.#connections.add(new PlainConnection(socket, this))
  }

  /** A timer calls it every second. */
  sweep(): void {
    const nowMs = this.nowMs()
    for (const connection of this.#connections) connection.check(nowMs)
  }

  leave(connection: PlainConnection): void {
    this.#connections.delete(connection)
    this.#toNode(connection.socket)
  }

  /** The client has ended the connection within a request. It gets the answer that Node.js lets the service give then. */
  endedWithin(socket: Socket): void {
    this.#server.emit('clientError', new Error('the connection ended within a request'), socket)
  }

  closed(connection: PlainConnection): void {
    this.#connections.delete(connection)
  }

  /** Closes connections without a request. The others are closed after their answer: by Node.js, if their request is not complete. */
  close(): void {
    this.isClosing = true
    clearInterval(this.#timer)
    for (const connection of this.#connections) connection.closeIfIdle()
  }
}

export class PlainConnection {
  readonly socket: Socket
  readonly #all: PlainConnections
  /** What has arrived and belongs to no request that was handled. */
  #pending = EMPTY
  /** Whether it arrived before the last request was answered. */
  #isAhead = false
  #pieces = 0
  /** When it became idle, or the first bytes of an incomplete request arrived. */
  #sinceMs: number
  #hasServed = false
  /** The request that is not answered; null if there is none. */
  #current: PlainHead | null = null
  #answered: (() => void)[] | null = null

  constructor(socket: Socket, all: PlainConnections) {
    this.socket = socket
    this.#all = all
    this.#sinceMs = all.nowMs()
    socket.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError).on('close', this.#onClose)
  }

  /** Calls `ended` when the current request has been answered, or the connection is closed. */
  onAnswered(ended: () => void): void {
    this.#answered ??= []
    this.#answered.push(ended)
  }

  /** Answers the current request. `headers`: names and values in turn, without those that every response has. */
  answer(status: number, headers: readonly string[], text: string): void {
    const current = this.#current
    if (current === null) return
    const { socket } = this
    const closes = headers.includes('Connection')
    const isLast = current.isLast || this.#all.isClosing || closes
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
    for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`
    head += `Date: ${dateNow()}\r\n`
    if (!closes) head += `${isLast ? 'Connection: close' : this.#all.keepAlive}\r\n`
    const isFlushed = socket.writable ? socket.write(`${head}\r\n${text}`) : true
    this.#ended()
    if (isLast) this.#close()
    else if (this.#pending.length > 0) this.#leave()
    else this.#waitForNext(isFlushed)
  }

  /** When the answer is sent. What arrives until then is no request. */
  #close(): void {
    this.#all.closed(this)
    this.#keep(EMPTY)
    this.socket.off('data', this.#onData).resume()
    this.socket.destroySoon()
  }

  closeIfIdle(): void {
    if (this.#current !== null) return
    if (this.#pending.length === 0) this.socket.destroy()
    else {
      // Those that wait for a request are closed while the service stops.
      this.#all.silent.delete(this.socket)
      this.#leave()
    }
  }

  #waitForNext(isFlushed: boolean): void {
    if (this.socket.destroyed) return
    this.#sinceMs = this.#all.nowMs()
    this.#all.silent.add(this.socket)
    if (isFlushed) return
    // The client does not read its responses. connections.ts closes the connection if that goes on.
    this.socket.pause()
    this.socket.once('drain', () => this.socket.resume())
  }

  #ended(): void {
    this.#current = null
    const answered = this.#answered
    this.#answered = null
    if (answered !== null) for (const ended of answered) ended()
  }

  /** Gives the connection to Node.js if it has no complete request in time, and closes it if it has been idle for too long. */
  check(nowMs: number): void {
    if (this.#current !== null) return
    const waitedMs = nowMs - this.#sinceMs
    if (this.#pending.length > 0 || !this.#hasServed) {
      if (waitedMs > COMPLETE_WITHIN_MS) this.#leave()
    } else if (this.#all.keepAliveMs > 0 && waitedMs > this.#all.keepAliveMs + KEEP_ALIVE_MARGIN_MS) this.socket.destroy()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#current === null) return this.#read(this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]))
    // The client does not wait for the answer. Node.js gets this after it. A paused socket still reads until its buffer is full.
    this.socket.pause()
    this.#keep(Buffer.concat([this.#pending, chunk]))
    if (this.#all.aheadBytes > MAX_AHEAD_BYTES) this.socket.destroy()
  }

  readonly #onEnd = (): void => {
    if (this.#pending.length > 0 && this.#current === null) this.#all.endedWithin(this.socket)
    else this.socket.end()
  }

  /** The event `close` follows. */
  readonly #onError = (): void => undefined

  readonly #onClose = (): void => {
    this.#keep(EMPTY)
    this.#all.closed(this)
    this.#ended()
  }

  #read(bytes: Buffer): void {
    const head = readPlainHead(bytes)
    if (head === 'incomplete') return this.#waitForRest(bytes)
    const isTaken = head !== 'unusual' && !this.#all.isClosing && this.#all.handler.takes(head)
    const end = isTaken ? head.headBytes + head.bodyBytes : 0
    // More than one request, from a client that does not wait for answers, is for Node.js too.
    if (!isTaken || end > MAX_REQUEST_BYTES || bytes.length > end) {
      this.#keep(bytes)
      return this.#leave()
    }
    if (bytes.length < end) return this.#waitForRest(bytes)
    this.#keep(EMPTY)
    this.#pieces = 0
    this.#hasServed = true
    this.#current = head
    this.#all.silent.delete(this.socket)
    this.#all.handler.handle(this, head, bytes.subarray(head.headBytes))
  }

  #waitForRest(bytes: Buffer): void {
    if (this.#pieces === 0) this.#sinceMs = this.#all.nowMs()
    this.#pieces++
    this.#keep(bytes)
    if (this.#pieces >= MAX_PIECES || this.#all.incompleteBytes > MAX_INCOMPLETE_BYTES) this.#leave()
  }

  #keep(bytes: Buffer): void {
    if (this.#isAhead) this.#all.aheadBytes -= this.#pending.length + this.socket.readableHighWaterMark
    else this.#all.incompleteBytes -= this.#pending.length
    this.#pending = bytes
    this.#isAhead = bytes.length > 0 && this.#current !== null
    if (this.#isAhead) this.#all.aheadBytes += bytes.length + this.socket.readableHighWaterMark
    else this.#all.incompleteBytes += bytes.length
  }

  #leave(): void {
    const { socket } = this
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError).off('close', this.#onClose)
    const bytes = this.#pending
    this.#keep(EMPTY)
    // Node.js begins to read the bytes when the socket is resumed, after those that are put back.
    socket.pause()
    if (bytes.length > 0 && !socket.destroyed) socket.unshift(bytes)
    this.#all.leave(this)
    socket.resume()
  }
}

let dateSecond = Number.NaN
let dateText = ''

/** The value of the header Date, made once a second. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1_000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1_000).toUTCString()
  }
  return dateText
}
