// The work of a sender: prepares the messages that it was given (transformation, shaping), builds, signs and sends requests, and reports the
// outcome of each. It runs in a sender thread or in the main thread.

import type { JsonObject } from '@switchyard/protocol'
import type { Prepared } from '../../destinations/kind.ts'
import { kindOf } from '../../destinations/kinds.ts'
import { outboundMessage, withViolations } from '../../outbound/outbound-message.ts'
import { segmentEvent } from '../../outbound/segment-event.ts'
import { sharedTrace } from '../../outbound/trace-context.ts'
import { readStoredBody } from '../../store/port/stored-messages.ts'
import type { Destination, RowId, SegmentContent, TraceContext } from '../../store/store.ts'
import { type RequestSender, senderFor } from '../authorizing/authorized-client.ts'
import type { IntegrationRuns, RunMessage } from '../running/integration-runs.ts'
import type { HttpClient } from '../sending/attempt.ts'
import { failure } from '../sending/outcome.ts'
import { type Item, isRejected, prepareEvent, prepareMessage, transformMessages } from '../transforming/prepare-messages.ts'
import { MAX_RESULT_BYTES, type Transformer } from '../transforming/transformer.ts'
import type { Load, SenderLink, SenderReports, Start, Unsent } from './protocol.ts'

/** The outcome of a request that could not be created, which is a bug. It is retried like a failure: the message is not lost, and there is no loop. */
export const UNWRITABLE = failure('internal_error')
const ABORTED = failure('aborted')
/** Code can turn a short message into a long one. While a destination holds this much, no more of its messages are transformed ahead. */
const MAX_HELD_BYTES = 64 * 1024 * 1024

interface Loaded {
  origin: RowId
  trace: TraceContext | null
  /** By index; missing if the message was deleted. */
  items: Map<number, Item>
  isUnreadable: boolean
  /** Called when the messages were transformed; null if they are prepared. */
  whenPrepared: (() => void)[] | null
  /** Ends the transformation of messages that are no longer needed. */
  cancel: (() => void) | null
  /** Its part of the `heldBytes` of this target; null without a transformation. */
  target: Target | null
  heldBytes: number
  /** The number of messages that were neither started nor dropped. */
  left: number
}

interface Taken {
  prepared: (string | Prepared)[]
  unsent: Unsent[]
  /** The delivery id of the first message that is sent. */
  id: string
  trace: TraceContext | null
}

/** A destination and its units. */
interface Target {
  destination: Destination
  /** The HTTP client, with the authentication of the destination if it has any. */
  http: RequestSender
  /** The number of units in flight. */
  inFlight: number
  limit: number
  /** Units that wait, in order. */
  waiting: { start: Start; sinceMs: number }[]
  /** Loads that are not transformed yet, in order, each with a function that begins it. */
  untransformed: Map<Loaded, () => void>
  /** The size of transformed messages, also of those in flight, and the most that those being transformed can have. */
  heldBytes: number
  /** Set by a temporary failure. The lane decides whether what waits is still to be sent. */
  isStopped: boolean
}

export class Executor implements SenderLink {
  readonly #http: HttpClient
  readonly #transformer: Transformer
  readonly #runs: IntegrationRuns | null
  readonly #reports: SenderReports
  readonly #targets = new Map<number, Target>()
  readonly #loads = new Map<number, Loaded>()

  /** `runs` is null in a sender that gets no integrations. */
  constructor(http: HttpClient, transformer: Transformer, reports: SenderReports, runs: IntegrationRuns | null = null) {
    this.#http = http
    this.#transformer = transformer
    this.#runs = runs
    this.#reports = reports
  }

