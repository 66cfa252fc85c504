// Handles requests that contain messages, from reading the body to sending the response. Invariant: a request is acknowledged
// only after the store has committed. If anything fails before that, the response is an error and nothing of the request is
// stored. Routing is not decided here: the plan is passed in as a function. Paths and methods belong to ingest.ts.

import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type JsonObject, MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, type MessageType, type Verdict } from '@switchyard/protocol'
import { type ApiErrorCode, errorBody } from '../errors.ts'
import type { Proxies } from '../http/proxies.ts'
import { parseTraceContext } from '../outbound/trace-context.ts'
import type { PlanJudges } from '../plans/plan-judges.ts'
import {
  type AcceptBatch,
  type Configuration,
  type Nodes,
  type Plan,
  type SegmentContent,
  type Source,
  type Store,
  StoreUnavailable,
} from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { IngestPacing } from '../timing/ingest-pacing.ts'
import { answerError, answerJson, answerPixel, answerSettings, answerSuccess, queryOf } from './answers.ts'
import { browserSettings, sourceConfig } from './browser-settings.ts'
import type { IngestEvents } from './events.ts'
import { createInflate } from './inflate.ts'
import type { BacklogLimit } from './limits/backlog-limit.ts'
import { createBodyBudget } from './limits/body-budget.ts'
import { createRateLimit, createSharedRateLimit, type RateLimit } from './limits/rate-limit.ts'
import {
  type Body,
  countOf,
  type ParsedRequest,
  parseBody,
  parseRequest,
  type RequestProblem,
  type Route,
  sampleOfBytes,
} from './parse-request.ts'
import { hasPrivacy, type Privacy, protectAddress } from './privacy/privacy.ts'
import { type BodyFailure, discardBody, readBody } from './read-body.ts'
import { basicUser, bearerToken, unknownKeyMessage } from './sender.ts'

export interface IngestSettings {
  /** If true, a request with an unknown write key is answered with success, and its messages are dropped. */
  lenientKeys: boolean
  /** Messages per second and source; null for no limit. */
  rateLimitPerSecond: number | null
  /** The timeout for receiving the body of a request. */
  bodyTimeoutMs: number
  /** The maximum number of bytes of all bodies that are being read. */
  maxBodiesBytes: number
}

/** Enough for 130 batches of the maximum size. Most requests arrive in one piece and do not count. */
export const MAX_BODIES_BYTES = 64 * 1024 * 1024
const MAX_VIOLATIONS_PER_REQUEST = 2_000

export interface IngestDeps extends Partial<IngestEvents> {
  store: Pick<Store, 'ingest' | 'configuration' | 'nodes'>
  plan: (configuration: Configuration, sourceId: string, content: SegmentContent) => Plan
  clock: Clock
  proxies: Proxies
  privacy: Privacy
  /** Without it, no message is checked against a tracking plan. */
  plans?: Pick<PlanJudges, 'of'> | undefined
  settings: IngestSettings
  pacing?: IngestPacing | undefined
  backlogLimit?: Pick<BacklogLimit, 'isReached'> | undefined
  /** Returns the ids of the sources that an access token may send to, or null if the token is invalid. Without this function, every token is invalid. */
  oauth?: ((token: string) => Promise<ReadonlySet<string> | null>) | undefined
}

export interface Receiver {
  /** Whether a request is rejected because of its headers alone. */
  rejectsUnread(request: IncomingMessage): boolean
  messages(request: IncomingMessage, response: ServerResponse, route: Route): void
  /** A batch whose write key may be in the query string, because sendBeacon cannot set headers. */
  beacon(request: IncomingMessage, response: ServerResponse): void
  /** Always answered with an image, even for an unknown type. */
  pixel(request: IncomingMessage, response: ServerResponse, type: MessageType | undefined): void
  /** Reads the body and discards it. */
  ignored(request: IncomingMessage, response: ServerResponse): void
  settings(request: IncomingMessage, response: ServerResponse, writeKey: string): void
  sourceConfig(request: IncomingMessage, response: ServerResponse): void
}

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  route: Route
  pixel: boolean
  /** The write key from the query string, on paths that accept one there. */
  queryKey?: string | undefined
  /** Null while the source is not known. */
  sourceId: string | null
}

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

const BACKLOG_LIMIT = {
  message:
    'Too many deliveries to a destination of this source are pending, so no message was accepted. Wait for the number of seconds in the Retry-After header, then try again.',
  seconds: 5,
}

