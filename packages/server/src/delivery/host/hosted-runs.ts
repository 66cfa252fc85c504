// Runs the units of integration destinations, in a host process: the subscriptions that match each message, all at the same time, and one
// outcome for each message. Classifies what the code of an integration reports, by the same rules as the answers of webhooks.

import type {
  Integration,
  OpenOptions,
  RecordedRequest,
  RunOptions,
  RunResult,
  StepResult,
  Transaction,
} from '@switchyard/integrations/runner'
import type { JsonObject } from '@switchyard/protocol'
import { kindOf } from '../../destinations/kinds.ts'
import type { Verdict } from '../../destinations/port/kind.ts'
import type { IntegrationDestination, StateEntry, Subscription } from '../../store/store.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import { lookupIn } from '../link/field-lookup.ts'
import {
  describeStatus,
  type Outcome,
  parseRetryAfter,
  type RanMessage,
  type RanRequest,
  type RanState,
  REASONS,
  type ReasonCode,
  reasonOfError,
  withoutAnswer,
} from '../link/outcome.ts'
import type { RenewedTokens, SenderReports } from '../link/protocol.ts'
import type { IntegrationRuns, RunWork } from '../sender/integration-runs.ts'
import { HostedStates } from './hosted-state.ts'

type HostReports = Required<Pick<SenderReports, 'tokens' | 'stateWanted'>>

export type OpenIntegration = (slug: string, settings: JsonObject, options?: OpenOptions) => Promise<Integration>

/** The result of one subscription, for the messages at these positions. */
interface Step {
  subscription: Pick<Subscription, 'id' | 'name'>
  positions: readonly number[]
  startedAtMs: number
  totalMs: number
  result: RunResult
  isTransactional: boolean
}

type Judged = Pick<Outcome, 'verdict' | 'reason' | 'error' | 'status' | 'retryAfterMs'>

const SUCCESS: Judged = { verdict: 'success', reason: null, error: null, status: null, retryAfterMs: null }
/** Names the run of a deletion, which no subscription has. */
const DELETION = { id: 'delete', name: 'Delete user' }
/** How long close() waits for runs to end. They should end at once. */
const CLOSE_MS = 500
/** A person is waiting for the result. */
const LOOKUP_MS = 10_000

export class HostedRuns implements IntegrationRuns {
  readonly #open: OpenIntegration
  readonly #onTokens: (destinationId: string, renewed: RenewedTokens) => void
  /** By destination, as it was when it was opened. */
  readonly #opened = new WeakMap<IntegrationDestination, Promise<Integration>>()
  readonly #running = new Map<AbortController, Promise<void>>()
  readonly #states: HostedStates
  #isClosing = false

  constructor(open: OpenIntegration, { tokens = () => undefined, stateWanted = () => undefined }: Partial<HostReports> = {}) {
    this.#open = open
    this.#onTokens = tokens
    this.#states = new HostedStates(stateWanted)
  }

  get inFlight(): number {
    return this.#running.size
  }

  run(destination: IntegrationDestination, work: RunWork, done: (outcome: Outcome) => void): void {
    const abort = new AbortController()
    const { signal } = abort
    // A lookup is run where previews are, and nowhere else.
    const lookup = work.isPreview ? lookupIn(work.messages[0]?.text ?? '') : null
    const deadline = setTimeout(
      () => abort.abort(),
      Math.min(destination.timeoutMs, lookup === null ? Number.POSITIVE_INFINITY : LOOKUP_MS),
    )
    const end = async (): Promise<void> => {
      const ran = lookup === null ? this.#runAll(destination, work, signal) : this.#lookUp(destination, lookup, signal)
      const outcome = await ran.catch((error: unknown) => failedToOpen(destination, work, error))
      clearTimeout(deadline)
      this.#running.delete(abort)
      done(outcome)
    }
    this.#running.set(abort, end())
  }

