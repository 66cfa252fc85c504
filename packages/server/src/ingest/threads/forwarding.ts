// Streams a request that an ingest thread does not handle to the main thread, and the response back. The main thread sees the
// request as it was sent, except for the headers that are about one connection alone.

import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { endAfterRequest } from '../answers.ts'

/** Trailers are not passed on, and node:http does not send this header without a chunked body. */
const OF_ONE_CONNECTION = new Set(['connection', 'keep-alive', 'proxy-connection', 'trailer', 'upgrade'])
const WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

export function forward(request: IncomingMessage, response: ServerResponse, connect: () => Duplex): void {
  const { method = 'GET', url = '/' } = request
  const forwarded = httpRequest({ method, path: url, headers: forwardedHeaders(request), createConnection: connect })
  forwarded.on('response', (answer) => {
    response.writeHead(answer.statusCode as number, answer.statusMessage, answeredHeaders(answer))
    // For the live view, whose first event may be minutes away.
    response.flushHeaders()
    answer.on('error', () => response.destroy())
    answer.pipe(response, { end: false })
    answer.on('end', () => {
      // The main thread has no use for what is left of the body. It is discarded here.
      request.unpipe(forwarded).resume()
      if (answer.headers.connection === 'close') response.end()
      else endAfterRequest(response)
    })
  })
  // HTTP/1.0 does not know it, and would take it for the response.
  forwarded.on('continue', () => {
    if (request.httpVersion !== '1.0') response.writeContinue()
  })
  // The main thread has closed the connection without an answer.
  forwarded.on('error', () => response.destroy())
  response.on('close', () => {
    forwarded.destroy()
    request.unpipe(forwarded).resume()
  })
  request.pipe(forwarded)
  // The answer may come before the body. A body that has arrived with the headers goes with them.
  setImmediate(() => forwarded.flushHeaders())
}

function forwardedHeaders({ rawHeaders, headers, method = 'GET' }: IncomingMessage): string[] {
  const forwarded = without(rawHeaders, (name) => OF_ONE_CONNECTION.has(name))
  // HTTP/1.0 does not need it, but the connection to the main thread is HTTP/1.1.
  if (headers.host === undefined) forwarded.push('Host', '')
  // Otherwise node:http would announce a body.
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined && !WITHOUT_BODY.has(method))
    forwarded.push('Content-Length', '0')
  // So that a response closes the connection only if the main thread wants it closed.
  forwarded.push('Connection', 'keep-alive')
  return forwarded
}

/** node:http adds the others for the connection of the client. */
function answeredHeaders({ rawHeaders, headers }: IncomingMessage): string[] {
  const isClosed = headers.connection === 'close'
  return without(rawHeaders, (name) => name === 'keep-alive' || name === 'transfer-encoding' || (name === 'connection' && !isClosed))
}

function without(rawHeaders: readonly string[], isLeftOut: (name: string) => boolean): string[] {
  const kept: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (!isLeftOut(name.toLowerCase())) kept.push(name, rawHeaders[at + 1] as string)
  }
  return kept
}
