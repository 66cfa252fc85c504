// Reads an HTTP/1.1 answer as receivers usually send it: perhaps interim answers (1xx), then a status, headers, and a body that has a
// content-length or comes in plain chunks. Everything else is unusual: undici then reads the same bytes (unusual-answer.ts) and decides what they
// mean. What is read here must mean the same to undici: plain-answer.test.ts gives thousands of answers to both.

/** What is called while an answer is read. */
export interface AnswerHandler {
  onHead(status: number, retryAfter: string | undefined): void
  /** A piece of the body. It must not be used after the call. */
  onBody(piece: Buffer): void
}

export interface AnswerHead {
  /** As they were received, to recognize the same head in a later answer. */
  readonly bytes: Buffer
  readonly status: number
  /** Of the body; null if it comes in chunks. */
  readonly length: number | null
  readonly retryAfter: string | undefined
  readonly keepsAlive: boolean
  /** How long the receiver keeps an idle connection; null if it does not say. */
  readonly announcedIdleMs: number | null
}

export type AnswerState = 'incomplete' | 'complete' | 'unusual'

/** What is kept in case undici has to read it again: the start of a head, or an answer in chunks. If there is more, undici reads it. */
const MAX_KEPT_BYTES = 16 * 1024
/** Bytes that are kept and come in more pieces would be copied too often. */
const MAX_PIECES = 32
const END_OF_HEAD = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)
const LINE_FEED = 0x0a

export class PlainAnswer {
  head: AnswerHead | null = null
  /** Whether bytes have followed that do not belong to the answer. */
  hasMore = false
  /** If the answer is unusual: what undici has to read before everything that follows. */
  kept = NOTHING
  readonly #handler: AnswerHandler
  readonly #known: AnswerHead | null
  #pieces = 0
  /** How many bytes of the body, or of the current chunk, are to come. */
  #left = 0
  /** Where the next chunk, or the rest of the current one, begins in what is kept. */
  #at = 0
  #expected: 'size' | 'end of chunk' | 'end' = 'size'

  /** `known`: the head of an earlier answer. Receivers mostly send the same again, and it is faster to compare it than to read it. */
  constructor(handler: AnswerHandler, known: AnswerHead | null) {
    this.#handler = handler
    this.#known = known
  }

  /** The bytes may change after the call. Must not be called again after it has returned another state than `incomplete`. */
  read(bytes: Buffer): AnswerState {
    if (this.#isCounted) return this.#readCounted(bytes)
    let all = this.kept.length === 0 ? bytes : Buffer.concat([this.kept, bytes])
    let state: AnswerState
    if (this.head !== null) state = this.#readChunks(all)
    else {
      all = this.#withoutInterims(all)
      state = this.#readHead(all)
    }
    if (state === 'complete' || this.#isCounted) return state
    this.kept = Buffer.from(all)
    return all.length > MAX_KEPT_BYTES || ++this.#pieces > MAX_PIECES ? 'unusual' : state
  }

  get #isCounted(): boolean {
    return this.head !== null && this.head.length !== null
  }

  /** Interim answers that cannot be read here stay, and make the answer an unusual one. */
  #withoutInterims(bytes: Buffer): Buffer {
    let rest = bytes
    while (rest.length > START.length && rest[9] === ONE) {
      const interim = headAt(rest)
      if (interim === null || interim === 'unusual') break
      rest = rest.subarray(interim.bytes.length)
      this.#pieces = 0
    }
    return rest
  }

