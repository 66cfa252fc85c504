// Accepts the messages of a request whose sender is known: rate limit, parsing, privacy, tracking plan, routing, the store, and the response.
// Invariant: a request is acknowledged only after the store has committed.

import { randomUUID } from 'node:crypto'
import type { JsonObject, PlanVerdict } from '@switchyard/protocol'
import { errorBody } from '../errors.ts'
import type { Proxies } from '../http/proxies.ts'
import type { PlanJudges } from '../plans/plan-judges.ts'
import { writeStoredBody } from '../store/port/stored-messages.ts'
import {
  type AcceptBatch,
  type Configuration,
  type Nodes,
  type Routing,
  type SegmentContent,
  type Source,
  type Store,
  StoreUnavailable,
} from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import type { IngestPacing } from '../timing/ingest-pacing.ts'
import type { IngestEvents } from './events.ts'
import { type Exchange, requestProblem } from './exchange.ts'
import { Gathering, gatheredContent, isGatherable, type Single } from './gathering.ts'
import type { BacklogLimit } from './limits/backlog-limit.ts'
import { createRateLimit, createSharedRateLimit, type RateLimit } from './limits/rate-limit.ts'
import { type Body, type ParsedRequest, parseRequest } from './parsing/parse-request.ts'
import { type Privacy, protectAddress } from './privacy/privacy.ts'
import type { Refusals } from './refusals.ts'

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

const MAX_VIOLATIONS_PER_REQUEST = 2_000

export interface IngestDeps extends Partial<IngestEvents> {
  store: Pick<Store, 'ingest' | 'configuration' | 'nodes'>
  route: (configuration: Configuration, sourceId: string, content: SegmentContent) => Routing
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

/** A request whose messages can be stored. */
interface ReadRequest extends Single {
  exchange: Exchange
  body: Body
  parsed: ParsedRequest
  quarantined: AcceptBatch['quarantined']
  /** What was charged to the rate limit. */
  charged: number
  /** The configuration by which it was read. */
  configuration: Configuration
}

const BACKLOG_LIMIT = {
  message:
    'Too many deliveries to a destination of this source are pending, so no message was accepted. Wait for the number of seconds in the Retry-After header, then try again.',
  seconds: 5,
}

export class Accepting {
  readonly #deps: IngestDeps
  readonly #refusals: Refusals
  readonly #pacing: IngestPacing
  readonly #rateLimit: RateLimit | null

  readonly #receiveAgain: (exchange: Exchange, bytes: Buffer) => void
  readonly #gathering = new Gathering<ReadRequest>((requests) => this.#storeGathered(requests))

  constructor(deps: IngestDeps, refusals: Refusals, pacing: IngestPacing, receiveAgain: (exchange: Exchange, bytes: Buffer) => void) {
    this.#deps = deps
    this.#receiveAgain = receiveAgain
    this.#refusals = refusals
    this.#pacing = pacing
    this.#rateLimit = rateLimitOf(deps.settings.rateLimitPerSecond, deps.store.nodes, deps.clock)
  }

  accept(exchange: Exchange, source: Source, body: Body): void {
    const { store, clock, privacy, plans } = this.#deps
    const waitSeconds = exchange.isAdmitted ? 0 : (this.#rateLimit?.waitSeconds(source.id, clock.scheduleMs()) ?? 0)
    if (waitSeconds > 0)
      return this.#refusals.reject(exchange, requestProblem(exchange, 'rate_limited', body), ['Retry-After', String(waitSeconds)])
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
    this.#rateLimit?.charge(source.id, charged)
    if (!parsed.ok) return this.#refusals.reject(exchange, parsed)
    if (parsed.items.length === 0) return this.#conclude(exchange, source.id, parsed)
    const content = this.#contentOf(exchange, source, parsed, protection)
    const quarantined = quarantinedIn(parsed, trackingPlan?.planId)
    const request: ReadRequest = { exchange, body, bytes: body.bytes.length, parsed, content, quarantined, charged, configuration }
    // A protected message cannot be read again from the body, because the rules have replaced values in it.
    if (protection === null && isGatherable(request)) this.#gathering.add(request)
    else void this.#store([request])
  }

  #contentOf(exchange: Exchange, source: Source, parsed: ParsedRequest, protection: ReturnType<Privacy['of']>): SegmentContent {
    const { clock } = this.#deps
    const { items, sentAt, context, integrations, verdicts } = parsed
    const address = exchange.senderAddress()
    const content: SegmentContent = {
      sourceId: source.id,
      receivedAtMs: clock.wallMs(),
      // With a limit of its own: the messages may have used up theirs.
      ip: protection === null || address === null ? address : protectAddress(protection(), address),
      browser: exchange.isFromBrowser(),
      sentAt,
      context,
      integrations,
      trace: exchange.trace(),
      items,
    }
    if (verdicts !== null) content.violations = violationsIn(verdicts)
    return content
  }

