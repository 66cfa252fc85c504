// Receives requests that contain messages: reads the body, finds the source by its write key, and checks the access token. What is accepted
// is in accepting.ts, what is not in refusals.ts. Routing is not decided here: the plan is passed in as a function. Paths and methods belong
// to ingest.ts.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, type MessageType } from '@switchyard/protocol'
import type { ApiErrorCode } from '../errors.ts'
import type { Source } from '../store/store.ts'
import { IngestPacing } from '../timing/ingest-pacing.ts'
import { Accepting, type IngestDeps } from './accepting.ts'
import { answerError, answerJson, answerPixel, answerSettings, answerSuccess, queryOf } from './answers.ts'
import { createBodyBudget } from './body/body-budget.ts'
import { createInflate } from './body/inflate.ts'
import { type BodyLimits, readBody } from './body/read-body.ts'
import { browserSettings, sourceConfig } from './browser-settings.ts'
import { type Exchange, requestProblem } from './exchange.ts'
import { createKeyLookup, type KeyLookup } from './key-lookup.ts'
import { type Body, parseBody, type Route } from './parse-request.ts'
import { Refusals } from './refusals.ts'
import { basicUser, bearerToken } from './sender.ts'

/** Enough for 130 batches of the maximum size. Most requests arrive in one piece and do not count. */
export const MAX_BODIES_BYTES = 64 * 1024 * 1024

/** WWW-Authenticate values (RFC 6750) that tell a client what is wrong with its token. */
const CHALLENGES: ReadonlyMap<ApiErrorCode, string> = new Map([
  ['invalid_access_token', 'Bearer error="invalid_token"'],
  ['source_not_allowed', 'Bearer error="insufficient_scope"'],
])

/** Not cacheable, because the key may be created a minute later. */
const UNKNOWN_KEY = {
  message: 'No source has this write key. Check it against the write keys in the dashboard.',
  headers: ['Cache-Control', 'no-store'],
}

export class Receiver {
  readonly #deps: IngestDeps
  readonly #keys: KeyLookup
  readonly #refusals: Refusals
  readonly #accepting: Accepting
  readonly #pacing: IngestPacing
  readonly #batchLimits: BodyLimits
  readonly #callLimits: BodyLimits

  constructor(deps: IngestDeps, reportBug: (error: unknown) => void) {
    const { store, clock, settings, onRejected } = deps
    this.#deps = deps
    this.#pacing = deps.pacing ?? new IngestPacing()
    this.#keys = createKeyLookup(() => store.configuration())
    this.#refusals = new Refusals({ store, clock, keys: this.#keys, settings, reportBug, ...(onRejected ? { onRejected } : {}) })
    this.#accepting = new Accepting(deps, this.#refusals, this.#pacing, (exchange, bytes) => this.#receiveSafely(exchange, bytes))
    const limits = {
      timeoutMs: settings.bodyTimeoutMs,
      budget: createBodyBudget(settings.maxBodiesBytes),
      inflate: createInflate(),
    }
    this.#batchLimits = { ...limits, maxBytes: MAX_BATCH_BYTES }
    this.#callLimits = { ...limits, maxBytes: MAX_MESSAGE_BYTES }
  }

  /** Whether a request is rejected because of its headers alone. */
  rejectsUnread(request: IncomingMessage): boolean {
    return !this.#deps.settings.lenientKeys && this.#refusals.hasUnknownKey(request)
  }

  messages(request: IncomingMessage, response: ServerResponse, route: Route): void {
    this.#receiveBody({ request, response, route, pixel: false, sourceId: null })
  }

  /** A batch whose write key may be in the query string, because sendBeacon cannot set headers. */
  beacon(request: IncomingMessage, response: ServerResponse): void {
    const queryKey = queryOf(request).get('writeKey') ?? undefined
    this.#receiveBody({ request, response, route: 'batch', pixel: false, queryKey, sourceId: null })
  }

  /** Always answered with an image, even for an unknown type. */
  pixel(request: IncomingMessage, response: ServerResponse, type: MessageType | undefined): void {
    const data = queryOf(request).get('data')
    // A HEAD request for an image is not an event.
    if (type === undefined || data === null || request.method === 'HEAD') return answerPixel(response)
    // In a query string + means a space, but base64 also uses +.
    this.#receiveInTurn({ request, response, route: type, pixel: true, sourceId: null }, Buffer.from(data.replaceAll(' ', '+'), 'base64'))
  }