function rateLimitOf(perSecond: number | null, nodes: Nodes | undefined, clock: Clock): RateLimit | null {
  if (perSecond === null) return null
  return nodes === undefined ? createRateLimit(perSecond) : createSharedRateLimit(perSecond, nodes, () => clock.scheduleMs())
}

export function createReceiver(deps: IngestDeps, reportBug: (error: unknown) => void): Receiver {
  const {
    store,
    plan,
    clock,
    proxies,
    privacy,
    plans,
    settings,
    oauth,
    pacing = new IngestPacing(),
    backlogLimit,
    onAccepted,
    onRejected,
    onSuppressed,
    onWarned,
  } = deps
  const rateLimit = rateLimitOf(settings.rateLimitPerSecond, store.nodes, clock)
  const { bodyTimeoutMs: timeoutMs } = settings
  const budget = createBodyBudget(settings.maxBodiesBytes)
  const inflate = createInflate()
  const batchLimits = { maxBytes: MAX_BATCH_BYTES, timeoutMs, budget, inflate }
  const callLimits = { maxBytes: MAX_MESSAGE_BYTES, timeoutMs, budget, inflate }
  const { sourceOf, keepsSamples } = createKeyLookup(() => store.configuration())

  function receive(exchange: Exchange, bytes: Buffer): void {
    const { authorization } = exchange.request.headers
    const basicKey = basicUser(authorization)
    let source = basicKey === undefined ? undefined : sourceOf(basicKey)
    // The body is not parsed if the key in the headers is unknown.
    if (basicKey !== undefined && source === undefined) return unknownKey(exchange, bytes, basicKey)
    exchange.sourceId = source?.id ?? null
    const body = parseBody(bytes)
    if (!body.ok) return reject(exchange, body)
    if (source === undefined) {
      const key: unknown = body.fields['writeKey'] ?? exchange.queryKey
      source = typeof key === 'string' ? sourceOf(key) : undefined
      if (source === undefined) return unknownKey(exchange, bytes, key)
      exchange.sourceId = source.id
    }
    if (!source.enabled) return reject(exchange, requestProblem(exchange, 'source_disabled', body))
    if (source.requireOAuth) return authorize(exchange, source, body, bearerToken(authorization))
    accept(exchange, source, body)
  }

  function authorize(exchange: Exchange, source: Source, body: Body, token: string | undefined): void {
    const rejectWith = (code: ApiErrorCode): void =>
      reject(exchange, requestProblem(exchange, code, body), ['WWW-Authenticate', CHALLENGES.get(code) ?? 'Bearer'])
    if (token === undefined) return rejectWith('oauth_required')
    if (oauth === undefined) return rejectWith('invalid_access_token')
    oauth(token)
      .then((sourceIds) => {
        if (sourceIds === null) rejectWith('invalid_access_token')
        else if (!sourceIds.has(source.id)) rejectWith('source_not_allowed')
        else accept(exchange, source, body)
      })
      .catch((error: unknown) => fail(exchange, error))
  }

  function accept(exchange: Exchange, source: Source, body: Body): void {
    if (rateLimit !== null) {
      const waitSeconds = rateLimit.waitSeconds(source.id, clock.scheduleMs())
      if (waitSeconds > 0) return reject(exchange, requestProblem(exchange, 'rate_limited', body), ['Retry-After', String(waitSeconds)])
    }
    const configuration = store.configuration()
    const users = configuration.suppressions.get(source.id)
    const isSuppressed = users === undefined || users.size === 0 ? null : (item: JsonObject) => isOfUsers(item, users)
    const protection = privacy.of(source)
    const trackingPlan = configuration.plans.size === 0 ? null : (plans?.of(configuration, source.id) ?? null)
    const parsed = parseRequest(
      exchange.route,
      body,
      isSuppressed,
      randomUUID,
      protection?.() ?? null,
      trackingPlan?.forRequest(),
      clock.wallMs(),
    )
    // A request is charged for its valid messages, or as one message if it has none. Items that are not valid cost nothing.
    const charged = parsed.ok ? Math.max(1, parsed.items.length + parsed.suppressed) : 1
    rateLimit?.charge(source.id, charged)
    if (!parsed.ok) return reject(exchange, parsed)
    const { items, messageIds, sentAt, context, integrations } = parsed
    if (items.length === 0) return conclude(exchange, source.id, parsed)
    const address = proxies.senderAddress(exchange.request)
    const content: SegmentContent = {
      sourceId: source.id,
      receivedAtMs: clock.wallMs(),
      // With a limit of its own: the messages may have used up theirs.
      ip: protection === null || address === null ? address : protectAddress(protection(), address),
      browser: exchange.pixel || isFromBrowser(exchange.request),
      sentAt,
      context,
      integrations,
      trace: parseTraceContext(exchange.request),
      items,
    }
    if (parsed.verdicts !== null) content.violations = violationsIn(parsed.verdicts)
    const planned = plan(configuration, source.id, content)
    // Refund a charge if nothing is stored: the client will retry the request, and it is charged then.
    const refund = (): void => rateLimit?.charge(source.id, -charged)
    if (backlogLimit?.isReached(planned)) {
      refund()
      pacing.countRefused()
      return overloaded(exchange, BACKLOG_LIMIT)
    }
    store.ingest
      .accept({ content, body: parsed.body, messageIds, plan: planned, quarantined: quarantinedIn(parsed, trackingPlan?.planId) })
      .then(({ duplicates }) => {
        onAccepted?.({
          sourceId: source.id,
          messages: items.length,
          duplicates: duplicates.length,
          bytes: parsed.body.length,
          content,
          repeated: duplicates,
        })
        conclude(exchange, source.id, parsed)
      })
      .catch((error: unknown) => {
        refund()
        fail(exchange, error)
      })
  }

  /** Called when the valid messages are stored. Only now are the rejected ones counted: if the request failed, its retry would count them again. */
  function conclude(exchange: Exchange, sourceId: string, parsed: ParsedRequest): void {
    const { rejected, rejections, suppressed, warnings } = parsed
    if (suppressed > 0) {
      store.ingest.suppressed(sourceId, suppressed)
      onSuppressed?.({ sourceId, messages: suppressed })
    }
    if (warnings !== null) for (const [code, count] of warnings.counts) onWarned?.({ sourceId, code, messages: count })
    if (rejected.length > 0) for (const [code, { count, sample }] of rejections) record(sourceId, code, count, sample)
    answer(exchange, parsed)
  }

  function rejectUnread(exchange: Exchange, failure: Exclude<BodyFailure, 'gone'>): void {
    const key = basicUser(exchange.request.headers.authorization)
    exchange.sourceId = (key === undefined ? undefined : sourceOf(key)?.id) ?? null
    const problem = (code: ApiErrorCode): RequestProblem => ({ ok: false, code, count: 1, sample: '' })
    switch (failure) {
      case 'too_large':
        return reject(exchange, problem(exchange.route === 'batch' ? 'batch_too_large' : 'message_too_large'))
      case 'no_room':
        return overloaded(exchange)
      case 'timeout':
        // The rest of the body is still to come on this connection, so the connection cannot be reused.
        return reject(exchange, problem('request_timeout'), ['Connection', 'close'])
      case 'bad_gzip':
        return reject(exchange, {
          ...problem('invalid_request'),
          message: 'Content-Encoding is gzip, but the body is not valid gzip. Compress the body or remove the header.',
        })
      case 'unknown_encoding':
        return reject(exchange, problem('unsupported_encoding'))
    }
  }

  function unknownKey(exchange: Exchange, bytes: Buffer, key: unknown): void {
    const problem: RequestProblem = { ok: false, code: 'invalid_write_key', count: 1, sample: sampleOfBytes(bytes) }
    const message = unknownKeyMessage(exchange.request.headers.authorization, key)
    if (message !== undefined) problem.message = message
    if (!settings.lenientKeys) return reject(exchange, problem)
    recordRequest(null, problem.code, problem.count, problem.sample)
    if (exchange.pixel) answerPixel(exchange.response)
    else answerSuccess(exchange.response)
  }

  function reject(exchange: Exchange, { code, count, sample, message }: RequestProblem, headers: readonly string[] = []): void {
    recordRequest(exchange.sourceId, code, count, sample)
    if (exchange.pixel) answerPixel(exchange.response)
    else answerError(exchange.response, code, { message, headers })
  }

  function fail(exchange: Exchange, error: unknown): void {
    const code = error instanceof StoreUnavailable ? 'store_unavailable' : 'internal_error'
    if (code === 'internal_error') reportBug(error)
    // A browser does not retry an image, so the message is lost. It is recorded as a rejection.
    if (exchange.pixel) reject(exchange, { ok: false, code, count: 1, sample: '' })
    else answerError(exchange.response, code, { headers: code === 'store_unavailable' ? ['Retry-After', '1'] : [] })
  }

  /** For requests that are rejected as a whole. The privacy rules were not applied to the sample. */
  function recordRequest(sourceId: string | null, code: string, count: number, sample: string): void {
    record(sourceId, code, count, keepsSamples(sourceId) ? sample : '')
  }

  function record(sourceId: string | null, code: string, count: number, sample: string): void {
    store.ingest.reject({ sourceId, code, count, sample, atMs: clock.wallMs() })
    onRejected?.({ sourceId, code, messages: count, sample })
  }

  /** Not recorded as a rejection, because the client sends the same request again. A browser does not send an image again, so its message is lost. */
  function overloaded(exchange: Exchange, { message, seconds }: { message?: string; seconds: number } = { seconds: 1 }): void {
    if (exchange.pixel) reject(exchange, { ok: false, code: 'overloaded', count: 1, sample: '' })
    else answerError(exchange.response, 'overloaded', { message, headers: ['Retry-After', String(seconds)] })
  }

  function receiveInTurn(exchange: Exchange, bytes: Buffer): void {
    const { response } = exchange
    pacing.admit({
      bytes: bytes.length,
      sender: () => sourceOf(basicUser(exchange.request.headers.authorization) ?? '')?.id ?? '',
      handle: () => receiveSafely(exchange, bytes),
      refuse: () => overloaded(exchange),
      onAnswered: (ended) => response.once('close', ended),
    })
  }

  /** A bug must neither crash the process nor leave the sender without a response. */
  function receiveSafely(exchange: Exchange, bytes: Buffer): void {
    try {
      receive(exchange, bytes)
    } catch (error) {
      fail(exchange, error)
    }
  }

  /** Whether the headers contain an unknown write key; false if they contain none. */
  function hasUnknownKey({ headers }: IncomingMessage): boolean {
    const key = basicUser(headers.authorization)
    return key !== undefined && sourceOf(key) === undefined
  }

  /** Answers before the body is read, so that a request with an unknown key uses no memory for its body. The start of the body is recorded with the rejection. */
  function rejectUnknownKey(exchange: Exchange): void {
    const { request, response } = exchange
    const { expect, authorization, 'content-encoding': encoding } = request.headers
    if (settings.lenientKeys) answerSuccess(response)
    // A client that sent Expect: 100-continue does not get a 100. Whether it sends the body anyway is unknown, so the connection is closed.
    else
      answerError(response, 'invalid_write_key', {
        message: unknownKeyMessage(authorization, basicUser(authorization)),
        headers: expect === undefined ? [] : ['Connection', 'close'],
      })
    discardBody(request, timeoutMs, (start) =>
      recordRequest(null, 'invalid_write_key', 1, encoding === undefined ? sampleOfBytes(start) : ''),
    )
  }

  function receiveBody(exchange: Exchange): void {
    if (hasUnknownKey(exchange.request)) return rejectUnknownKey(exchange)
    const isKnown = basicUser(exchange.request.headers.authorization) !== undefined
    readBody(exchange.request, exchange.route === 'batch' ? batchLimits : callLimits, isKnown, (bytes, failure) => {
      if (failure === null) receiveInTurn(exchange, bytes)
      else if (failure !== 'gone') rejectUnread(exchange, failure)
    })
  }

  return {
    rejectsUnread: (request) => !settings.lenientKeys && hasUnknownKey(request),

    messages(request, response, route) {
      receiveBody({ request, response, route, pixel: false, sourceId: null })
    },

    beacon(request, response) {
      const queryKey = queryOf(request).get('writeKey') ?? undefined
      receiveBody({ request, response, route: 'batch', pixel: false, queryKey, sourceId: null })
    },

    pixel(request, response, type) {
      const data = queryOf(request).get('data')
      // A HEAD request for an image is not an event.
      if (type === undefined || data === null || request.method === 'HEAD') return answerPixel(response)
      // In a query string + means a space, but base64 also uses +.
      receiveInTurn({ request, response, route: type, pixel: true, sourceId: null }, Buffer.from(data.replaceAll(' ', '+'), 'base64'))
    },

    ignored(request, response) {
      readBody(request, callLimits, false, (_bytes, failure) => {
        if (failure === 'timeout') answerError(response, 'request_timeout', { headers: ['Connection', 'close'] })
        else if (failure !== 'gone') answerSuccess(response)
      })
    },

    settings(request, response, writeKey) {
      // Also for a disabled source: its messages are rejected when they arrive, and those rejections are recorded.
      if (sourceOf(writeKey) === undefined) return answerError(response, 'not_found', UNKNOWN_KEY)
      const body = browserSettings(writeKey, proxies.requestedOrigin(request))
      if (body === null)
        answerError(response, 'invalid_request', {
          message: 'The Host header is missing or is not a valid host name. Send the host name of this service in it.',
        })
      else answerSettings(response, body)
    },

    sourceConfig(request, response) {
      const writeKey = basicUser(request.headers.authorization) ?? queryOf(request).get('writeKey') ?? ''
      const source = sourceOf(writeKey)
      if (source === undefined) answerError(response, 'not_found', UNKNOWN_KEY)
      else answerJson(response, 200, sourceConfig(source, writeKey), ['Cache-Control', 'no-store'])
    },
  }
}

