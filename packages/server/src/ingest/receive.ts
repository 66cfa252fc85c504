// Receives requests that contain messages: reads the body and gives it to deciding.ts. Also answers what browser clients load. Paths and methods
// belong to ingest.ts.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MessageType } from '@switchyard/protocol'
import type { IngestDeps } from './accepting.ts'
import { answerError, answerJson, answerPixel, answerSettings, answerSuccess, queryOf } from './answers.ts'
import { type BodyLimitsByRoute, createBodyLimits, readBody } from './body/read-body.ts'
import { browserSettings, sourceConfig } from './browser-settings.ts'
import type { Deciding } from './deciding.ts'
import { HttpExchange, PlainExchange } from './exchange.ts'
import type { Route } from './parsing/parse-request.ts'
import type { PlainHandler } from './plain/plain-connections.ts'
import { refuseUnread } from './refusals.ts'
import { basicUser } from './sender.ts'

/** Enough for 130 batches of the maximum size. Most requests arrive in one piece and do not count. */
export const MAX_BODIES_BYTES = 64 * 1024 * 1024

/** Not cacheable, because the key may be created a minute later. */
const UNKNOWN_KEY = {
  message: 'No source has this write key. Check it against the write keys in the dashboard.',
  headers: ['Cache-Control', 'no-store'],
}

export class Receiver {
  readonly #deps: Pick<IngestDeps, 'settings' | 'proxies'>
  readonly #deciding: Deciding
  readonly #limits: BodyLimitsByRoute

  constructor(deps: Pick<IngestDeps, 'settings' | 'proxies'>, deciding: Deciding) {
    this.#deps = deps
    this.#deciding = deciding
    this.#limits = createBodyLimits(deps.settings)
  }

  /** Whether a request is rejected because of its headers alone. */
  rejectsUnread({ headers }: IncomingMessage): boolean {
    return !this.#deps.settings.lenientKeys && this.#deciding.hasUnknownKey(headers.authorization)
  }

  messages(request: IncomingMessage, response: ServerResponse, route: Route): void {
    this.#receiveBody(new HttpExchange(request, response, this.#deps.proxies, { route }))
  }

  /** What handles the requests of connections that node:http does not read. */
  plain(routes: ReadonlyMap<string, Route>): PlainHandler {
    return {
      takes: ({ path, headers, bodyBytes }) => {
        const route = routes.get(path)
        if (route === undefined || this.#deciding.hasUnknownKey(headers.authorization)) return false
        return bodyBytes <= (route === 'batch' ? this.#limits.batch : this.#limits.call).maxBytes
      },
      handle: (connection, head, body) => {
        const exchange = new PlainExchange(routes.get(head.path) as Route, connection, head, this.#deps.proxies)
        this.#deciding.receive(exchange, body)
      },
    }
  }

  /** A batch whose write key may be in the query string, because sendBeacon cannot set headers. */
  beacon(request: IncomingMessage, response: ServerResponse): void {
    const queryKey = queryOf(request).get('writeKey') ?? undefined
    this.#receiveBody(new HttpExchange(request, response, this.#deps.proxies, { route: 'batch', queryKey }))
  }

  /** Always answered with an image, even for an unknown type. */
  pixel(request: IncomingMessage, response: ServerResponse, type: MessageType | undefined): void {
    const data = queryOf(request).get('data')
    // A HEAD request for an image is not an event.
    if (type === undefined || data === null || request.method === 'HEAD') return answerPixel(response)
    const exchange = new HttpExchange(request, response, this.#deps.proxies, { route: type, pixel: true })
    // In a query string + means a space, but base64 also uses +.
    this.#deciding.receive(exchange, Buffer.from(data.replaceAll(' ', '+'), 'base64'))
  }

  /** Reads the body and discards it. */
  ignored(request: IncomingMessage, response: ServerResponse): void {
    readBody(request, this.#limits.call, false, (_bytes, failure) => {
      if (failure === 'timeout') answerError(response, 'request_timeout', { headers: ['Connection', 'close'] })
      else if (failure !== 'gone') answerSuccess(response)
    })
  }

  settings(request: IncomingMessage, response: ServerResponse, writeKey: string): void {
    // Also for a disabled source: its messages are rejected when they arrive, and those rejections are recorded.
    if (this.#deciding.keys.sourceOf(writeKey) === undefined) return answerError(response, 'not_found', UNKNOWN_KEY)
    const body = browserSettings(writeKey, this.#deps.proxies.requestedOrigin(request))
    if (body === null)
      answerError(response, 'invalid_request', {
        message: 'The Host header is missing or is not a valid host name. Send the host name of this service in it.',
      })
    else answerSettings(response, body)
  }

  sourceConfig(request: IncomingMessage, response: ServerResponse): void {
    const writeKey = basicUser(request.headers.authorization) ?? queryOf(request).get('writeKey') ?? ''
    const source = this.#deciding.keys.sourceOf(writeKey)
    if (source === undefined) answerError(response, 'not_found', UNKNOWN_KEY)
    else answerJson(response, 200, sourceConfig(source, writeKey), ['Cache-Control', 'no-store'])
  }

  /** A bug must neither crash the process nor leave the sender without a response. */
  #receiveBody(exchange: HttpExchange): void {
    try {
      this.#readBody(exchange)
    } catch (error) {
      this.#deciding.fail(exchange, error)
    }
  }

  #readBody(exchange: HttpExchange): void {
    const { request, response, route, authorization } = exchange
    if (this.#deciding.hasUnknownKey(authorization))
      return refuseUnread(request, response, this.#deps.settings, (sample) => this.#deciding.recordUnknownKey(sample))
    readBody(
      request,
      route === 'batch' ? this.#limits.batch : this.#limits.call,
      basicUser(authorization) !== undefined,
      (bytes, failure) => {
        if (failure === null) this.#deciding.receive(exchange, bytes)
        else if (failure !== 'gone') this.#deciding.unread(exchange, failure)
      },
    )
  }
}
