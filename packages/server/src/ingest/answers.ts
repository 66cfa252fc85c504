// The responses of the tracking API: status, headers and body, written directly to node:http, because nearly every response is
// the same sixteen bytes and needs no serialiser. Pages of any origin may read every response, even if the request carried
// cookies, as sendBeacon requests always do. The tracking API ignores cookies, so a page gains nothing by sending them.

import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { API_ERRORS, type ApiErrorCode, errorBody } from '../errors.ts'

const EXPOSED = ['Access-Control-Expose-Headers', 'Retry-After'] as const
const ANY_ORIGIN = ['Access-Control-Allow-Origin', '*', ...EXPOSED] as const
export const SUCCESS = '{"success":true}\n'
const SUCCESS_HEADERS = ['Content-Type', 'application/json', 'Content-Length', String(SUCCESS.length)]
const SUCCESS_TO_PROGRAMS: string[] = [...SUCCESS_HEADERS, ...ANY_ORIGIN]
const ALLOWED_HEADERS = 'Authorization, Content-Type, X-Retry-Count, traceparent, tracestate'
const PREFLIGHT_HEADERS = ['Access-Control-Allow-Methods', 'GET, POST, OPTIONS', 'Access-Control-Max-Age', '86400']
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
const PIXEL_HEADERS = [
  'Content-Type',
  'image/gif',
  'Content-Length',
  String(PIXEL.length),
  'Cache-Control',
  'private, no-store, max-age=0',
  // Without it, a cross-origin isolated page (COEP) does not load the image.
  'Cross-Origin-Resource-Policy',
  'cross-origin',
]
const SHARED_SETTINGS = [...ANY_ORIGIN, 'Vary', 'X-Forwarded-Host, X-Forwarded-Proto', 'Cache-Control', 'public, max-age=300']

export function answerSuccess(response: ServerResponse): void {
  if (isOver(response)) return
  // A string, not a buffer: node:http writes a string in one piece with the headers.
  response.writeHead(200, successHeaders(response.req.headers.origin)).end(SUCCESS, 'latin1')
}

export function successHeaders(origin: string | undefined): string[] {
  return origin === undefined ? SUCCESS_TO_PROGRAMS : [...SUCCESS_HEADERS, ...cors(origin)]
}

export function answerPixel(response: ServerResponse): void {
  if (!isOver(response)) response.writeHead(200, [...PIXEL_HEADERS, ...cors(response.req.headers.origin)]).end(PIXEL)
}

/** Clients and pages send custom headers. All requested headers are allowed, because none of them is trusted. */
export function answerPreflight(response: ServerResponse): void {
  const asked = response.req.headers['access-control-request-headers'] ?? ''
  const allowed = /^[\w\-., ]{1,2000}$/.test(asked) ? `${ALLOWED_HEADERS}, ${asked}` : ALLOWED_HEADERS
  response.writeHead(204, [...PREFLIGHT_HEADERS, ...cors(response.req.headers.origin), 'Access-Control-Allow-Headers', allowed]).end()
}

/**
 * The settings depend only on the URL, so caches may store them. The response varies by the headers from which a trusted proxy's host and
 * scheme are read. Answers 304 if the client already has the current settings.
 */
export function answerSettings(response: ServerResponse, body: object): void {
  const text = `${JSON.stringify(body)}\n`
  const tag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`
  const asked = response.req.headers['if-none-match']?.split(',').map((each) => each.trim().replace(/^W\//, '')) ?? []
  const headers = [...SHARED_SETTINGS, 'ETag', tag]
  if (asked.includes(tag) || asked[0] === '*') response.writeHead(304, headers).end()
  else
    response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(text)), ...headers]).end(text)
}

/** `headers` is in the raw format of node:http: names and values alternate. */
export function answerJson(response: ServerResponse, status: number, body: object, headers: readonly string[] = []): void {
  if (!isOver(response)) answerText(response, status, JSON.stringify(body), headers)
}

/** `json` is the body. */
export function answerText(response: ServerResponse, status: number, json: string, headers: readonly string[]): void {
  if (isOver(response)) return
  const text = `${json}\n`
  response.writeHead(status, textHeaders(text, response.req.headers.origin, headers))
  if (headers.includes('Connection')) response.end(text)
  else endAfterRequest(response, text)
}

export function textHeaders(text: string, origin: string | undefined, more: readonly string[]): string[] {
  return ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(text)), ...cors(origin), ...more]
}

/**
 * Ends a response. If the connection closes after it, closing it while the body is still arriving would reset the connection, and the client might see
 * the reset before the response. So the body is read first, until its end or the deadline of its reader.
 */
export function endAfterRequest(response: ServerResponse, text = ''): void {
  const { req: request } = response
  if (request.complete || response.shouldKeepAlive) {
    response.end(text)
    return
  }
  response.write(text)
  const end = (): void => void response.end()
  request.once('end', end).once('close', end).resume()
}

export function answerError(
  response: ServerResponse,
  code: ApiErrorCode,
  options: { message?: string | undefined; headers?: readonly string[] } = {},
): void {
  const [status, usual] = API_ERRORS[code]
  answerJson(response, status, errorBody({ code, message: options.message ?? usual }), options.headers)
}

/** Answers bytes that node:http could not parse as a request. There is no response object, so it writes directly to the socket. */
export function rejectUnparsed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const code = UNPARSED.get(error.code ?? '') ?? 'invalid_request'
  const [status, usual] = API_ERRORS[code]
  const text = `${JSON.stringify(errorBody({ code, message: code === 'invalid_request' ? 'The request is not valid HTTP. Check its request line and its headers.' : usual }))}\n`
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}`
  socket.end(`${head}\r\nConnection: close\r\n\r\n${text}`, () => socket.destroy())
}

const UNPARSED: ReadonlyMap<string, ApiErrorCode> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
  ['HPE_HEADER_OVERFLOW', 'headers_too_large'],
])

/** For requests with cookies, browsers accept only the page's own origin in the header, not `*`. */
function cors(origin: string | undefined): readonly string[] {
  if (origin === undefined || !/^[!-~]{1,1000}$/.test(origin)) return ANY_ORIGIN
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Allow-Credentials', 'true', 'Vary', 'Origin', ...EXPOSED]
}

/** Returns the path of a request without the query string. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

export function queryOf(request: IncomingMessage): URLSearchParams {
  return new URLSearchParams((request.url ?? '').slice(pathOf(request).length))
}

/** Whether the response was already sent or the connection is closed. */
function isOver(response: ServerResponse): boolean {
  return response.destroyed || response.writableEnded
}
