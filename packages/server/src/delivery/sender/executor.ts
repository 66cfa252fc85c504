// The work of a sender: prepares the messages that it was given (transformation, shaping), builds, signs and sends requests, and reports the
// outcome of each. It runs in a sender thread or in the main thread. Its memory is limited (sender-memory.ts): messages are built ahead only while
// there is room, and otherwise when their request is started.

import { kindOf } from '../../destinations/kinds.ts'
import type { Carrier, Prepared, RequestBuilder } from '../../destinations/port/kind.ts'
import { sharedTrace } from '../../outbound/trace-context.ts'
import type { Destination, StateEntry, TraceContext } from '../../store/store.ts'
import { monotonicMs } from '../../timing/monotonic.ts'
import { failure, type Outcome, UNWRITABLE, withoutAnswer } from '../link/outcome.ts'
import type { CommandTarget, Load, SenderReports, Start, Unsent } from '../link/protocol.ts'
import { senderFor } from './authorizing/authorized-client.ts'
import type { HttpClient } from './http/attempt.ts'
import type { HostedDestination, IntegrationRuns, RunMessage } from './integration-runs.ts'
import { LoadedMessages } from './loaded-messages.ts'
import { SenderMemory } from './sender-memory.ts'
import { addWaiting, bytesOf, hold, type Loaded, type Target } from './target.ts'
import { type Item, isRejected, prepareMessage } from './transforming/prepare-messages.ts'
import type { Transformer } from './transforming/transformer.ts'
import { Transforms } from './transforms.ts'

const ABORTED = failure('aborted')
/** The memory that the objects of an event take while an integration runs, compared with its text. */
const EVENT_FACTOR = 4
/** What a request takes in addition to its body. */
const REQUEST_BYTES = 1_024

interface Taken {
  prepared: (string | Prepared)[]
  unsent: Unsent[]
  /** The delivery id of the first message that is sent. */
  id: string
  trace: TraceContext | null
}

export class Executor implements CommandTarget {
  readonly #http: HttpClient
  readonly #transformer: Transformer
  readonly #runs: IntegrationRuns | null
  readonly #reports: SenderReports
  readonly #targets = new Map<number, Target>()
  readonly #loads = new Map<number, Loaded>()
  readonly #memory = new SenderMemory()
  readonly #transforms: Transforms

  /** `runs` is null in a sender that gets no integrations. */
  constructor(http: HttpClient, transformer: Transformer, reports: SenderReports, runs: IntegrationRuns | null = null) {
    this.#http = http
    this.#transformer = transformer
    this.#runs = runs
    this.#reports = reports
    this.#transforms = new Transforms(transformer, this.#memory, (target) => this.#startWaiting(target))
  }

