// Reads the head of a plain request: a POST of HTTP/1.1 with a Content-Length, as nearly every client of the tracking API sends it. Any other request
// is `unusual`, and Node.js reads it instead. Invariant: what this file accepts, Node.js would read in the same way. So it accepts less than it could:
// what could be understood in two ways is unusual.

import type { IncomingHttpHeaders } from 'node:http'

export interface PlainHead {
  path: string
  /** Only those that somebody asks for. */
  headers: IncomingHttpHeaders
  /** Whether the connection closes after the answer. */
  isLast: boolean
  /** The size of the head. The body follows it. */
  headBytes: number
  bodyBytes: number
}

/** Node.js allows 16 KB, and counts more than the bytes if there are very many headers. */
const MAX_HEAD_BYTES = 8 * 1024
const MAX_HEADERS = 100
const START = Buffer.from('POST /')
const END = Buffer.from('\r\n\r\n')
const REQUEST_LINE = /^POST (\/[!-~]*) HTTP\/1\.1$/
/** All header lines. No line break except at their ends, no other control character, no space before the colon, no folded line. */
const FIELDS = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~]*\r\n)+$/
const LENGTH = /^\d{1,8}$/

/** Those that are given to the caller. Of each there must be one at most: if there are two, Node.js keeps one of them or joins both. */
const READ = new Set([
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'host',
  'origin',
  'traceparent',
  'tracestate',
  'x-forwarded-for',
])
/** Those with which a request means something else, or has a body of another form. */
const UNUSUAL = new Set(['content-encoding', 'expect', 'http2-settings', 'proxy-connection', 'trailer', 'transfer-encoding', 'upgrade'])

/** `bytes` are all that have arrived of the request, and perhaps more. */
export function readPlainHead(bytes: Buffer): PlainHead | 'unusual' | 'incomplete' {
  const start = Math.min(bytes.length, START.length)
  if (START.compare(bytes, 0, start, 0, start) !== 0) return 'unusual'
  const end = bytes.indexOf(END)
  if (end === -1) return bytes.length > MAX_HEAD_BYTES ? 'unusual' : 'incomplete'
  if (end > MAX_HEAD_BYTES) return 'unusual'
  const head = bytes.toString('latin1', 0, end + 2)
  const lineEnd = head.indexOf('\r\n')
  const path = REQUEST_LINE.exec(head.slice(0, lineEnd))?.[1]
  if (path === undefined) return 'unusual'
  const headers = headersOf(head.slice(lineEnd + 2))
  if (headers === null || headers.host === undefined) return 'unusual'
  const { connection, 'content-length': length = '' } = headers
  const isLast = connection !== undefined && connection.toLowerCase() === 'close'
  if (connection !== undefined && !isLast && connection.toLowerCase() !== 'keep-alive') return 'unusual'
  if (!LENGTH.test(length)) return 'unusual'
  return { path, headers, isLast, headBytes: end + END.length, bodyBytes: Number(length) }
}

function headersOf(fields: string): IncomingHttpHeaders | null {
  if (!FIELDS.test(fields)) return null
  const headers: IncomingHttpHeaders = {}
  let count = 0
  for (let at = 0; at < fields.length; ) {
    if (++count > MAX_HEADERS) return null
    const colon = fields.indexOf(':', at)
    const end = fields.indexOf('\r\n', colon)
    const name = fields.slice(at, colon).toLowerCase()
    if (UNUSUAL.has(name)) return null
    if (READ.has(name)) {
      if (headers[name] !== undefined) return null
      headers[name] = fields.slice(colon + 1, end).trim()
    }
    at = end + 2
  }
  return headers
}
