// Reads an HTTP/1.1 answer as tools usually send it: a status, headers, and a body that has a content-length or comes in plain chunks. Everything
// else is unusual: other versions of HTTP, interim answers, a body that ends with the connection, more than one length, chunk extensions,
// trailers, folded headers, line breaks without CR or LF, bytes after the answer. Node.js then reads the same bytes (node-request.ts) and
// decides what they mean, or which error they cause.

import { INVALID_VALUE } from './request-headers.ts'

export interface AnswerHead {
  status: number
  statusText: string
  /** By name in lower case, as Node.js has them. */
  headers: Record<string, string | string[] | undefined>
}

type State = 'incomplete' | 'complete' | 'unusual'

/** The limit of Node.js is 16 KB. */
const MAX_HEAD_BYTES = 15 * 1024
/** A head that comes in more pieces would be copied too often. */
const MAX_HEAD_PIECES = 32
const MAX_HEADERS = 200
/** Node.js reads longer answers, so that few of their bytes have to be kept in case it must read them again. */
const MAX_BODY_BYTES = 1024 * 1024
/** Bodies in more pieces are left to Node.js. Each piece takes memory besides its bytes, and a tool may send every byte as a chunk. */
const MAX_PIECES = 4096
const END_OF_HEAD = Buffer.from('\r\n\r\n')
const START = 'HTTP/1.1 '
const STATUS_LINE = /^HTTP\/1\.1 ([2-5]\d\d) (\S.*|)$/
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const LENGTH = /^\d{1,10}$/
/** If one of these headers is repeated, Node.js uses the first value. */
const FIRST_COUNTS = new Set(
  [
    ['age', 'authorization', 'content-type', 'etag', 'expires', 'from', 'host', 'if-modified-since', 'if-unmodified-since'],
    ['last-modified', 'location', 'max-forwards', 'proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'],
  ].flat(),
)
/** If one of these headers is repeated, readers may disagree about its meaning. */
const ONCE = new Set(['content-length', 'transfer-encoding', 'proxy-connection'])

export class PlainAnswer {
  head: AnswerHead | null = null
  /** The pieces of the body as they arrive. */
  readonly body: Buffer[] = []
  #start: Buffer | null = null
  #pieces = 0
  /** How many bytes are to come. */
  #left = 0
  #chunks: Chunks | null = null

  get isChunked(): boolean {
    return this.#chunks !== null
  }

  /** Must not be called again after it has returned another state than `incomplete`. */
  read(bytes: Buffer): State {
    if (this.head !== null) return this.#readBody(bytes)
    const all = this.#start === null ? bytes : Buffer.concat([this.#start, bytes])
    const end = all.indexOf(END_OF_HEAD)
    if (end > MAX_HEAD_BYTES) return 'unusual'
    if (end === -1) {
      this.#start = all
      return all.length <= MAX_HEAD_BYTES && ++this.#pieces <= MAX_HEAD_PIECES && isStartOfHead(all.toString('latin1'))
        ? 'incomplete'
        : 'unusual'
    }
    this.#start = null
    const head = headOf(all.toString('latin1', 0, end))
    if (head === null || !this.#expectBody(head)) return 'unusual'
    this.head = head
    return this.#readBody(all.subarray(end + END_OF_HEAD.length))
  }

  /** False if it is not certain where the body ends. */
  #expectBody({ status, headers }: AnswerHead): boolean {
    const { 'content-length': length, 'transfer-encoding': encoding } = headers as Record<string, string | undefined>
    if (status === 204 || status === 304) return length === undefined && encoding === undefined
    if (encoding !== undefined) {
      this.#chunks = new Chunks(this.body)
      return length === undefined && encoding.toLowerCase() === 'chunked'
    }
    this.#left = Number(length)
    return length !== undefined && LENGTH.test(length) && this.#left <= MAX_BODY_BYTES
  }

  #readBody(bytes: Buffer): State {
    if (this.#chunks !== null) return this.#chunks.read(bytes)
    if (bytes.length > this.#left) return 'unusual'
    this.#left -= bytes.length
    if (bytes.length > 0 && this.body.push(bytes) > MAX_PIECES) return 'unusual'
    return this.#left === 0 ? 'complete' : 'incomplete'
  }
}

/** So that an answer which can never be complete fails at once, and not at the deadline. */
function isStartOfHead(text: string): boolean {
  const lines = text.lastIndexOf('\r\n')
  if (/\n|\r./s.test(text.slice(lines + 2))) return false
  return lines === -1 ? START.startsWith(text.slice(0, START.length)) : headOf(text.slice(0, lines)) !== null
}

function headOf(text: string): AnswerHead | null {
  const [first = '', ...lines] = text.split('\r\n')
  const [, status, statusText] = STATUS_LINE.exec(first) ?? []
  if (status === undefined || statusText === undefined || INVALID_VALUE.test(statusText) || lines.length > MAX_HEADERS) return null
  const headers: AnswerHead['headers'] = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).toLowerCase()
    const value = trimmed(line, colon + 1)
    if (!NAME.test(name) || INVALID_VALUE.test(value) || !addHeader(headers, name, value)) return null
  }
  return { status: Number(status), statusText, headers }
}

/** Without spaces and tabs around it. trim() would also remove a line break, which must stay and be refused. */
function trimmed(line: string, from: number): string {
  let [start, end] = [from, line.length]
  while (start < end && isBlank(line.charCodeAt(start))) start++
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--
  return line.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** As Node.js combines headers with the same name. False if readers may disagree about their meaning. */
function addHeader(headers: AnswerHead['headers'], name: string, value: string): boolean {
  const before = headers[name]
  if (name === 'set-cookie') headers[name] = [...((before as string[] | undefined) ?? []), value]
  else if (before === undefined) headers[name] = value
  else if (ONCE.has(name)) return false
  else if (!FIRST_COUNTS.has(name)) headers[name] = `${String(before)}${name === 'cookie' ? '; ' : ', '}${value}`
  // Node.js leaves out `__proto__`.
  return name !== 'proxy-connection' && name !== '__proto__'
}

const SIZE = /^[0-9A-Fa-f]{1,6}\r$/

/** Reads plain chunks: sizes without extensions, and no trailers. */
class Chunks {
  readonly #body: Buffer[]
  #total = 0
  /** How many bytes of the current chunk are to come. */
  #left = 0
  /** The start of a line. */
  #line = ''
  #expected: 'size' | 'end of chunk' | 'end' = 'size'

  constructor(body: Buffer[]) {
    this.#body = body
  }

  read(bytes: Buffer): State {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const data = bytes.subarray(at, at + this.#left)
        if (this.#body.push(data) > MAX_PIECES) return 'unusual'
        this.#left -= data.length
        at += data.length
        continue
      }
      const code = bytes[at++] as number
      if (code !== 0x0a) {
        this.#line += String.fromCharCode(code)
        if (this.#line.length > 7) return 'unusual'
      } else if (!this.#readLine()) return 'unusual'
      else if (this.#expected === 'end' && this.#line === '\r') return at === bytes.length ? 'complete' : 'unusual'
    }
    return 'incomplete'
  }

  #readLine(): boolean {
    const line = this.#line
    if (this.#expected === 'end') return line === '\r'
    this.#line = ''
    if (this.#expected === 'end of chunk') {
      this.#expected = 'size'
      return line === '\r'
    }
    if (!SIZE.test(line)) return false
    this.#left = Number.parseInt(line, 16)
    this.#total += this.#left
    this.#expected = this.#left === 0 ? 'end' : 'end of chunk'
    return this.#total <= MAX_BODY_BYTES
  }
}