  state(destinationId: string, entries: readonly StateEntry[] | null): void {
    this.#states.receive(destinationId, entries)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    for (const abort of this.#running.keys()) abort.abort()
    await withTimeout(CLOSE_MS, Promise.allSettled(this.#running.values()))
  }

  async #runAll(destination: IntegrationDestination, work: RunWork, signal: AbortSignal): Promise<Outcome> {
    const startedAtMs = performance.now()
    const integration = await this.#integration(destination)
    const messages = work.messages.map(({ text }) => JSON.parse(text) as JsonObject)
    const transactions = messages.map((): Transaction => new Map(valuesIn(work.succeeded)))
    const planned = stepsOf(destination, work, messages, integration)
    const options = { signal, isPreview: work.isPreview, isDetailed: work.keepsRequests, ownsMessages: planned.length === 1 }
    const stateOf = await this.#states.forRun(destination, work, integration, signal)
    const run = async ({ subscription, positions, run: start, isTransactional }: PlannedStep, isShared: boolean): Promise<Step> => {
      const [atMs, from] = [Date.now(), performance.now()]
      const some = positions.map((position) => messages[position] as JsonObject)
      const own = positions.map((position) => transactions[position] as Transaction)
      const state = stateOf(subscription.id)
      const result = await start(integration, some, {
        ...options,
        ...(isShared && { transactions: own }),
        ...(state !== null && { state }),
      })
      return { subscription, positions, startedAtMs: atMs, totalMs: performance.now() - from, result, isTransactional }
    }
    const shared = planned.filter(({ isTransactional }) => isTransactional)
    // They run one after the other. A value that one sets can be read by those after it, also in later attempts.
    const isShared = destination.subscriptions.filter(({ action }) => integration.transactional?.has(action)).length > 1
    const inOrder = async (): Promise<Step[]> => {
      const ran: Step[] = []
      for (const step of shared) ran.push(await run(step, isShared))
      return ran
    }
    const others = planned.filter(({ isTransactional }) => !isTransactional).map((step) => run(step, false))
    const steps = [...(await inOrder()), ...(await Promise.all(others))]
    return outcomeOf(destination, work, steps, transactions, performance.now() - startedAtMs, this.#isClosing)
  }

  /** Asks the tool for the values of a field. The answer is JSON, in the place of what a receiver answers. */
  async #lookUp(
    destination: IntegrationDestination,
    { isStored, ...lookup }: NonNullable<ReturnType<typeof lookupIn>>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const from = performance.now()
    const integration = await this.#integration(destination)
    const found = (await integration.choices?.(lookup, { signal, renewsTokens: isStored })) ?? null
    const verdictOf = kindOf(destination).verdicts(destination)
    const judged = judge(found?.result, verdictOf, Date.now(), this.#isClosing)
    const answer = found === null || judged.verdict !== 'success' ? null : { choices: found.choices, nextPage: found.nextPage }
    return { ...outcomeWith(judged, performance.now() - from), responseStart: answer && JSON.stringify(answer) }
  }

  #integration(destination: IntegrationDestination): Promise<Integration> {
    let opened = this.#opened.get(destination)
    if (opened === undefined) {
      opened = this.#open(destination.integration.slug, destination.settings, {
        onTokens: ({ accessToken, refreshToken = null, usedRefreshToken = null }) =>
          this.#onTokens(destination.id, { accessToken, refreshToken, usedRefreshToken }),
      })
      // A failure may be temporary, so the next run tries again.
      opened.catch(() => this.#opened.delete(destination))
      this.#opened.set(destination, opened)
    }
    return opened
  }
}

/**
 * A retry does not run again what succeeded, so the values that it left for other steps are kept with the ids of what succeeded, each as one entry.
 * An entry has to be short: see report-check.ts.
 */
const VALUE = 'value:'
const MAX_ENTRY_CHARS = 99
const MAX_VALUES = 20

function isValue(entry: string): boolean {
  return entry.startsWith(VALUE)
}

