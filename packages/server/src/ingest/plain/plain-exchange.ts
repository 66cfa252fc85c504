// A plain request on its way through the stage: see plain-connections.ts.

import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Proxies } from '../../http/proxies.ts'
import type { TraceContext } from '../../model/messages.ts'
import { parseTraceContext } from '../../outbound/trace-context.ts'
import { SUCCESS, successHeaders, textHeaders } from '../answers.ts'
import { type Exchange, isFromBrowser } from '../exchange.ts'
import type { Route } from '../parsing/parse-request.ts'
import type { PlainConnection } from './plain-connections.ts'
import type { PlainHead } from './plain-head.ts'

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
