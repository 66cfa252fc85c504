// Decides about requests whose bodies were read: finds the source by its write key and checks the access token. What is accepted is in accepting.ts,
// what is not in refusals.ts. Routing is not decided here: the plan is passed in as a function. Does not know how a request was read and is
// answered: see exchange.ts.

import type { ApiErrorCode } from '../errors.ts'
import type { Source } from '../store/store.ts'
import { IngestPacing } from '../timing/ingest-pacing.ts'
import { Accepting, type IngestDeps } from './accepting.ts'
import type { BodyFailure } from './body/read-body.ts'
import { type Exchange, requestProblem } from './exchange.ts'
import { createKeyLookup, type KeyLookup } from './key-lookup.ts'
import { type Body, parseBody } from './parsing/parse-request.ts'
import { Refusals } from './refusals.ts'
import { basicUser, bearerToken } from './sender.ts'

/** WWW-Authenticate values (RFC 6750) that tell a client what is wrong with its token. */
const CHALLENGES: ReadonlyMap<ApiErrorCode, string> = new Map([
  ['invalid_access_token', 'Bearer error="invalid_token"'],
  ['source_not_allowed', 'Bearer error="insufficient_scope"'],
])

export class Deciding {
  readonly keys: KeyLookup
  readonly #deps: IngestDeps
  readonly #refusals: Refusals
  readonly #accepting: Accepting
  readonly #pacing: IngestPacing

  constructor(deps: IngestDeps, reportBug: (error: unknown) => void) {
    const { store, clock, settings, onRejected } = deps
    this.#deps = deps
    this.#pacing = deps.pacing ?? new IngestPacing()
    this.keys = createKeyLookup(() => store.configuration())
    this.#refusals = new Refusals({ store, clock, keys: this.keys, settings, reportBug, ...(onRejected ? { onRejected } : {}) })
    this.#accepting = new Accepting(deps, this.#refusals, this.#pacing, (exchange, bytes) => this.#receiveSafely(exchange, bytes))
  }

  /** Whether an Authorization header contains an unknown write key; false if it contains none. */
  hasUnknownKey(authorization: string | undefined): boolean {
    const key = basicUser(authorization)
    return key !== undefined && this.keys.sourceOf(key) === undefined
  }

  writeKeys(): string[] {
    return this.keys.all()
  }

  /** For a request that was answered because of its headers. `sample` is the start of its body. */
  recordUnknownKey(sample: string): void {
    this.#refusals.recordUnknownKey(sample)
  }

  /** The body was not read, and not because the connection is closed. */
  unread(exchange: Exchange, failure: Exclude<BodyFailure, 'gone'>): void {
    this.#refusals.unread(exchange, failure)
  }

  fail(exchange: Exchange, error: unknown): void {
    this.#refusals.fail(exchange, error)
  }

  receive(exchange: Exchange, bytes: Buffer): void {
    this.#pacing.admit({
      bytes: bytes.length,
      sender: () => this.keys.sourceOf(basicUser(exchange.authorization) ?? '')?.id ?? '',
      handle: () => this.#receiveSafely(exchange, bytes),
      refuse: () => this.#refusals.overloaded(exchange),
      onAnswered: (ended) => exchange.onAnswered(ended),
    })
  }

  /** A bug must neither crash the process nor leave the sender without a response. */
  #receiveSafely(exchange: Exchange, bytes: Buffer): void {
    try {
      this.#receive(exchange, bytes)
    } catch (error) {
      this.#refusals.fail(exchange, error)
    }
  }

  #receive(exchange: Exchange, bytes: Buffer): void {
    const { authorization } = exchange
    const basicKey = basicUser(authorization)
    let source = basicKey === undefined ? undefined : this.keys.sourceOf(basicKey)
    // The body is not parsed if the key in the headers is unknown.
    if (basicKey !== undefined && source === undefined) return this.#refusals.unknownKey(exchange, bytes, basicKey)
    exchange.sourceId = source?.id ?? null
    const body = parseBody(bytes)
    if (!body.ok) return this.#refusals.reject(exchange, body)
    if (source === undefined) {
      const key: unknown = body.fields['writeKey'] ?? exchange.queryKey
      source = typeof key === 'string' ? this.keys.sourceOf(key) : undefined
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