function answer({ response, route, pixel }: Exchange, { items, rejected, suppressed, warnings }: ParsedRequest): void {
  if (pixel) return answerPixel(response)
  const [first] = rejected
  const warned = warnings === null ? {} : { warnings: warnings.list }
  if (first === undefined) return warnings === null ? answerSuccess(response) : answerJson(response, 200, { success: true, ...warned })
  const accepted = items.length + suppressed
  if (accepted > 0) return answerJson(response, 200, { success: true, accepted, rejected, ...warned })
  // No message was valid: respond with the error of the first. For a batch, also list the error of each.
  answerJson(response, 400, route === 'batch' ? { ...errorBody(first), rejected } : errorBody(first))
}

/** A message can be much smaller than the list of what is wrong with it, so after many violations in a request, only the first of each message is kept. */
function violationsIn(verdicts: ReadonlyMap<number, Verdict>): NonNullable<SegmentContent['violations']> {
  let kept = 0
  const bounded = ({ violations }: Verdict): Verdict['violations'] => {
    kept += violations.length
    return kept > MAX_VIOLATIONS_PER_REQUEST ? violations.slice(0, 1) : violations
  }
  return Object.fromEntries(Array.from(verdicts, ([index, verdict]) => [index, bounded(verdict)]))
}

function quarantinedIn({ verdicts }: ParsedRequest, planId = ''): AcceptBatch['quarantined'] {
  if (verdicts === null) return undefined
  const held = [...verdicts].flatMap(([index, { mode, violations }]) => (mode === 'quarantine' ? [{ index, planId, violations }] : []))
  return held.length === 0 ? undefined : held
}