  define(number: number, destination: Destination): void {
    this.#targets.set(number, {
      destination,
      http: senderFor(destination, this.#http),
      inFlight: 0,
      limit: 1,
      waiting: [],
      untransformed: new Map(),
      heldBytes: 0,
      isStopped: false,
    })
  }

  forget(number: number): void {
    this.recall(number)
    this.#targets.delete(number)
  }

  recall(number: number): void {
    const target = this.#targets.get(number)
    if (target === undefined) return
    target.isStopped = false
    for (const { start } of target.waiting.splice(0)) {
      for (let at = 0; at < start.messages.length; at += 2) this.drop(start.messages[at] as number, [start.messages[at + 1] as number])
      for (const url of start.urls) this.#reports.outcome(start.unit, url, ABORTED, 0)
    }
  }

  resume(number: number): void {
    const target = this.#targets.get(number)
    if (target === undefined) return
    target.isStopped = false
    this.#startWaiting(target)
  }

  load({ key, destination: number, origin, about, body, isText, parsed, absent, indexes }: Load): void {
    const items = new Map<number, Item>()
    const loaded: Loaded = {
      origin,
      trace: about.trace,
      items,
      isUnreadable: false,
      whenPrepared: null,
      cancel: null,
      target: null,
      heldBytes: 0,
      left: indexes.length,
    }
    this.#loads.set(key, loaded)
    const target = this.#targets.get(number)
    if (target === undefined) return
    const { destination } = target
    // Only a transformation needs the messages together.
    const together = destination.transformation === null ? null : new Map<number, JsonObject>()
    const content = isText ? null : (parsed ?? readStoredBody(body, about, absent))
    loaded.isUnreadable = content?.isUnreadable === true
    const hasSteps = destination.integration !== null
    const build = hasSteps ? segmentEvent : outboundMessage
    for (const index of indexes) {
      if (content !== null && content.items[index] == null) continue
      const message = content === null ? (JSON.parse(textOf(body)) as JsonObject) : messageOrError(build, content, index, destination)
      if (message instanceof Error) items.set(index, message)
      else if (hasSteps) items.set(index, prepareEvent(destination, message))
      else if (together === null) items.set(index, prepareMessage(destination, message))
      else together.set(index, message)
    }
    if (together !== null) this.#transform(number, target, loaded, together, about.receivedAtMs)
  }

  /** Transforms all messages of a load in one call, when it is its turn. */
  #transform(number: number, target: Target, loaded: Loaded, messages: ReadonlyMap<number, JsonObject>, receivedAtMs: number): void {
    const { destination, untransformed } = target
    const indexes = [...messages.keys()]
    const mostBytes = indexes.length * MAX_RESULT_BYTES
    loaded.target = target
    loaded.whenPrepared = []
    loaded.cancel = () => untransformed.delete(loaded)
    const done = (items: readonly Item[]): void => {
      for (const [at, index] of indexes.entries()) loaded.items.set(index, items[at] as Item)
      hold(loaded, items.reduce((sum, item) => sum + bytesOf(item), 0) - mostBytes)
      const waiting = loaded.whenPrepared ?? []
      loaded.whenPrepared = null
      for (const resume of waiting) resume()
      const current = this.#targets.get(number)
      if (current !== undefined) this.#startWaiting(current)
      beginNext(target)
    }
    untransformed.set(loaded, () => {
      untransformed.delete(loaded)
      hold(loaded, mostBytes)
      loaded.cancel = transformMessages(destination, [...messages.values()], receivedAtMs, this.#transformer, done)
    })
    beginNext(target)
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
    target.waiting.push({ start, sinceMs: performance.now() })
    this.#startWaiting(target)
  }

  #startWaiting(target: Target): void {
    while (target.inFlight < target.limit && !target.isStopped) {
      const next = target.waiting[0]
      if (next === undefined || (target.destination.transformation !== null && !this.#isPrepared(target, next.start))) return
      target.waiting.shift()
      this.#begin(target, next.start, performance.now() - next.sinceMs)
    }
  }

  #beginTest(target: Target, start: Start): void {
    const loaded = this.#loads.get(start.messages[0] as number)
    if (loaded?.whenPrepared == null) this.#begin(target, start, 0)
    else {
      loaded.whenPrepared.push(() => this.#begin(target, start, 0))
      target.untransformed.get(loaded)?.()
    }
  }

  /** If nothing is in flight, what the next unit needs is transformed, however much is held: otherwise it would wait for ever. */
  #isPrepared({ untransformed, inFlight }: Target, { messages }: Start): boolean {
    let isPrepared = true
    for (let at = 0; at < messages.length; at += 2) {
      const loaded = this.#loads.get(messages[at] as number)
      if (loaded?.whenPrepared == null) continue
      if (inFlight === 0) untransformed.get(loaded)?.()
      isPrepared = false
    }
    return isPrepared
  }

  #begin(target: Target, start: Start, waitedMs: number): void {
    try {
      const taken = this.#take(start.messages)
      if (taken instanceof Error) throw taken
      const { prepared, unsent } = taken
      if (unsent.length > 0) this.#reports.unsent(start.unit, unsent, prepared.length === 0)
      if (prepared.length > 0) {
        if (target.destination.integration === null) this.#send(target, start, taken, waitedMs)
        else this.#run(target, start, prepared as Prepared[], waitedMs)
      }
    } catch (error) {
      this.#fail(start, error as Error)
    }
  }

  #fail({ unit, urls }: Start, error: Error): void {
    this.#reports.bug(unit, error.message)
    for (const at of urls) this.#reports.outcome(unit, at, UNWRITABLE, 0)
  }

  #send(
    target: Target,
    { unit, attempt, replay, atMs, isBatch, keepAnswer, urls }: Start,
    { prepared, id, trace }: Taken,
    waitedMs: number,
  ): void {
    const { destination } = target
    const kind = kindOf(destination)
    const about = { id, attempt, replay, atMs: atMs + waitedMs, trace }
    const { method, path, headers, body } = kind.request(destination, prepared, isBatch, about)
    const { timeoutMs } = destination
    const targets = kind.targets(destination)
    const verdictOf = kind.verdicts(destination)
    const logs = logsOf(prepared)
    let left = urls.length
    let hasSucceeded = false
    let hasFailed = false
    const heldBytes = destination.transformation === null ? 0 : body.length
    target.heldBytes += heldBytes
    target.inFlight++
    for (const at of urls) {
      const url = targets[at] as string
      target.http.send({ method, url, path, headers, body, timeoutMs, verdictOf, keepAnswer }, (outcome) => {
        this.#reports.outcome(unit, at, logs === null ? outcome : { ...outcome, logs }, waitedMs)
        left--
        // A unit that one URL has accepted is delivered: nothing waits for its other URLs.
        if (hasSucceeded) return
        hasSucceeded = outcome.verdict === 'success'
        hasFailed ||= outcome.verdict === 'temporary'
        if (!hasSucceeded && left > 0) return
        target.inFlight--
        target.heldBytes -= heldBytes
        if (!hasSucceeded && hasFailed) target.isStopped = target.waiting.length > 0
        this.#startWaiting(target)
        beginNext(target)
      })
    }
  }

  #run(target: Target, { unit, urls, steps, keepAnswer, isPreview, limit }: Start, prepared: readonly Prepared[], waitedMs: number): void {
    if (this.#runs === null) throw new Error('this sender runs no integrations')
    const messages = prepared.map(({ text, steps: matching = [] }): RunMessage => ({ text, steps: matching }))
    const isCounted = limit !== Number.POSITIVE_INFINITY
    if (isCounted) target.inFlight++
    this.#runs.run(target.destination, { messages, succeeded: steps, keepsRequests: keepAnswer, isPreview }, (outcome) => {
      this.#reports.outcome(unit, urls[0] as number, outcome, waitedMs)
      if (!isCounted) return
      target.inFlight--
      if (outcome.verdict === 'temporary') target.isStopped = target.waiting.length > 0
      this.#startWaiting(target)
    })
  }

  async drain(): Promise<void> {
    for (const number of this.#targets.keys()) this.recall(number)
    await Promise.all([this.#http.close(), this.#transformer.close(), this.#runs?.close()])
  }

  #forget(key: number, loaded: Loaded, index: number): void {
    if (loaded.target !== null) hold(loaded, -bytesOf(loaded.items.get(index)))
    loaded.items.delete(index)
    loaded.left--
    if (loaded.left === 0) this.#unload(key, loaded)
    else if (loaded.target !== null) beginNext(loaded.target)
  }

  #unload(key: number, loaded: Loaded): void {
    this.#loads.delete(key)
    loaded.cancel?.()
    const { target } = loaded
    if (target === null) return
    hold(loaded, -loaded.heldBytes)
    loaded.target = null
    beginNext(target)
  }

  /** Takes the messages of a unit; returns an error if one of them cannot be sent because of a bug. */
  #take(messages: readonly number[]): Taken | Error {
    const prepared: (string | Prepared)[] = []
    const unsent: Unsent[] = []
    const traces: (TraceContext | null)[] = []
    let failed: Error | null = null
    let id = ''
    for (let at = 0; at < messages.length; at += 2) {
      const key = messages[at] as number
      const index = messages[at + 1] as number
      const loaded = this.#loads.get(key)
      const item = loaded?.items.get(index)
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
}

function hold(loaded: Loaded, bytes: number): void {
  loaded.heldBytes += bytes
  if (loaded.target !== null) loaded.target.heldBytes += bytes
}

/** Begins transformations while there is room for their results. The last one may exceed the limit. */
function beginNext(target: Target): void {
  for (const begin of target.untransformed.values()) {
    if (target.heldBytes > MAX_HELD_BYTES) return
    begin()
  }
}

function bytesOf(item: Item | undefined): number {
  if (item === undefined || item instanceof Error) return 0
  if (typeof item === 'string') return item.length
  return ('text' in item ? item.text.length : 0) + (item.logs?.length ?? 0)
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

function messageOrError(
  build: typeof outboundMessage,
  content: SegmentContent,
  index: number,
  { includeViolations }: Destination,
): JsonObject | Error {
  try {
    const message = build(content, index)
    return includeViolations === true ? withViolations(message, content, index) : message
  } catch (error) {
    return error as Error
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
}