function valuesIn(entries: readonly string[] | null): [string, string][] {
  return (entries ?? []).filter(isValue).flatMap((entry) => {
    try {
      return [JSON.parse(entry.slice(VALUE.length)) as [string, string]]
    } catch {
      // One that cannot be read must not fail every attempt.
      return []
    }
  })
}

/** Null if they are too many or too long. */
function valuesOf(transaction: Transaction = new Map()): string[] | null {
  const entries = Array.from(transaction, (pair) => `${VALUE}${JSON.stringify(pair)}`)
  return entries.length > MAX_VALUES || entries.some((entry) => entry.length > MAX_ENTRY_CHARS) ? null : entries
}

type RunStep = (integration: Integration, messages: JsonObject[], options: RunOptions) => Promise<RunResult>

interface PlannedStep {
  subscription: Pick<Subscription, 'id' | 'name'>
  positions: number[]
  run: RunStep
  /** Whether it shares values with other steps of the same message. */
  isTransactional: boolean
}

/** What is to be run, in the order of the subscriptions. */
function stepsOf(
  { id: destination, subscriptions }: IntegrationDestination,
  { messages, succeeded }: RunWork,
  events: readonly JsonObject[],
  { erase, transactional }: Integration,
): PlannedStep[] {
  const planned: PlannedStep[] = []
  for (const subscription of subscriptions) {
    const { id, action, mapping, syncMode } = subscription
    const positions: number[] = []
    for (const [position, { steps }] of messages.entries()) {
      if (steps.includes(id) && !succeeded?.includes(id)) positions.push(position)
    }
    if (positions.length > 0) {
      const step = { action, mapping, syncMode: syncMode ?? undefined, ids: { subscription: id, destination } }
      const isTransactional = transactional?.has(action) === true
      planned.push({ subscription, positions, isTransactional, run: (integration, some, options) => integration.run(step, some, options) })
    }
  }
  if (erase === null || succeeded?.includes(DELETION.id)) return planned
  for (const [position, event] of events.entries()) {
    const run: RunStep = (_, __, options) => erase(event, options)
    if (event['type'] === 'delete') planned.push({ subscription: DELETION, positions: [position], run, isTransactional: false })
  }
  return planned
}

function outcomeOf(
  destination: IntegrationDestination,
  { messages, keepsRequests, isPreview, succeeded: before }: RunWork,
  steps: readonly Step[],
  transactions: readonly Transaction[],
  totalMs: number,
  isAborted: boolean,
): Outcome {
  const verdictOf = kindOf(destination).verdicts(destination)
  const nowMs = Date.now()
  const byMessage = messages.map((): Judged[] => [])
  const succeeded = messages.map((): string[] => (before ?? []).filter((id) => !isValue(id)))
  // If everything that still matches succeeded before, the others were removed in the meantime, and the message is delivered.
  const nothingToRun = before?.some((id) => !isValue(id)) ? SUCCESS : judgedOf('no_subscription')
  const requests: RanRequest[] = []
  for (const step of steps) {
    const { subscription, positions, result, isTransactional } = step
    const judged = positions.map((position, at): Judged => {
      const one = judge(result.results[at], verdictOf, nowMs, isAborted)
      byMessage[position]?.push(one)
      // One whose values cannot be kept for the next attempt is run again.
      const isKept = !isTransactional || valuesOf(transactions[position]) !== null
      if (one.verdict === 'success' && isKept) succeeded[position]?.push(subscription.id)
      return one
    })
    requests.push(...requestsOf(destination, step, judged, keepsRequests))
  }
  for (const [position, judged] of byMessage.entries()) {
    if (judged.length > 0) continue
    judged.push(nothingToRun)
    requests.push(withoutRequest(destination, [position], null, nowMs, 0, nothingToRun))
  }
  const results = byMessage.map((judged, position): RanMessage => {
    return messageOutcome(judged, [...(succeeded[position] ?? []), ...(valuesOf(transactions[position]) ?? [])])
  })
  const all = byMessage.flat()
  const worst = all.find(({ verdict }) => verdict === 'temporary') ?? all.find(({ verdict }) => verdict === 'permanent')
  const decisive = all.find(({ verdict }) => verdict === 'success') ?? worst ?? SUCCESS
  const retryAfterMs = worst === undefined ? null : worst.retryAfterMs
  const state = isPreview || keepsRequests ? [] : steps.flatMap(stateIn)
  return { ...outcomeWith(decisive, totalMs), retryAfterMs, ran: { messages: results, requests, ...(state.length > 0 && { state }) } }
}

