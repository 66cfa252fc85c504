// One attempt: one request to one URL. It always ends with an Outcome and never throws. One deadline covers the lookup, the dialling, the
// sending and the whole response; redirects are not followed. retry-policy.ts decides whether and when to retry, and the guard decides
// which addresses may be dialled.

import type { Verdict } from '../../../destinations/port/kind.ts'
import { oncePerObject } from '../../../model/once-per-object.ts'
import {
  describeStatus,
  type Outcome,
  parseRetryAfter,
  REASONS,
  RESPONSE_START_BYTES,
  type ReasonCode,
  reasonOfError,
} from '../../link/outcome.ts'
import type { AddressGuard } from './address-guard.ts'
import type { Connection, ConnectionUser, Origin, TlsIdentity } from './connection.ts'
import { Connections, type Writer } from './connections.ts'
import type { Lookup } from './name-lookup.ts'
import { PlainAnswer } from './plain-answer.ts'
import { requestHead, requestStart } from './request-head.ts'
import { UnusualAnswer, type UnusualAnswerHandler } from './unusual-answer.ts'

/** A response that reaches this size is judged by its status, and its connection is closed instead of reading the rest. */
export const MAX_RESPONSE_BYTES = 65_536

export interface SendRequest {
  /** Default: POST. */
  method?: string
  url: string
  /** Percent-encoded; goes between the path and the query of the URL. Default: empty. */
  path?: string
  /** Names and values in turn; none that says how the request is sent (request-head.ts). */
  headers: readonly string[]
  body: string | Buffer
  /** For everything, from the lookup to the last byte of the answer. */
  timeoutMs: number
  /** Judges the HTTP status of an answer. */
  verdictOf: (status: number) => Verdict
  /** Keeps the start of the answer on success, too. */
  keepAnswer?: boolean
  /** How much of the answer is kept. Default: RESPONSE_START_BYTES. */
  keepBytes?: number
  /** The own TLS settings of the destination, whose connections are not shared. */
  tls?: TlsIdentity | null
}

export interface HttpClient {
  /** The number of attempts without an outcome. */
  readonly inFlight: number
  /** Calls `onOutcome` once, perhaps before it returns. A promise per attempt would cost more. */
  send(request: SendRequest, onOutcome: (outcome: Outcome) => void): void
  /** Waits up to closeGraceMs for attempts in flight, ends the rest as `aborted`, and closes all connections. */
  close(): Promise<void>
}

export interface HttpClientOptions {
  guard: AddressGuard
  lookup?: Lookup | undefined
  /** Certificate authorities in PEM, to trust instead of the usual ones. */
  ca?: string | undefined
  /** Wall time, against which a date in Retry-After is read. Default: Date.now. */
  now?: (() => number) | undefined
  /** Default: 5,000, which is one attempt's usual deadline. */
  closeGraceMs?: number | undefined
  /** Connections that are open at once, idle ones included. See connections.ts. */
  maxOpen?: number | undefined
}

interface Target {
  origin: Origin
  host: string
  path: string
  /** The start of a POST without a path of its own. */
  start: string | null
  /** The parts of `path` around the path of a request: the first without a slash at its end. */
  beforePath: string
  afterPath: string
  /** From a user name and password in the URL. */
  authorization: string | null
}

/** Each URL is parsed once and cached. When the cache reaches this size, it is cleared. */
const MAX_TARGETS = 10_000

/** What the attempts of one client share. */
interface Shared {
  readonly connections: Connections
  readonly now: () => number
  /** In no order: each attempt knows its place, because adding to a Set and deleting from it takes several times as long. */
  readonly underWay: Attempt[]
  onIdle: (() => void) | null
}

export function createHttpClient({ guard, lookup, ca, now = Date.now, closeGraceMs = 5_000, maxOpen }: HttpClientOptions): HttpClient {
  const connections = new Connections({ guard, lookup, ca, maxOpen })
  const shared: Shared = { connections, now, underWay: [], onIdle: null }
  const sharedTargets = new Map<string, Target | null>()
  const ownTargets = oncePerObject<TlsIdentity, Map<string, Target | null>>(() => new Map())
  let closing: Promise<void> | undefined

  function targetOf(url: string, tls: TlsIdentity | null): Target | null {
    const targets = tls === null ? sharedTargets : ownTargets(tls)
    let target = targets.get(url)
    if (target === undefined) {
      if (targets.size >= MAX_TARGETS) {
        targets.clear()
        if (tls === null) connections.forgetOrigins()
      }
      target = parseTarget(url, connections, tls)
      targets.set(url, target)
    }
    return target
  }

  async function close(): Promise<void> {
    connections.discardIdle()
    if (shared.underWay.length > 0) {
      const grace = setTimeout(() => {
        for (const attempt of shared.underWay.slice()) attempt.fail('aborted')
      }, closeGraceMs)
      await new Promise<void>((resolve) => {
        shared.onIdle = resolve
      })
      clearTimeout(grace)
    }
    connections.discardAll()
  }

  return {
    get inFlight() {
      return shared.underWay.length
    },
    send(request, onOutcome) {
      const attempt = new Attempt(shared, request, onOutcome)
      if (closing !== undefined) return attempt.fail('aborted')
      const target = targetOf(request.url, request.tls ?? null)
      if (target === null) attempt.fail('invalid_request')
      else attempt.start(target)
    },
    close: () => (closing ??= close()),
  }
}

