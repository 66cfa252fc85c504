// Answers requests that are not accepted, and records them. A request that the client will send again (the service is overloaded, or its store
// unavailable) is not recorded as a rejection.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ApiErrorCode } from '../errors.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { answerError, answerSuccess } from './answers.ts'
import { type BodyFailure, discardBody } from './body/read-body.ts'
import type { IngestEvents } from './events.ts'
import { answerErrorOf, type Exchange } from './exchange.ts'
import type { KeyLookup } from './key-lookup.ts'
import { type RequestProblem, sampleOfBytes } from './parsing/parse-request.ts'
import { basicUser, unknownKeyMessage } from './sender.ts'

export interface RefusalParts extends Partial<Pick<IngestEvents, 'onRejected'>> {
  store: Pick<Store, 'ingest'>
  clock: Clock
  keys: KeyLookup
  settings: { lenientKeys: boolean }
  reportBug: (error: unknown) => void
}

export class Refusals {
  readonly #parts: RefusalParts

  constructor(parts: RefusalParts) {
    this.#parts = parts
  }

  reject(exchange: Exchange, { code, count, sample, message }: RequestProblem, headers: readonly string[] = []): void {
    this.#recordRequest(exchange.sourceId, code, count, sample)
    if (exchange.pixel) exchange.answerPixel()
    else answerErrorOf(exchange, code, { message, headers })
  }

  fail(exchange: Exchange, error: unknown): void {
    const code = error instanceof StoreUnavailable ? 'store_unavailable' : 'internal_error'
    if (code === 'internal_error') this.#parts.reportBug(error)
    // A browser does not retry an image, so the message is lost. It is recorded as a rejection.
    if (exchange.pixel) this.reject(exchange, { ok: false, code, count: 1, sample: '' })
    else answerErrorOf(exchange, code, { headers: code === 'store_unavailable' ? ['Retry-After', '1'] : [] })
  }

  /** Not recorded as a rejection, because the client sends the same request again. A browser does not send an image again, so its message is lost. */
  overloaded(exchange: Exchange, { message, seconds }: { message?: string; seconds: number } = { seconds: 1 }): void {
    if (exchange.pixel) this.reject(exchange, { ok: false, code: 'overloaded', count: 1, sample: '' })
    else answerErrorOf(exchange, 'overloaded', { message, headers: ['Retry-After', String(seconds)] })
  }

  unread(exchange: Exchange, failure: Exclude<BodyFailure, 'gone'>): void {
    const key = basicUser(exchange.authorization)
    exchange.sourceId = (key === undefined ? undefined : this.#parts.keys.sourceOf(key)?.id) ?? null
    const problem = (code: ApiErrorCode): RequestProblem => ({ ok: false, code, count: 1, sample: '' })
    switch (failure) {
      case 'too_large':
        return this.reject(exchange, problem(exchange.route === 'batch' ? 'batch_too_large' : 'message_too_large'))
      case 'no_room':
        return this.overloaded(exchange)
      case 'timeout':
        // The rest of the body is still to come on this connection, so the connection cannot be reused.
        return this.reject(exchange, problem('request_timeout'), ['Connection', 'close'])
      case 'bad_gzip':
        return this.reject(exchange, {
          ...problem('invalid_request'),
          message: 'Content-Encoding is gzip, but the body is not valid gzip. Compress the body or remove the header.',
        })
      case 'unknown_encoding':
        return this.reject(exchange, problem('unsupported_encoding'))
    }
  }

  unknownKey(exchange: Exchange, bytes: Buffer, key: unknown): void {
    const problem: RequestProblem = { ok: false, code: 'invalid_write_key', count: 1, sample: sampleOfBytes(bytes) }
    const message = unknownKeyMessage(exchange.authorization, key)
    if (message !== undefined) problem.message = message
    if (!this.#parts.settings.lenientKeys) return this.reject(exchange, problem)
    this.#recordRequest(null, problem.code, problem.count, problem.sample)
    if (exchange.pixel) exchange.answerPixel()
    else exchange.answerSuccess()
  }

  /** For a request that was rejected unread. `sample` is the start of its body. */
  recordUnknownKey(sample: string): void {
    this.#recordRequest(null, 'invalid_write_key', 1, sample)
  }

  record(sourceId: string | null, code: string, count: number, sample: string): void {
    const { store, clock, onRejected } = this.#parts
    store.ingest.reject({ sourceId, code, count, sample, atMs: clock.wallMs() })
    onRejected?.({ sourceId, code, messages: count, sample })
  }

  /** For requests that are rejected as a whole. The privacy rules were not applied to the sample. */
  #recordRequest(sourceId: string | null, code: string, count: number, sample: string): void {
    this.record(sourceId, code, count, this.#parts.keys.keepsSamples(sourceId) ? sample : '')
  }
}

/**
 * Answers a request with an unknown write key in its headers before its body is read, so that it uses no memory for the body. Calls `record` once, with
 * the start of the body.
 */
export function refuseUnread(
  request: IncomingMessage,
  response: ServerResponse,
  { lenientKeys, bodyTimeoutMs }: { lenientKeys: boolean; bodyTimeoutMs: number },
  record: (sample: string) => void,
): void {
  const { expect, authorization, 'content-encoding': encoding } = request.headers
  if (lenientKeys) answerSuccess(response)
  // A client that sent Expect: 100-continue does not get a 100. Whether it sends the body anyway is unknown, so the connection is closed.
  else
    answerError(response, 'invalid_write_key', {
      message: unknownKeyMessage(authorization, basicUser(authorization)),
      headers: expect === undefined ? [] : ['Connection', 'close'],
    })
  discardBody(request, bodyTimeoutMs, (start) => record(encoding === undefined ? sampleOfBytes(start) : ''))
}