function stateIn({ subscription, positions, result }: Step): RanState[] {
  return (result.state ?? []).map(({ position, key, value, setAtMs, expiresAtMs }) => {
    const about = position === null ? null : (positions[position] as number)
    return { subscriptionId: subscription.id, position: about, key, value, setAtMs, expiresAtMs }
  })
}

/** All subscriptions must succeed. If one failed temporarily, those that did not succeed are run again. */
function messageOutcome(judged: readonly Judged[], succeeded: readonly string[]): RanMessage {
  const temporary = judged.filter(({ verdict }) => verdict === 'temporary')
  const failed = temporary[0] ?? judged.find(({ verdict }) => verdict === 'permanent')
  if (failed === undefined) return { verdict: 'success', reason: null, retryAfterMs: null, succeeded }
  const waits = temporary.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  return { verdict: failed.verdict, reason: failed.reason, retryAfterMs: waits.length === 0 ? null : Math.max(...waits), succeeded }
}

function judge(result: StepResult | undefined, verdictOf: (status: number) => Verdict, nowMs: number, isAborted: boolean): Judged {
  if (result === undefined) return judgedOf('integration_failed')
  if (result.kind === 'success') return SUCCESS
  if (result.kind === 'status') {
    const { status, retryAfter, message } = result
    const verdict = verdictOf(status)
    // The integration says that it failed, so a status that is a success elsewhere is a permanent failure.
    return {
      verdict: verdict === 'success' ? 'permanent' : verdict,
      reason: `http_${status}`,
      error: message === '' ? describeStatus(status) : message,
      status,
      retryAfterMs: verdict === 'temporary' ? waitOf(retryAfter, nowMs) : null,
    }
  }
  // The service ended the run, and not the deadline.
  if (isAborted && result.kind === 'failed' && result.code === 'timeout') return judgedOf('aborted')
  if (result.kind === 'failed') return { ...judgedOf(result.code, result.message), retryAfterMs: waitOf(result.retryAfter ?? null, nowMs) }
  return judgedOf(reasonOfError({ code: result.code }), result.message)
}

/**
 * Many integrations turn the answer of the tool into an error of their own with another status, so a Retry-After counts whatever the status is.
 */
function waitOf(retryAfter: string | null, nowMs: number): number | null {
  return parseRetryAfter(429, retryAfter ?? undefined, nowMs)
}

function judgedOf(reason: ReasonCode, error: string = REASONS[reason][1]): Judged {
  return { verdict: REASONS[reason][0], reason, error, status: null, retryAfterMs: null }
}

function requestsOf(destination: IntegrationDestination, step: Step, judged: readonly Judged[], keepsRequests: boolean): RanRequest[] {
  const { subscription, positions, result, startedAtMs, totalMs } = step
  const made = result.requests.map((request): RanRequest => {
    const about = request.positions.map((at) => positions[at] as number)
    const decided = request.positions.map((at) => judged[at]).find((one) => one !== undefined && one.verdict !== 'success')
    const refused = refusedBy(request, result.requests, judged)
    return ranRequest(request, subscription.name, about, decided ?? SUCCESS, refused, keepsRequests)
  })
  // A failure that no request shows, and a success without one, is recorded too.
  const shown = new Set(made.flatMap((request) => request.positions))
  const rest = new Map<string, { positions: number[]; one: Judged }>()
  for (const [at, one] of judged.entries()) {
    const position = positions[at] as number
    const isShown =
      shown.has(position) && made.some((request) => request.positions.includes(position) && request.outcome.reason === one.reason)
    if (isShown) continue
    const key = `${one.reason ?? ''} ${one.error ?? ''}`
    const same = rest.get(key)
    if (same === undefined) rest.set(key, { positions: [position], one })
    else same.positions.push(position)
  }
  for (const { positions: about, one } of rest.values()) {
    made.push(withoutRequest(destination, about, subscription.name, startedAtMs, totalMs, one))
  }
  if (made[0] !== undefined && result.logs !== null) made[0].outcome.logs = result.logs
  return made
}

