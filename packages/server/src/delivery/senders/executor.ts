// The work of a sender: keeps the messages that it was given as the JSON texts that are sent, builds, signs and sends requests, and
// reports the outcome of each. It runs in a sender thread or in the main thread.

import { kindOf } from '../../destinations/kinds.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import { sharedTrace } from '../../outbound/trace-context.ts'
import { readStoredBody } from '../../store/port/stored-messages.ts'
import type { Destination, RowId, SegmentContent, TraceContext } from '../../store/store.ts'
import type { HttpClient } from '../sending/attempt.ts'
import { type Outcome, REASONS } from '../sending/outcome.ts'
import type { Load, SenderLink, SenderReports, Start, Unsendable } from './protocol.ts'

/** The outcome of a request that could not be created, which is a bug. It is retried like a failure: the message is not lost, and there is no loop. */
export const UNWRITABLE = failure('internal_error')
const ABORTED = failure('aborted')

interface Loaded {
  origin: RowId
  trace: TraceContext | null
  /** By index. The error if the message cannot be serialized; missing if it was deleted. */
  texts: Map<number, string | Error>
  isUnreadable: boolean
  /** The number of messages that were neither started nor dropped. */
  left: number
}

interface Taken {
  texts: string[]
  /** The delivery id of the first message. */
  id: string
  trace: TraceContext | null
}

/** A destination and its units. */
interface Target {
  destination: Destination
  /** The number of units in flight. */
  inFlight: number
  limit: number
  /** Units that wait, in order. */
  waiting: { start: Start; sinceMs: number }[]
  /** Set by a temporary failure. The lane decides whether what waits is still to be sent. */
  isStopped: boolean
}

export class Executor implements SenderLink {
  readonly #http: HttpClient
  readonly #reports: SenderReports
  readonly #targets = new Map<number, Target>()
  readonly #loads = new Map<number, Loaded>()

  constructor(http: HttpClient, reports: SenderReports) {
    this.#http = http
    this.#reports = reports
  }

  define(number: number, destination: Destination): void {
    this.#targets.set(number, { destination, inFlight: 0, limit: 1, waiting: [], isStopped: false })
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

  load({ key, origin, about, body, isText, parsed, absent, indexes }: Load): void {
    const texts = new Map<number, string | Error>()
    const loaded: Loaded = { origin, trace: about.trace, texts, isUnreadable: false, left: indexes.length }
    this.#loads.set(key, loaded)
    if (isText) {
      texts.set(indexes[0] as number, Buffer.from(body.buffer, body.byteOffset, body.length).toString())
      return
    }
    const content = parsed ?? readStoredBody(body, about, absent)
    loaded.isUnreadable = content.isUnreadable === true
    for (const index of indexes) if (content.items[index] != null) texts.set(index, jsonOf(content, index))
  }

  drop(key: number, indexes: readonly number[] | null): void {
    const loaded = this.#loads.get(key)
    if (loaded === undefined) return
    if (indexes === null) this.#loads.delete(key)
    else for (const index of indexes) this.#forget(key, loaded, index)
  }

  start(start: Start): void {
    const target = this.#targets.get(start.destination)
    if (target === undefined) return this.#fail(start, new Error('the sender does not know the destination'))
    // A test request goes out beside the others.
    if (start.limit === Number.POSITIVE_INFINITY) return this.#begin(target, start, 0)
    target.limit = start.limit
    target.waiting.push({ start, sinceMs: performance.now() })
    this.#startWaiting(target)
  }

  #startWaiting(target: Target): void {
    while (target.inFlight < target.limit && !target.isStopped) {
      const next = target.waiting.shift()
      if (next === undefined) return
      this.#begin(target, next.start, performance.now() - next.sinceMs)
    }
  }

  #begin(target: Target, start: Start, waitedMs: number): void {
    const taken = this.#take(start.messages)
    const isUnsendable = taken === 'deleted' || taken === 'unreadable'
    if (isUnsendable && start.messages.length === 2) return this.#reports.unsendable(start.unit, taken)
    try {
      // The main thread has already left such messages out of a batch, so this is a bug. Reporting the batch as unsendable would lose its other messages.
      if (isUnsendable) throw new Error(`a message of a batch is ${taken}`)
      if (taken instanceof Error) throw taken
      this.#send(target, start, taken, waitedMs)
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
    { texts, id, trace }: Taken,
    waitedMs: number,
  ): void {
    const { destination } = target
    const kind = kindOf(destination)
    const about = { id, attempt, replay, atMs: atMs + waitedMs, trace }
    const { headers, body } = kind.request(destination, texts, isBatch, about)
    const { timeoutMs } = destination
    const targets = kind.targets(destination)
    const verdictOf = kind.verdicts(destination)
    let left = urls.length
    let hasSucceeded = false
    let hasFailed = false
    target.inFlight++
    for (const at of urls) {
      const url = targets[at] as string
      this.#http.send({ url, headers, body, timeoutMs, verdictOf, keepAnswer }, (outcome) => {
        this.#reports.outcome(unit, at, outcome, waitedMs)
        left--
        // A unit that one URL has accepted is delivered: nothing waits for its other URLs.
        if (hasSucceeded) return
        hasSucceeded = outcome.verdict === 'success'
        hasFailed ||= outcome.verdict === 'temporary'
        if (!hasSucceeded && left > 0) return
        target.inFlight--
        if (!hasSucceeded && hasFailed) target.isStopped = target.waiting.length > 0
        this.#startWaiting(target)
      })
    }
  }

  drain(): Promise<void> {
    for (const number of this.#targets.keys()) this.recall(number)
    return this.#http.close()
  }

  #forget(key: number, loaded: Loaded, index: number): void {
    loaded.texts.delete(index)
    loaded.left--
    if (loaded.left === 0) this.#loads.delete(key)
  }

  /** Takes the texts of a unit; returns an error if one of them cannot be sent because of a bug. */
  #take(messages: readonly number[]): Taken | Unsendable | Error {
    const texts: string[] = []
    const traces: (TraceContext | null)[] = []
    let id = ''
    for (let at = 0; at < messages.length; at += 2) {
      const key = messages[at] as number
      const index = messages[at + 1] as number
      const loaded = this.#loads.get(key)
      if (loaded === undefined) return new Error('the sender does not have the message')
      const text = loaded.texts.get(index)
      this.#forget(key, loaded, index)
      if (loaded.isUnreadable) return 'unreadable'
      if (text === undefined) return 'deleted'
      if (typeof text !== 'string') return text
      texts.push(text)
      traces.push(loaded.trace)
      if (at === 0) id = `${String(loaded.origin)}-${index}`
    }
    return { texts, id, trace: traces.length === 1 ? (traces[0] as TraceContext | null) : sharedTrace(traces) }
  }
}

/** An outcome that the service itself caused, before or instead of an answer. */
export function failure(reason: 'internal_error' | 'aborted' | 'sender_lost'): Outcome {
  return {
    verdict: REASONS[reason][0],
    status: null,
    reason,
    error: REASONS[reason][1],
    address: null,
    timings: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
    retryAfterMs: null,
    responseStart: null,
  }
}

function jsonOf(content: SegmentContent, index: number): string | Error {
  try {
    return JSON.stringify(outboundMessage(content, index))
  } catch (error) {
    return error as Error
  }
}