class Attempt implements ConnectionUser, UnusualAnswerHandler, Writer {
  readonly #shared: Shared
  readonly #request: SendRequest
  readonly #onOutcome: (outcome: Outcome) => void
  readonly #startedAtMs = performance.now()
  #place: number
  #origin: Origin | null = null
  #head = ''
  #connection: Connection | null = null
  #answer: PlainAnswer | null = null
  #unusual: UnusualAnswer | null = null
  #deadline: NodeJS.Timeout | undefined
  #reused = false
  #redialled = false
  #settled = false
  #firstByteMs: number | null = null
  #status: number | null = null
  #retryAfterMs: number | null = null
  #responseBytes = 0
  #responseStart: Buffer | null = null

  constructor(shared: Shared, request: SendRequest, onOutcome: (outcome: Outcome) => void) {
    this.#shared = shared
    this.#request = request
    this.#onOutcome = onOutcome
    this.#place = shared.underWay.push(this) - 1
  }

  start(target: Target): void {
    const head = headOf(target, this.#request)
    if (head === null) return this.fail('invalid_request')
    this.#head = head
    this.#origin = target.origin
    this.#deadline = setTimeout(onDeadline, this.#request.timeoutMs, this)
    const { connections } = this.#shared
    const connection = connections.take(target.origin)
    if (!connection.isOpen) return this.#dial(connection)
    this.#connection = connection
    connections.writeSoon(this)
  }

  #dial(connection: Connection): void {
    this.#connection = connection
    void connection.dialForRequests((error, _socket) => {
      if (error === null) this.write()
      else this.#failed(error.reason)
    })
  }