function requestProblem({ route }: Exchange, code: ApiErrorCode, body: Body): RequestProblem {
  return { ok: false, code, count: countOf(route, body), sample: sampleOfBytes(body.bytes) }
}

/** Browsers send an Origin header with every request of a script. sendBeacon sends plain text. */
function isFromBrowser({ headers }: IncomingMessage): boolean {
  const type = headers['content-type']
  return headers.origin !== undefined || (type !== undefined && /^\s*text\/plain\b/i.test(type))
}

interface KeyLookup {
  sourceOf: (writeKey: string) => Source | undefined
  /**
   * Whether the start of a rejected request may be stored. Without a known source, it may not if any source has privacy rules, because the
   * write key may be an old or misspelled one of that source, or be in a body that cannot be parsed.
   */
  keepsSamples: (sourceId: string | null) => boolean
}

/** The index is built once per configuration. */
function createKeyLookup(configuration: () => Configuration): KeyLookup {
  let indexed: Configuration | undefined
  let sources = new Map<string, Source>()
  let anyPrivacy = false
  function index(): Configuration {
    const current = configuration()
    if (current === indexed) return current
    sources = new Map()
    anyPrivacy = false
    for (const source of current.sources.values()) {
      for (const key of source.writeKeys) sources.set(key, source)
      anyPrivacy ||= hasPrivacy(source)
    }
    return (indexed = current)
  }
  return {
    sourceOf(writeKey) {
      index()
      return sources.get(writeKey)
    },
    keepsSamples(sourceId) {
      const source = index().sources.get(sourceId ?? '')
      return source === undefined ? !anyPrivacy : !hasPrivacy(source)
    },
  }
}

/** An alias message also belongs to its previousId, as it does for a deletion request. */
function isOfUsers({ userId, previousId }: JsonObject, users: ReadonlySet<string>): boolean {
  return users.has(userId as string) || users.has(previousId as string)
}