  #readHead(bytes: Buffer): AnswerState {
    const known = this.#known
    const isKnown = known !== null && bytes.length >= known.bytes.length && known.bytes.compare(bytes, 0, known.bytes.length) === 0
    const head = isKnown ? known : headAt(bytes)
    if (head === null) return bytes.length === 0 || isStartOfHead(bytes.toString('latin1')) ? 'incomplete' : 'unusual'
    if (head === 'unusual') return head
    this.head = head
    this.#handler.onHead(head.status, head.retryAfter)
    this.#at = head.bytes.length
    if (head.length === null) return this.#readChunks(bytes)
    this.#left = head.length
    return this.#readCounted(bytes.subarray(this.#at))
  }

  #readCounted(bytes: Buffer): AnswerState {
    const isLast = bytes.length >= this.#left
    const piece = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes
    this.hasMore = bytes.length > this.#left
    this.#left -= piece.length
    if (piece.length > 0) this.#handler.onBody(piece)
    return isLast ? 'complete' : 'incomplete'
  }

  #readChunks(all: Buffer): AnswerState {
    for (;;) {
      if (this.#left > 0) {
        const piece = all.subarray(this.#at, this.#at + this.#left)
        if (piece.length === 0) return 'incomplete'
        this.#handler.onBody(piece)
        this.#at += piece.length
        this.#left -= piece.length
        continue
      }
      const end = all.indexOf(LINE_FEED, this.#at)
      const line = all.toString('latin1', this.#at, end === -1 ? all.length : end)
      if (!(this.#expected === 'size' ? START_OF_SIZE : EMPTY_START).test(line)) return 'unusual'
      if (end === -1) return 'incomplete'
      if (!line.endsWith('\r') || (this.#expected === 'size' && line.length === 1)) return 'unusual'
      this.#at = end + 1
      if (this.#expected === 'end') {
        this.hasMore = this.#at < all.length
        return 'complete'
      }
      if (this.#expected === 'size') {
        this.#left = Number.parseInt(line, 16)
        this.#expected = this.#left === 0 ? 'end' : 'end of chunk'
      } else this.#expected = 'size'
    }
  }
}

/** A size that has more digits is more than what is kept. */
const START_OF_SIZE = /^[0-9A-Fa-f]{0,4}\r?$/
const EMPTY_START = /^\r?$/
const ONE = 0x31
const START = 'HTTP/1.1 200 '
const STATUS_LINE = /^HTTP\/1\.1 ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const START_OF_STATUS_LINE = /^HTTP\/1\.1 [1-5]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r?$/
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*$/
const START_OF_HEADER = /^(?:\r|[!#$%&'*+.^_`|~0-9A-Za-z-]*|[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r?)$/

const CONTENT_LENGTH = /^content-length:/i
const START_OF_LENGTH = /^content-length:[\t ]*\d{0,15}\r?$/i

/** Null if the end of the head is missing. */
function headAt(bytes: Buffer): AnswerHead | 'unusual' | null {
  const end = bytes.indexOf(END_OF_HEAD)
  if (end === -1) return null
  if (end > MAX_KEPT_BYTES) return 'unusual'
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(STATUS_LINE.exec(first)?.[1])
  const fields = fieldsOf(lines)
  if (Number.isNaN(status) || fields === null) return 'unusual'
  const { contentLength, transferEncoding, connection, retryAfter, keepAlive } = fields
  const isChunked = transferEncoding !== undefined
  const hasNoBody = status < 200 || status === 204 || status === 304
  // An interim answer must not say anything about its body or the connection, and 101 leaves HTTP.
  if (status < 200 && (status === 101 || contentLength !== undefined || connection !== undefined)) return 'unusual'
  if (hasNoBody ? isChunked || (contentLength ?? '0') !== '0' : isChunked === (contentLength !== undefined)) return 'unusual'
  const seconds = keepAlive === undefined ? undefined : KEEP_ALIVE_TIMEOUT.exec(keepAlive)?.[1]
  return {
    bytes: Buffer.from(bytes.subarray(0, end + END_OF_HEAD.length)),
    status,
    length: isChunked ? null : Number(contentLength ?? 0),
    retryAfter,
    keepsAlive: connection === undefined || !connection.includes('close'),
    announcedIdleMs: seconds === undefined ? null : Number(seconds) * 1_000,
  }
}

/** Whether it can become a head that is read here, so that one that cannot is judged at once, and not at the deadline. */
function isStartOfHead(text: string): boolean {
  const end = text.lastIndexOf('\r\n')
  if (end === -1) return START_OF_STATUS_LINE.test(text + START.slice(text.length))
  const [first = '', ...lines] = text.slice(0, end).split('\r\n')
  const last = text.slice(end + 2)
  const fields = STATUS_LINE.test(first) ? fieldsOf(lines) : null
  if (fields === null || !START_OF_HEADER.test(last)) return false
  // undici judges a length digit by digit.
  return !CONTENT_LENGTH.test(last) || (START_OF_LENGTH.test(last) && fields.contentLength === undefined)
}

/** The headers that matter here. */
interface Fields {
  contentLength?: string
  transferEncoding?: string
  connection?: string
  keepAlive?: string
  retryAfter?: string
}

/** A longer length cannot be counted exactly. */
const LENGTH = /^\d{1,15}$/
const CONNECTION = /^(?:close|keep-alive|upgrade)(?:, ?(?:close|keep-alive|upgrade))*$/
const KEEP_ALIVE_TIMEOUT = /(?:^|,)[\t ]*timeout=(\d+)/i
const NON_ASCII = /[\x80-\xff]/

/** Null if a line is no header, or if readers may disagree about what it means. */
function fieldsOf(lines: readonly string[]): Fields | null {
  const fields: Fields = {}
  for (const line of lines) {
    if (!HEADER.test(line)) return null
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    if (name === 'content-length') {
      if (fields.contentLength !== undefined) return null
      fields.contentLength = valueOf(line, colon)
      if (!LENGTH.test(fields.contentLength)) return null
    } else if (name === 'transfer-encoding') {
      if (fields.transferEncoding !== undefined) return null
      fields.transferEncoding = valueOf(line, colon).toLowerCase()
      if (fields.transferEncoding !== 'chunked') return null
    } else if (name === 'connection') {
      if (fields.connection !== undefined) return null
      fields.connection = valueOf(line, colon).toLowerCase()
      if (!CONNECTION.test(fields.connection)) return null
    } else if (name === 'keep-alive') {
      if (fields.keepAlive !== undefined) return null
      fields.keepAlive = valueOf(line, colon)
    } else if (name === 'retry-after') {
      fields.retryAfter ??= valueOf(line, colon)
      if (NON_ASCII.test(fields.retryAfter)) return null
    } else if (name === 'proxy-connection') return null
  }
  return fields
}

/** Without the blanks before it. Blanks at its end stay: only some readers ignore them. */
function valueOf(line: string, colon: number): string {
  let at = colon + 1
  while (line.charCodeAt(at) === 0x20 || line.charCodeAt(at) === 0x09) at++
  return line.slice(at)
}