  /** Reads the body and discards it. */
  ignored(request: IncomingMessage, response: ServerResponse): void {
    readBody(request, this.#callLimits, false, (_bytes, failure) => {
      if (failure === 'timeout') answerError(response, 'request_timeout', { headers: ['Connection', 'close'] })
      else if (failure !== 'gone') answerSuccess(response)
    })
  }

  settings(request: IncomingMessage, response: ServerResponse, writeKey: string): void {
    // Also for a disabled source: its messages are rejected when they arrive, and those rejections are recorded.
    if (this.#keys.sourceOf(writeKey) === undefined) return answerError(response, 'not_found', UNKNOWN_KEY)
    const body = browserSettings(writeKey, this.#deps.proxies.requestedOrigin(request))
    if (body === null)
      answerError(response, 'invalid_request', {
        message: 'The Host header is missing or is not a valid host name. Send the host name of this service in it.',
      })
    else answerSettings(response, body)
  }

  sourceConfig(request: IncomingMessage, response: ServerResponse): void {
    const writeKey = basicUser(request.headers.authorization) ?? queryOf(request).get('writeKey') ?? ''
    const source = this.#keys.sourceOf(writeKey)
    if (source === undefined) answerError(response, 'not_found', UNKNOWN_KEY)
    else answerJson(response, 200, sourceConfig(source, writeKey), ['Cache-Control', 'no-store'])
  }

  /** A bug must neither crash the process nor leave the sender without a response. */
  #receiveBody(exchange: Exchange): void {
    try {
      this.#readBody(exchange)
    } catch (error) {
      this.#refusals.fail(exchange, error)
    }
  }

  #readBody(exchange: Exchange): void {
    if (this.#refusals.hasUnknownKey(exchange.request)) return this.#refusals.unknownKeyUnread(exchange)
    const isKnown = basicUser(exchange.request.headers.authorization) !== undefined
    readBody(exchange.request, exchange.route === 'batch' ? this.#batchLimits : this.#callLimits, isKnown, (bytes, failure) => {
      if (failure === null) this.#receiveInTurn(exchange, bytes)
      else if (failure !== 'gone') this.#refusals.unread(exchange, failure)
    })
  }

  #receiveInTurn(exchange: Exchange, bytes: Buffer): void {
    const { response } = exchange
    this.#pacing.admit({
      bytes: bytes.length,
      sender: () => this.#keys.sourceOf(basicUser(exchange.request.headers.authorization) ?? '')?.id ?? '',
      handle: () => this.#receiveSafely(exchange, bytes),
      refuse: () => this.#refusals.overloaded(exchange),
      onAnswered: (ended) => response.once('close', ended),
    })
  }

  /** See #receiveBody. */
  #receiveSafely(exchange: Exchange, bytes: Buffer): void {
    try {
      this.#receive(exchange, bytes)
    } catch (error) {
      this.#refusals.fail(exchange, error)
    }
  }

  #receive(exchange: Exchange, bytes: Buffer): void {
    const { authorization } = exchange.request.headers
    const basicKey = basicUser(authorization)
    let source = basicKey === undefined ? undefined : this.#keys.sourceOf(basicKey)
    // The body is not parsed if the key in the headers is unknown.
    if (basicKey !== undefined && source === undefined) return this.#refusals.unknownKey(exchange, bytes, basicKey)
    exchange.sourceId = source?.id ?? null
    const body = parseBody(bytes)
    if (!body.ok) return this.#refusals.reject(exchange, body)
    if (source === undefined) {
      const key: unknown = body.fields['writeKey'] ?? exchange.queryKey
      source = typeof key === 'string' ? this.#keys.sourceOf(key) : undefined
      if (source === undefined) return this.#refusals.unknownKey(exchange, bytes, key)
      exchange.sourceId = source.id
    }
    if (!source.enabled) return this.#refusals.reject(exchange, requestProblem(exchange, 'source_disabled', body))
    if (source.requireOAuth) return this.#authorize(exchange, source, body, bearerToken(authorization))
    this.#accepting.accept(exchange, source, body)
  }

  #authorize(exchange: Exchange, source: Source, body: Body, token: string | undefined): void {
    const { oauth } = this.#deps
    const rejectWith = (code: ApiErrorCode): void =>
      this.#refusals.reject(exchange, requestProblem(exchange, code, body), ['WWW-Authenticate', CHALLENGES.get(code) ?? 'Bearer'])
    if (token === undefined) return rejectWith('oauth_required')
    if (oauth === undefined) return rejectWith('invalid_access_token')
    oauth(token)
      .then((sourceIds) => {
        if (sourceIds === null) rejectWith('invalid_access_token')
        else if (!sourceIds.has(source.id)) rejectWith('source_not_allowed')
        else this.#accepting.accept(exchange, source, body)
      })
      .catch((error: unknown) => this.#refusals.fail(exchange, error))
  }
}
