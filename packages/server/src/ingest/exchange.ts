// One request with messages on its way through the stage, with the ways to answer it. What decides about a request knows only this interface, not
// where the request was read: in this thread, or in an ingest thread.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { API_ERRORS, type ApiErrorCode, errorBody } from '../errors.ts'
import type { Proxies } from '../http/proxies.ts'
import type { TraceContext } from '../model/messages.ts'
import { parseTraceContext } from '../outbound/trace-context.ts'
import { answerJson, answerPixel, answerSuccess, SUCCESS, successHeaders, textHeaders } from './answers.ts'
import { type Body, countOf, type RequestProblem, type Route, sampleOfBytes } from './parsing/parse-request.ts'
import type { PlainConnection } from './plain/plain-connections.ts'
import type { PlainHead } from './plain/plain-head.ts'

export interface Exchange {
  readonly route: Route
  readonly pixel: boolean
  /** The write key from the query string, on paths that accept one there. */
  readonly queryKey: string | undefined
  readonly authorization: string | undefined
  /** Whether it has passed the rate limit before, and is received again. */
  isAdmitted: boolean
  /** Null while the source is not known. */
  sourceId: string | null
  isFromBrowser(): boolean
  /** The address of the client, behind trusted proxies. */
  senderAddress(): string | null
  trace(): TraceContext | null
  answerSuccess(): void
  answerPixel(): void
  answerJson(status: number, body: object, headers?: readonly string[]): void
  /** Calls `ended` when the request has been answered or its connection is closed. */
  onAnswered(ended: () => void): void
}

/** A request that was read in this thread. */
export class HttpExchange implements Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly route: Route
  readonly pixel: boolean
  readonly queryKey: string | undefined
  isAdmitted = false
  sourceId: string | null = null
  readonly #proxies: Proxies

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    proxies: Proxies,
    { route, pixel = false, queryKey }: { route: Route; pixel?: boolean; queryKey?: string | undefined },
  ) {
    this.request = request
    this.response = response
    this.#proxies = proxies
    this.route = route
    this.pixel = pixel
    this.queryKey = queryKey
  }

  get authorization(): string | undefined {
    return this.request.headers.authorization
  }

  isFromBrowser(): boolean {
    return this.pixel || isFromBrowser(this.request)
  }

  senderAddress(): string | null {
    return this.#proxies.senderAddress(this.request)
  }

  trace(): TraceContext | null {
    return parseTraceContext(this.request)
  }

  answerSuccess(): void {
    answerSuccess(this.response)
  }

  answerPixel(): void {
    answerPixel(this.response)
  }

  answerJson(status: number, body: object, headers?: readonly string[]): void {
    answerJson(this.response, status, body, headers)
  }

  onAnswered(ended: () => void): void {
    this.response.once('close', ended)
  }
}

/** A plain request, which was read in this thread without node:http. */
export class PlainExchange implements Exchange {
  readonly route: Route
  readonly pixel = false
  readonly queryKey = undefined
  readonly headers: IncomingHttpHeaders
  isAdmitted = false
  sourceId: string | null = null
  readonly #connection: PlainConnection
  readonly #proxies: Proxies
  #isAnswered = false

  constructor(route: Route, connection: PlainConnection, { headers }: PlainHead, proxies: Proxies) {
    this.route = route
    this.headers = headers
    this.#connection = connection
    this.#proxies = proxies
  }

  get socket(): Socket {
    return this.#connection.socket
  }

  get authorization(): string | undefined {
    return this.headers.authorization
  }

  isFromBrowser(): boolean {
    return isFromBrowser(this)
  }

  senderAddress(): string | null {
    return this.#proxies.senderAddress(this)
  }

  trace(): TraceContext | null {
    return parseTraceContext(this)
  }

  answerSuccess(): void {
    this.#answer(200, successHeaders(this.headers.origin), SUCCESS)
  }

  answerPixel(): void {
    throw new Error('a plain request asks for no image')
  }

  answerJson(status: number, body: object, headers: readonly string[] = []): void {
    const text = `${JSON.stringify(body)}\n`
    this.#answer(status, textHeaders(text, this.headers.origin, headers), text)
  }

  onAnswered(ended: () => void): void {
    this.#connection.onAnswered(ended)
  }

  /** Once: the connection may have another request afterwards. */
  #answer(status: number, headers: readonly string[], text: string): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.#connection.answer(status, headers, text)
  }
}

export function answerErrorOf(
  exchange: Exchange,
  code: ApiErrorCode,
  { message, headers }: { message?: string | undefined; headers?: readonly string[] } = {},
): void {
  const [status, usual] = API_ERRORS[code]
  exchange.answerJson(status, errorBody({ code, message: message ?? usual }), headers)
}

export function requestProblem({ route }: Exchange, code: ApiErrorCode, body: Body): RequestProblem {
  return { ok: false, code, count: countOf(route, body), sample: sampleOfBytes(body.bytes) }
}

/** Browsers send an Origin header with every request of a script. sendBeacon sends plain text. */
export function isFromBrowser({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const type = headers['content-type']
  return headers.origin !== undefined || (type !== undefined && /^\s*text\/plain\b/i.test(type))
}