  define(number: number, destination: Destination): void {
    const kind = kindOf(destination)
    this.#targets.set(number, {
      destination,
      http: kind.requests === null ? this.#http : senderFor(kind.requests.credentials(destination), this.#http),
      transforms: kind.transformation(destination) !== null,
      inFlight: 0,
      limit: 1,
      waiting: [],
      untransformed: new Map(),
      transforming: 0,
      heldBytes: 0,
      sentBytes: 0,
      isStopped: false,
    })
  }

  forget(number: number): void {
    this.recall(number)
    this.#targets.delete(number)
  }

  state(destinationId: string, entries: readonly StateEntry[] | null): void {
    this.#runs?.state?.(destinationId, entries)
  }

  answer(question: number, value: unknown, error: string | null): void {
    this.#runs?.answer?.(question, value, error)
  }

  recall(number: number): void {
    const target = this.#targets.get(number)
    if (target === undefined) return
    target.isStopped = false
    for (const { start } of target.waiting.splice(0)) this.#abort(start)
  }

  #abort({ unit, messages, urls }: Start): void {
    for (let at = 0; at < messages.length; at += 2) this.drop(messages[at] as number, [messages[at + 1] as number])
    for (const url of urls) this.#reports.outcome(unit, url, ABORTED, 0)
  }

  resume(number: number): void {
    const target = this.#targets.get(number)
    if (target === undefined) return
    target.isStopped = false
    this.#startWaiting(target)
  }

  limit(number: number, limit: number): void {
    const target = this.#targets.get(number)
    if (target === undefined) return
    target.limit = limit
    this.#startWaiting(target)
  }

  load(load: Load): void {
    const target = this.#targets.get(load.destination)
    // The destination was removed, so nothing is started for it.
    if (target === undefined) return
    const { about, indexes } = load
    const messages = new LoadedMessages(load, target.destination)
    const loaded: Loaded = {
      target,
      origin: load.origin,
      receivedAtMs: about.receivedAtMs,
      trace: about.trace,
      isUnreadable: messages.isUnreadable,
      messages,
      items: new Map(),
      transform: null,
      heldBytes: 0,
      left: indexes.length,
    }
    this.#loads.set(load.key, loaded)
    if (target.transforms) this.#transforms.add(loaded, indexes)
    else this.#prepareAhead(loaded, messages, indexes)
  }

  /** Prepares messages while they are parsed, as long as there is room. */
  #prepareAhead(loaded: Loaded, messages: LoadedMessages, indexes: readonly number[]): void {
    for (let at = 0; at < indexes.length; at++) {
      if (!this.#memory.mayPrepareAhead(loaded)) return messages.keepAsText(indexes.slice(at))
      const index = indexes[at] as number
      const item = prepare(loaded.target.destination, messages, index)
      if (item === undefined) continue
      loaded.items.set(index, item)
      hold(this.#memory, loaded, bytesOf(item))
    }
    loaded.messages = null
  }

  drop(key: number, indexes: readonly number[] | null): void {
    const loaded = this.#loads.get(key)
    if (loaded === undefined) return
    if (indexes === null) this.#unload(key, loaded)
    else for (const index of indexes) this.#forget(key, loaded, index)
  }

  start(start: Start): void {
    const target = this.#targets.get(start.destination)
    if (target === undefined) return this.#fail(start, new Error('the sender does not know the destination'))
    // A test request goes out beside the others.
    if (start.limit === Number.POSITIVE_INFINITY) return this.#beginTest(target, start)
    target.limit = start.limit
    addWaiting(target, start)
    this.#startWaiting(target)
  }

  #startWaiting(target: Target): void {
    while (target.inFlight < target.limit && !target.isStopped && this.#memory.maySend(target)) {
      const next = target.waiting[0]
      if (next === undefined || (target.transforms && !this.#isPrepared(target, next.start))) return
      target.waiting.shift()
      const { notAfterMs } = next.start
      // For example, because the process was frozen. Another node may send it now.
      if (notAfterMs !== null && monotonicMs() > notAfterMs) this.#abort(next.start)
      else this.#begin(target, next.start, performance.now() - next.sinceMs)
    }
  }

  #beginTest(target: Target, start: Start): void {
    const loaded = this.#loads.get(start.messages[0] as number)
    if (!loaded?.transform?.pending.size) this.#begin(target, start, 0)
    else {
      loaded.transform.whenPrepared.push(() => this.#begin(target, start, 0))
      this.#transforms.begin(loaded, loaded.transform)
    }
  }

  /**
   * Whether the messages of a unit are transformed, or as many of a batch as fit into a request. If nothing is in flight, what it needs is
   * transformed, however much is held: otherwise it would wait for ever.
   */
  #isPrepared(target: Target, { messages, isBatch }: Start): boolean {
    let room = isBatch ? target.destination.batch.bytes : Number.POSITIVE_INFINITY
    for (let at = 0; at < messages.length && room > 0; at += 2) {
      const loaded = this.#loads.get(messages[at] as number)
      const index = messages[at + 1] as number
      if (loaded?.transform?.pending.has(index)) {
        if (target.inFlight === 0 && target.transforming === 0) this.#transforms.begin(loaded, loaded.transform)
        return false
      }
      room -= bytesOf(loaded?.items.get(index))
    }
    return true
  }

  #begin(target: Target, start: Start, waitedMs: number): void {
    try {
      const taken = this.#take(target, start)
      if (taken instanceof Error) throw taken
      const { prepared, unsent } = taken
      if (unsent.length > 0) this.#reports.unsent(start.unit, unsent, prepared.length === 0)
      if (prepared.length > 0) this.#carryOut(target, start, taken, waitedMs)
    } catch (error) {
      this.#fail(start, error as Error)
    }
  }

  #fail({ unit, urls }: Start, error: Error): void {
    this.#reports.bug(unit, error.message)
    for (const at of urls) this.#reports.outcome(unit, at, UNWRITABLE, 0)
  }

  #carryOut(target: Target, start: Start, taken: Taken, waitedMs: number): void {
    const kind = kindOf(target.destination)
    if (kind.place !== 'thread') this.#run(target, start, taken.prepared, waitedMs)
    else if (kind.carrier === null) this.#send(kind.requests, target, start, taken, waitedMs)
    else this.#call(kind.carrier, target, start, taken, waitedMs)
  }

  /** Sends a request to each target. */
  #send(requests: RequestBuilder<Destination>, target: Target, start: Start, { prepared, id, trace }: Taken, waitedMs: number): void {
    const { destination } = target
    const { attempt, replay, atMs, isBatch, keepAnswer, urls } = start
    const kind = kindOf(destination)
    const about = { id, attempt, replay, atMs: atMs + waitedMs, trace }
    const { method, path, headers, body, sendingBytes = body.length } = requests.build(destination, prepared, isBatch, about)
    const { timeoutMs } = destination
    const targets = kind.targets(destination)
    const verdictOf = kind.verdicts(destination)
    const logs = logsOf(prepared)
    // The text, and for each URL its bytes, or more.
    const ended = this.#started(target, start, body.length + sendingBytes * urls.length, waitedMs)
    for (const at of urls) {
      const url = targets[at] as string
      target.http.send({ method, url, path, headers, body, timeoutMs, verdictOf, keepAnswer }, (outcome) => {
        ended(at, logs === null ? outcome : { ...outcome, logs })
      })
    }
  }

  /** Runs an integration, or loads the messages into a warehouse. */
  #run(target: Target, start: Start, prepared: readonly (string | Prepared)[], waitedMs: number): void {
    if (this.#runs === null) throw new Error('this sender runs no integrations')
    const { urls, steps, keepAnswer, isPreview } = start
    const messages = prepared.map((item): RunMessage => {
      return typeof item === 'string' ? { text: item, steps: [] } : { text: item.text, steps: item.steps ?? [] }
    })
    const bytes = EVENT_FACTOR * messages.reduce((sum, { text }) => sum + text.length, 0)
    const ended = this.#started(target, start, bytes, waitedMs)
    const work = { messages, succeeded: steps, keepsRequests: keepAnswer, isPreview }
    this.#runs.run(target.destination as HostedDestination, work, (outcome) => ended(urls[0] as number, outcome))
  }

  /** Calls the function of a kind that carries out its deliveries itself. */
  #call(carrier: Carrier<Destination>, target: Target, start: Start, { prepared, id, trace }: Taken, waitedMs: number): void {
    const { unit, attempt, replay, atMs, urls, isPreview } = start
    if (isPreview) throw new Error('a preview carries nothing out')
    const texts = prepared.map((item) => (typeof item === 'string' ? item : item.text))
    const bytes = texts.reduce((sum, { length }) => sum + length, 0)
    const ended = this.#started(target, start, bytes, waitedMs)
    const startedMs = performance.now()
    const at = urls[0] as number
    carrier.carryOut(target.destination, texts, { id, attempt, replay, atMs: atMs + waitedMs, trace }).then(
      (carriedOut) => ended(at, withoutAnswer(carriedOut, performance.now() - startedMs)),
      (error: unknown) => {
        this.#reports.bug(unit, (error as Error).message)
        ended(at, UNWRITABLE)
      },
    )
  }

  /** Counts a unit that is carried out. Returns the function that reports the outcome of one of its targets. */
  #started(target: Target, { unit, urls, limit }: Start, bytes: number, waitedMs: number): (at: number, outcome: Outcome) => void {
    const sentBytes = REQUEST_BYTES + bytes
    // A test goes out beside the others.
    const isCounted = limit !== Number.POSITIVE_INFINITY
    let left = urls.length
    let hasSucceeded = false
    let hasFailed = false
    this.#memory.sent(target, sentBytes)
    if (isCounted) target.inFlight++
    return (at, outcome) => {
      this.#reports.outcome(unit, at, outcome, waitedMs)
      left--
      if (left === 0) this.#memory.ended(target, sentBytes)
      // A unit that one target has accepted is delivered: nothing waits for its other targets.
      if (isCounted && !hasSucceeded) {
        hasSucceeded = outcome.verdict === 'success'
        hasFailed ||= outcome.verdict === 'temporary'
        if (!hasSucceeded && left > 0) return
        target.inFlight--
        if (!hasSucceeded && hasFailed) target.isStopped = target.waiting.length > 0
      }
      this.#startWaiting(target)
    }
  }

  async drain(): Promise<void> {
    for (const number of this.#targets.keys()) this.recall(number)
    await Promise.all([this.#http.close(), this.#transformer.close(), this.#runs?.close()])
  }

  #forget(key: number, loaded: Loaded, index: number): void {
    const bytes = bytesOf(loaded.items.get(index))
    loaded.items.delete(index)
    loaded.messages?.forget(index)
    loaded.transform?.pending.delete(index)
    loaded.left--
    if (loaded.left === 0) this.#unload(key, loaded)
    else if (bytes > 0) this.#release(loaded, bytes)
  }

  #unload(key: number, loaded: Loaded): void {
    this.#loads.delete(key)
    loaded.target.untransformed.delete(loaded)
    for (const cancel of loaded.transform?.cancels ?? []) cancel()
    this.#release(loaded, loaded.heldBytes)
  }

  #release(loaded: Loaded, bytes: number): void {
    hold(this.#memory, loaded, -bytes)
    if (loaded.target.untransformed.size > 0) this.#transforms.beginNext(loaded.target)
  }

  /**
   * Takes the messages of a unit, of a batch as many as fit into a request: the others stay loaded. Returns an error if one of them cannot be sent
   * because of a bug.
   */
  #take(target: Target, { messages, isBatch }: Start): Taken | Error {
    const prepared: (string | Prepared)[] = []
    const unsent: Unsent[] = []
    const traces: (TraceContext | null)[] = []
    let failed: Error | null = null
    let id = ''
    // A load stays complete: what belongs to it is stored.
    const isLimited = isBatch && kindOf(target.destination).place !== 'loader'
    let room = isLimited ? target.destination.batch.bytes : Number.POSITIVE_INFINITY
    for (let at = 0; at < messages.length; at += 2) {
      const key = messages[at] as number
      const index = messages[at + 1] as number
      const loaded = this.#loads.get(key)
      const item = loaded === undefined || room <= 0 ? undefined : this.#itemOf(loaded, index)
      if (isLimited && loaded !== undefined) {
        room -= loaded.transform?.pending.has(index) ? Number.POSITIVE_INFINITY : bodyBytes(item)
        if (room <= 0 && (prepared.length > 0 || item === undefined)) {
          unsent.push({ position: at / 2, why: 'left_out' })
          continue
        }
      }
      if (loaded !== undefined) this.#forget(key, loaded, index)
      if (loaded === undefined) failed ??= new Error('the sender does not have the message')
      else if (loaded.isUnreadable) unsent.push({ position: at / 2, why: 'unreadable' })
      else if (item === undefined) unsent.push({ position: at / 2, why: 'deleted' })
      else if (item instanceof Error) failed ??= item
      else if (typeof item !== 'string' && isRejected(item)) unsent.push({ position: at / 2, why: item })
      else {
        if (prepared.length === 0) id = `${String(loaded.origin)}-${index}`
        prepared.push(item)
        traces.push(loaded.trace)
      }
    }
    const trace = traces.length === 1 ? (traces[0] as TraceContext | null) : sharedTrace(traces)
    return failed ?? { prepared, unsent, id, trace }
  }

  /** The message, which is prepared now if that was not done ahead; undefined if it was deleted. */
  #itemOf(loaded: Loaded, index: number): Item | undefined {
    const { items, messages, transform, target } = loaded
    const known = items.get(index)
    return known !== undefined || messages === null || transform !== null ? known : prepare(target.destination, messages, index)
  }
}

/** Prepares a message for a destination without a transformation; undefined if it was deleted. */
function prepare(destination: Destination, messages: LoadedMessages, index: number): Item | undefined {
  const message = messages.build(index)
  if (message === undefined || message instanceof Error) return message
  return prepareMessage(destination, message)
}

/** What an item adds to the body of a batch. */
function bodyBytes(item: Item | undefined): number {
  if (typeof item === 'string') return Buffer.byteLength(item) + 1
  return item !== undefined && 'text' in item ? Buffer.byteLength(item.text) + 1 : 0
}

const MAX_LOG_LENGTH = 2_048

/** What the transformation printed for the messages of a request, shortened. */
function logsOf(prepared: readonly (string | Prepared)[]): string | null {
  let logs: string | null = null
  for (const each of prepared) {
    if (typeof each === 'string' || each.logs == null) continue
    logs = logs === null ? each.logs : `${logs}\n${each.logs}`
    if (logs.length >= MAX_LOG_LENGTH) return logs.slice(0, MAX_LOG_LENGTH)
  }
  return logs
}