  write(): void {
    const connection = this.#connection as Connection
    if (this.#settled) return
    // The receiver has closed it since it was taken.
    if (!connection.isOpen) return this.#dial(this.#shared.connections.open(connection.origin))
    this.#reused = connection.requests > 0
    this.#answer = new PlainAnswer(this, connection.lastHead)
    connection.write(this, this.#head, this.#request.body)
  }

  received(bytes: Buffer): void {
    const connection = this.#connection as Connection
    const answer = this.#answer as PlainAnswer
    const state = answer.read(bytes)
    if (this.#settled) return
    if (state === 'unusual') return this.#leaveToUndici(connection, answer.kept)
    if (state === 'incomplete' || answer.head === null) return this.onStart()
    connection.lastHead = answer.head
    const { keepsAlive, announcedIdleMs } = answer.head
    // First, because the outcome may start another request, which then goes over the same connection.
    this.#shared.connections.release(connection, keepsAlive && !answer.hasMore && this.#isRead(), announcedIdleMs)
    this.#settleByStatus()
  }

  /** Some servers do not read the body of a DELETE, and would take it for the next request. */
  #isRead(): boolean {
    const { method = 'POST', body } = this.#request
    return expectsBody(method) || body.length === 0
  }

  /** undici reads the answer again from its start. */
  #leaveToUndici(connection: Connection, kept: Buffer): void {
    this.#status = this.#retryAfterMs = this.#responseStart = null
    this.#responseBytes = 0
    this.#unusual = new UnusualAnswer(this)
    this.#unusual.received(kept)
    connection.pass(this.#unusual)
  }

  ended(): void {
    const head = this.#answer?.head ?? null
    // undici says the same of chunks that are cut off.
    this.#failed(head !== null && head.length === null && !head.keepsAlive ? 'invalid_response' : 'connection_closed')
  }

  failed(error: Error): void {
    this.#failed(reasonOfError(error))
  }

  onStart(): void {
    this.#firstByteMs ??= performance.now() - this.#startedAtMs
  }

  onHead(status: number, retryAfter: string | undefined): void {
    this.onStart()
    this.#status = status
    if (retryAfter !== undefined) this.#retryAfterMs = parseRetryAfter(status, retryAfter, this.#shared.now())
  }

  onBody(piece: Buffer): void {
    if (this.#settled) return
    if (this.#request.keepAnswer || this.#request.verdictOf(this.#status as number) !== 'success') this.#keepStart(piece)
    this.#responseBytes += piece.length
    if (this.#responseBytes < MAX_RESPONSE_BYTES) return
    this.#settleByStatus()
    this.#connection?.discard()
  }

  /** Of an unusual answer. */
  onEnd(): void {
    if (this.#settled) return
    this.#connection?.discard()
    this.#settleByStatus()
  }

  /** Of an unusual answer. */
  onError(error: Error): void {
    this.#failed(reasonOfError(error))
  }

  #failed(reason: ReasonCode): void {
    if (this.#settled) return
    if (!this.#foundClosed(reason)) return this.fail(reason)
    const { connections } = this.#shared
    const origin = this.#origin as Origin
    this.#redialled = true
    this.#reused = false
    this.#connection?.discard()
    connections.distrust(origin)
    this.#dial(connections.open(origin))
  }

  /** Whether the receiver closed a reused connection before it saw this request, which says nothing about the receiver. */
  #foundClosed(reason: ReasonCode): boolean {
    return (
      this.#reused && !this.#redialled && this.#firstByteMs === null && (reason === 'connection_closed' || reason === 'connection_reset')
    )
  }

  expire(): void {
    this.fail('timeout', `The deadline of ${this.#request.timeoutMs} ms passed while ${this.#doing()}.`)
  }

  /** Ends the attempt without a complete answer. */
  fail(reason: ReasonCode, sentence: string = REASONS[reason][1]): void {
    if (this.#settled) return
    this.#settle(REASONS[reason][0], reason, sentence)
    this.#connection?.discard()
  }

  #settleByStatus(): void {
    const status = this.#status as number
    const verdict = this.#request.verdictOf(status)
    if (verdict === 'success') this.#settle(verdict, null, null)
    else this.#settle(verdict, `http_${status}`, describeStatus(status))
  }

  #settle(verdict: Verdict, reason: string | null, error: string | null): void {
    const shared = this.#shared
    const connection = this.#connection
    const dialled = this.#reused ? null : connection
    this.#settled = true
    clearTimeout(this.#deadline)
    this.#unusual?.close()
    this.#leave(shared.underWay)
    this.#onOutcome({
      verdict,
      status: this.#status,
      reason,
      error,
      address: connection === null ? null : connection.address,
      timings: {
        dnsMs: dialled === null ? null : dialled.dnsMs,
        connectMs: dialled === null ? null : dialled.connectMs,
        tlsMs: dialled === null ? null : dialled.tlsMs,
        firstByteMs: this.#firstByteMs,
        totalMs: performance.now() - this.#startedAtMs,
      },
      retryAfterMs: this.#retryAfterMs,
      responseStart:
        this.#responseStart === null ? null : textOf(this.#responseStart.subarray(0, this.#responseBytes), this.#responseStart.length),
    })
    if (shared.onIdle !== null && shared.underWay.length === 0) shared.onIdle()
  }

  /** The last of the list gets its place. */
  #leave(underWay: Attempt[]): void {
    const last = underWay.pop() as Attempt
    if (last === this) return
    last.#place = this.#place
    underWay[last.#place] = last
  }

  /** Copied, because a chunk is a window on a much larger buffer. */
  #keepStart(chunk: Buffer): void {
    const { keepBytes = RESPONSE_START_BYTES } = this.#request
    if (this.#responseBytes >= keepBytes) return
    this.#responseStart ??= Buffer.allocUnsafeSlow(keepBytes)
    chunk.copy(this.#responseStart, this.#responseBytes)
  }

  #doing(): string {
    const connection = this.#connection as Connection
    if (this.#status !== null) return 'the response was being read'
    if (connection.phase === 'open') return connection.unsentBytes > 0 ? 'the request was being sent' : 'waiting for the response'
    return DIALLING[connection.phase]
  }
}

const DIALLING = {
  lookup: "the receiver's name was being looked up",
  connect: 'connecting to the receiver',
  tls: 'the TLS handshake was in progress',
}

/** One function for all attempts, because a closure for each would stay in memory until its deadline. */
function onDeadline(attempt: Attempt): void {
  attempt.expire()
}

/** Returns text that any store accepts: Postgres rejects U+0000, and replacing invalid bytes can make the text longer. */
function textOf(bytes: Buffer, maxBytes: number): string {
  const text = bytes.toString('utf8').replaceAll('\0', '\uFFFD')
  if (Buffer.byteLength(text) <= maxBytes) return text
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true })
}

/** Returns null if the text is not an http or https URL. */
function parseTarget(text: string, connections: Connections, tls: TlsIdentity | null): Target | null {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  const hasUser = url.username !== '' || url.password !== ''
  const credentials = hasUser ? `${decoded(url.username)}:${decoded(url.password)}` : null
  const path = url.pathname + url.search
  return {
    origin: connections.originOf(url, tls),
    host: url.host,
    path,
    start: requestStart('POST', path, url.host),
    beforePath: url.pathname.replace(/\/$/, ''),
    afterPath: url.search,
    authorization: credentials === null ? null : `Basic ${Buffer.from(credentials).toString('base64')}`,
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A % that is not part of an escape is kept.
    return text
  }
}

function headOf(target: Target, { method = 'POST', path = '', headers, body }: SendRequest): string | null {
  const fullPath = path === '' ? target.path : target.beforePath + path + target.afterPath
  const start = path === '' && method === 'POST' ? target.start : requestStart(method, fullPath, target.host)
  const length = body.length === 0 && !expectsBody(method) ? null : Buffer.byteLength(body)
  return start === null ? null : requestHead(start, withAuthorization(headers, target), length)
}

/** Of the methods that a destination can have, DELETE is the other one. */
function expectsBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}

function withAuthorization(headers: readonly string[], { authorization }: Target): readonly string[] {
  if (authorization === null) return headers
  for (let index = 0; index < headers.length; index += 2) if (headers[index]?.toLowerCase() === 'authorization') return headers
  return [...headers, 'authorization', authorization]
}