  /** While the requests waited, the configuration may have changed: a source was disabled, a user suppressed. Such a request is received again. */
  async #storeGathered(requests: readonly ReadRequest[]): Promise<void> {
    const configuration = this.#deps.store.configuration()
    const current = requests.filter((request) => request.configuration === configuration)
    for (const request of requests) {
      if (request.configuration === configuration) continue
      this.#refund(request)
      request.exchange.isAdmitted = true
      this.#receiveAgain(request.exchange, request.body.bytes)
    }
    if (current.length > 0) await this.#store(current)
  }

  /** Stores the messages as one batch and answers the requests. Does not reject. */
  async #store(requests: readonly ReadRequest[]): Promise<void> {
    const { store, route, backlogLimit, onAccepted } = this.#deps
    const [first] = requests as [ReadRequest]
    const { configuration, quarantined } = first
    const isAlone = requests.length === 1
    try {
      const content = isAlone ? first.content : gatheredContent(requests)
      const { sourceId } = content
      const routing = route(configuration, sourceId, content)
      if (backlogLimit?.isReached(routing)) {
        if (!isAlone) return await this.#storeEach(requests)
        this.#refund(first)
        this.#pacing.countRefused()
        return this.#refusals.overloaded(first.exchange, BACKLOG_LIMIT)
      }
      const messageIds = isAlone ? first.parsed.messageIds : requests.map(({ parsed }) => parsed.messageIds[0] as string)
      const body = (isAlone ? first.parsed.bytes : null) ?? writeStoredBody({ ...content, batch: content.items })
      const { duplicates, keyless } = await store.ingest.accept({ content, body, messageIds, routing, quarantined })
      const counts = { messages: messageIds.length, duplicates: duplicates.length, bytes: body.length }
      onAccepted?.({ sourceId, ...counts, content, repeated: duplicates, routing, quarantined, keyless })
    } catch (error) {
      // A message that the store cannot take must not prevent the others from being stored. Those that were stored are duplicates then.
      if (!isAlone && !(error instanceof StoreUnavailable)) return await this.#storeEach(requests)
      for (const request of requests) {
        this.#refund(request)
        this.#refusals.fail(request.exchange, error)
      }
      return
    }
    for (const { exchange, content, parsed } of requests) this.#concludeSafely(exchange, content.sourceId, parsed)
  }

  /** One by one. The configuration may have changed since the batch was made. */
  async #storeEach(requests: readonly ReadRequest[]): Promise<void> {
    await Promise.all(requests.map((request) => this.#storeGathered([request])))
  }

  /** If nothing is stored, the client will retry the request, and it is charged then. */
  #refund({ content, charged }: ReadRequest): void {
    this.#rateLimit?.charge(content.sourceId, -charged)
  }

  /** A bug must neither leave this sender without a response nor those whose messages were stored with this one. */
  #concludeSafely(exchange: Exchange, sourceId: string, parsed: ParsedRequest): void {
    try {
      this.#conclude(exchange, sourceId, parsed)
    } catch (error) {
      this.#refusals.fail(exchange, error)
    }
  }

  /** Called when the valid messages are stored. Only now are the rejected ones counted: if the request failed, its retry would count them again. */
  #conclude(exchange: Exchange, sourceId: string, parsed: ParsedRequest): void {
    const { store, onSuppressed, onWarned } = this.#deps
    const { rejected, rejections, suppressed, warnings } = parsed
    if (suppressed > 0) {
      store.ingest.suppressed(sourceId, suppressed)
      onSuppressed?.({ sourceId, messages: suppressed })
    }
    if (warnings !== null) for (const [code, count] of warnings.counts) onWarned?.({ sourceId, code, messages: count })
    if (rejected.length > 0) for (const [code, { count, sample }] of rejections) this.#refusals.record(sourceId, code, count, sample)
    answer(exchange, parsed)
  }
}

function rateLimitOf(perSecond: number | null, nodes: Nodes | undefined, clock: Clock): RateLimit | null {
  if (perSecond === null) return null
  return nodes === undefined ? createRateLimit(perSecond) : createSharedRateLimit(perSecond, nodes, () => clock.scheduleMs())
}

function answer(exchange: Exchange, { items, rejected, suppressed, warnings }: ParsedRequest): void {
  if (exchange.pixel) return exchange.answerPixel()
  const [first] = rejected
  const warned = warnings === null ? {} : { warnings: warnings.list }
  if (first === undefined) return warnings === null ? exchange.answerSuccess() : exchange.answerJson(200, { success: true, ...warned })
  const accepted = items.length + suppressed
  if (accepted > 0) return exchange.answerJson(200, { success: true, accepted, rejected, ...warned })
  // No message was valid: respond with the error of the first. For a batch, also list the error of each.
  exchange.answerJson(400, exchange.route === 'batch' ? { ...errorBody(first), rejected } : errorBody(first))
}

/** A message can be much smaller than the list of what is wrong with it, so after many violations in a request, only the first of each message is kept. */
function violationsIn(verdicts: ReadonlyMap<number, PlanVerdict>): NonNullable<SegmentContent['violations']> {
  let kept = 0
  const bounded = ({ violations }: PlanVerdict): PlanVerdict['violations'] => {
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

/** An alias message also belongs to its previousId, as it does for a deletion request. */
function isOfUsers({ userId, previousId }: JsonObject, users: ReadonlySet<string>): boolean {
  return users.has(userId as string) || users.has(previousId as string)
}
