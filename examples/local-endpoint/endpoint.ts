// The HTTP half of the local endpoint: routes, answers, start and stop. It answers as the tracking API does and hands
// what arrived to its caller. It keeps nothing, drops no duplicates, checks no key beyond its presence, and knows only
// the paths that server-side clients use.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, type Message } from '@switchyard/protocol'
import { parseRequest, type RejectedMessage, type Route, routeOf } from './parse-request.ts'
import { errorBody, type Problem, type ProblemCode, problem } from './problems.ts'
import { type BodyRead, readBody } from './read-body.ts'

export interface Arrival {
  writeKey: string
  receivedAtMs: number
}

/** A message that was refused; without an index, the whole request. */
export interface Rejection extends Omit<RejectedMessage, 'index'> {
  index: number | undefined
}

export interface LocalEndpointOptions {
  /** Default: 127.0.0.1. */
  host?: string | undefined
  /** Default: 0, which picks a free one. */
  port?: number | undefined
  /** Called for every good message. The answer waits for a promise it returns. */
  onMessage?: ((message: Message, arrival: Arrival) => unknown) | undefined
  onRejected?: ((rejection: Rejection) => void) | undefined
  /** Most milliseconds that a request's body may take to arrive. Default: 10,000. */
  bodyTimeoutMs?: number | undefined
}

export interface LocalEndpoint {
  /** `http://127.0.0.1:8080`: where a client on this machine finds it. */
  url: string
  host: string
  port: number
  /** Takes no new connections, lets requests under way finish for a second, and resolves when all are closed. */
  close(): Promise<void>
}

interface Answer {
  status: number
  body: { [key: string]: unknown }
  headers?: Record<string, string>
}

const CLOSE_GRACE_MS = 1_000

/** Rejects when it cannot listen, with the error of node:net. */
export async function createLocalEndpoint(options: LocalEndpointOptions = {}): Promise<LocalEndpoint> {
  const { host = '127.0.0.1', port = 0, bodyTimeoutMs = 10_000 } = options
  const timeouts = { headersTimeout: bodyTimeoutMs, requestTimeout: bodyTimeoutMs + 1_000, connectionsCheckingInterval: 500 }
  const server = createServer(timeouts, (request, response) => {
    void answerTo(request, options, bodyTimeoutMs)
      .catch((error: unknown) => {
        console.error(error)
        return refusedWith(problem('internal_error'), {})
      })
      .then((answer) => {
        // A connection kept alive by an endpoint that is closing would hold it open.
        if (answer && !response.destroyed) write(response, answer, server.listening)
      })
  })
  server.on('clientError', refuseUnparsed)
  await listen(server, host, port)
  const address = server.address() as AddressInfo
  return { url: urlOf(address), host: address.address, port: address.port, close: () => close(server) }
}

function write(response: ServerResponse, { status, body, headers }: Answer, keepAlive: boolean): void {
  const text = `${JSON.stringify(body)}\n`
  response.shouldKeepAlive &&= keepAlive
  // node:http leaves out the body of an answer to HEAD by itself.
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...headers }).end(text)
}

/** Undefined when there is nobody left to answer. */
async function answerTo(request: IncomingMessage, options: LocalEndpointOptions, bodyTimeoutMs: number): Promise<Answer | undefined> {
  const path = (request.url ?? '/').split('?', 1)[0] as string
  if (path === '/healthz') {
    return isOneOf(request.method, ['GET', 'HEAD']) ? { status: 200, body: { success: true } } : wrongMethod('GET, HEAD', options)
  }
  const route = routeOf(path)
  if (route === undefined) return refusedWith(problem('not_found'), options)
  if (request.method !== 'POST') return wrongMethod('POST', options)
  const maxBytes = route === 'batch' ? MAX_BATCH_BYTES : MAX_MESSAGE_BYTES
  const read = await readBody(request, { maxBytes, timeoutMs: bodyTimeoutMs })
  if (!read.ok) return read.reason === 'gone' ? undefined : unread(read.reason, route, options)
  const receivedAtMs = Date.now()
  const parsed = parseRequest(route, read.bytes, request.headers.authorization)
  if (!parsed.ok) return refusedWith(parsed, options)
  const { messages, rejected, writeKey } = parsed
  for (const message of messages) await options.onMessage?.(message, { writeKey, receivedAtMs })
  for (const each of rejected) options.onRejected?.(route === 'batch' ? each : { ...each, index: undefined })
  return outcome(route, messages.length, rejected)
}

function outcome(route: Route, accepted: number, rejected: RejectedMessage[]): Answer {
  const [first] = rejected
  if (first === undefined) return { status: 200, body: { success: true } }
  if (accepted > 0) return { status: 200, body: { success: true, accepted, rejected } }
  // None was good: the answer is that of the first, and a batch's also says what is wrong with each.
  return { status: 400, body: route === 'batch' ? { ...errorBody(first), rejected } : errorBody(first) }
}

function unread(reason: Exclude<(BodyRead & { ok: false })['reason'], 'gone'>, route: Route, options: LocalEndpointOptions): Answer {
  switch (reason) {
    case 'too_large':
      return refusedWith(problem(route === 'batch' ? 'batch_too_large' : 'message_too_large'), options)
    case 'timeout':
      // What is still to come on this connection is the rest of that body, so it cannot be used again.
      return refusedWith(problem('request_timeout'), options, { Connection: 'close' })
    case 'bad_gzip':
      return refusedWith(problem('invalid_request', 'The body is not valid gzip, though Content-Encoding says so.'), options)
    case 'unknown_encoding':
      return refusedWith(problem('unsupported_encoding'), options)
  }
}

function wrongMethod(allow: string, options: LocalEndpointOptions): Answer {
  return refusedWith(problem('method_not_allowed'), options, { Allow: allow })
}

function refusedWith({ status, code, message }: Problem, options: LocalEndpointOptions, headers: Record<string, string> = {}): Answer {
  options.onRejected?.({ index: undefined, messageId: null, code, message })
  return { status, body: errorBody({ code, message }), headers }
}

/** What node:http could not read as a request has no response object; the answer goes to the bare connection. */
function refuseUnparsed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const codes: Record<string, ProblemCode> = { ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout', HPE_HEADER_OVERFLOW: 'headers_too_large' }
  const code = codes[error.code ?? '']
  const refused = code ? problem(code) : problem('invalid_request', 'This is not an HTTP request.')
  const text = `${JSON.stringify(errorBody(refused))}\n`
  const head = `HTTP/1.1 ${refused.status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}`
  socket.end(`${head}\r\nConnection: close\r\n\r\n${text}`, () => socket.destroy())
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const giveUp = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
    // A connection may become idle after close() has looked: the rest of a refused body was still coming in.
    const look = setInterval(() => server.closeIdleConnections(), 20)
    server.close(() => {
      clearTimeout(giveUp)
      clearInterval(look)
      resolve()
    })
  })
}

/** An address that means "all" is listened on but cannot be called. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

function isOneOf(method: string | undefined, methods: string[]): boolean {
  return method !== undefined && methods.includes(method)
}