/**
 * The failure that an answer with a status of success contains; null if there is none. It is that of the last request for a message. In a batch, all its
 * messages must have failed in the same way: the others were delivered by the same request.
 */
function refusedBy(request: RecordedRequest, all: readonly RecordedRequest[], judged: readonly Judged[]): Judged | null {
  const [first, ...others] = request.positions.map((at) => {
    const isLast = all.slice(all.indexOf(request) + 1).every(({ positions }) => !positions.includes(at))
    const one = judged[at]
    return isLast && one !== undefined && REFUSAL.test(one.reason ?? '') ? one : null
  })
  const isSame = others.every((one) => one?.reason === first?.reason && one?.error === first?.error)
  return first !== undefined && isSame ? first : null
}

/** What an action can say about an answer. A timeout or a network error is not about it. */
const REFUSAL = /^(http_|integration_|invalid_)/

function ranRequest(
  request: RecordedRequest,
  subscription: string,
  positions: number[],
  decided: Judged,
  refused: Judged | null,
  keepsRequests: boolean,
): RanRequest {
  const { method, url, startedAtMs, totalMs, status, error, responseStart, headers, body } = request
  const isOk = status !== null && status < 400
  // Without an answer and an error, it was a preview or ended at the deadline: what decided the message says which.
  const judged: Judged = isOk
    ? (refused ?? SUCCESS)
    : status !== null
      ? { ...decided, verdict: 'temporary', reason: `http_${status}`, error: describeStatus(status) }
      : error === null
        ? decided
        : judgedOf(reasonOfError({ code: error }))
  const outcome: Outcome = { ...outcomeWith({ ...judged, status }, totalMs), responseStart }
  return {
    positions,
    subscription,
    method,
    url,
    startedAtMs,
    outcome,
    sent: keepsRequests && headers !== null ? { headers, body: body ?? '' } : null,
  }
}

/** `name` is that of the subscription. If none was run, the integration stands in its place. */
function withoutRequest(
  destination: IntegrationDestination,
  positions: number[],
  name: string | null,
  startedAtMs: number,
  totalMs: number,
  judged: Judged,
): RanRequest {
  const [url = ''] = kindOf(destination).targets(destination)
  const subscription = name ?? destination.integration.title ?? destination.integration.name
  return { positions, subscription, method: null, url, startedAtMs, outcome: outcomeWith(judged, totalMs), sent: null }
}

function outcomeWith({ status, retryAfterMs, ...judged }: Judged, totalMs: number): Outcome {
  return { ...withoutAnswer(judged, totalMs), status, retryAfterMs }
}

/** The integration cannot be loaded: perhaps its package is being installed, or it does not have it any more. */
function failedToOpen(destination: IntegrationDestination, { messages, succeeded }: RunWork, error: unknown): Outcome {
  const judged = judgedOf(
    'integration_retry',
    `The integration cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
  )
  const all = messages.map((_, position) => position)
  const results = messages.map((): RanMessage => {
    return { verdict: 'temporary', reason: judged.reason, retryAfterMs: null, succeeded: succeeded ?? [] }
  })
  const ran = { messages: results, requests: [withoutRequest(destination, all, null, Date.now(), 0, judged)] }
  return { ...outcomeWith(judged, 0), ran }
}
