// The requests with messages that an ingest thread has received. It reads bodies and writes answers; the main thread decides. Bodies of requests that
// are not answered yet are limited too, because the thread goes on reading while the main thread is busy.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { joined } from '../../http/port-stream.ts'
import { createProxies, type Proxies } from '../../http/proxies.ts'
import { parseTraceContext } from '../../outbound/trace-context.ts'
import { answerError, answerSuccess, answerText } from '../answers.ts'
import { type BodyFailure, type BodyLimitsByRoute, createBodyLimits, readBody } from '../body/read-body.ts'
import { isFromBrowser } from '../exchange.ts'
import type { Route } from '../parsing/parse-request.ts'
import { basicUser } from '../sender.ts'
import type { AnswerPacket, RequestField, RequestFields, RequestPacket, ThreadStart } from './protocol.ts'

interface Unanswered {
  response: ServerResponse
  bytes: number
}

interface Read {
  route: Route
  bytes: Buffer
  failure: Exclude<BodyFailure, 'gone'> | null
}

export class ThreadRequests {
  readonly #maxUnansweredBytes: number
  readonly #proxies: Proxies
  readonly #limits: BodyLimitsByRoute
  readonly #post: (packet: RequestPacket) => void
  readonly #unanswered = new Map<number, Unanswered>()
  #unansweredBytes = 0
  #writeKeys: ReadonlySet<string>
  #lastId = 0
  #isScheduled = false
  #fields: RequestField[] = []
  #bodies: Buffer[] = []

  constructor({ settings, trustedProxies, writeKeys }: ThreadStart, post: (packet: RequestPacket) => void) {
    this.#maxUnansweredBytes = settings.maxUnansweredBytes
    this.#proxies = createProxies(trustedProxies)
    this.#limits = createBodyLimits(settings)
    this.#writeKeys = new Set(writeKeys)
    this.#post = post
  }

  useKeys(writeKeys: readonly string[]): void {
    this.#writeKeys = new Set(writeKeys)
  }

  /**
   * Whether the headers contain a write key that is not known here. The main thread answers such a request: a key that was just created is known to it
   * first, and if it is unknown there too, the body is not read.
   */
  hasUnknownKey({ headers }: IncomingMessage): boolean {
    const key = basicUser(headers.authorization)
    return key !== undefined && !this.#writeKeys.has(key)
  }

  messages(request: IncomingMessage, response: ServerResponse, route: Route): void {
    const limits = route === 'batch' ? this.#limits.batch : this.#limits.call
    readBody(request, limits, basicUser(request.headers.authorization) !== undefined, (bytes, failure) => {
      if (failure === 'gone') return
      if (this.#unansweredBytes + bytes.length > this.#maxUnansweredBytes)
        return answerError(response, 'overloaded', { headers: ['Retry-After', '1'] })
      this.#send(request, response, { route, bytes, failure })
    })
  }

  answer({ succeeded, answers }: AnswerPacket): void {
    for (const id of succeeded) {
      const response = this.#take(id)
      if (response !== undefined) answerSuccess(response)
    }
    for (const [id, status, text, headers] of answers ?? []) {
      const response = this.#take(id)
      if (response !== undefined) answerText(response, status, text, headers)
    }
  }

  #send(request: IncomingMessage, response: ServerResponse, { route, bytes, failure }: Read): void {
    const id = ++this.#lastId
    this.#unanswered.set(id, { response, bytes: bytes.length })
    this.#unansweredBytes += bytes.length
    const fields: RequestFields = [
      id,
      route,
      request.headers.authorization,
      this.#proxies.senderAddress(request),
      isFromBrowser(request),
      parseTraceContext(request),
      failure ?? bytes.length,
    ]
    this.#fields.push(...fields)
    this.#bodies.push(bytes)
    this.#schedule()
  }

  #take(id: number): ServerResponse | undefined {
    const unanswered = this.#unanswered.get(id)
    if (unanswered === undefined) return undefined
    this.#unanswered.delete(id)
    this.#unansweredBytes -= unanswered.bytes
    return unanswered.response
  }

  /** At the end of this turn of the event loop, so that requests that are read in it are one message. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#isScheduled = false
    const packet: RequestPacket = { fields: this.#fields, bytes: joined(this.#bodies) }
    this.#fields = []
    this.#bodies = []
    this.#post(packet)
  }
}
