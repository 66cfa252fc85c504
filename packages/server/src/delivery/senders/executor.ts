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

export class Executor implements SenderLink {
  readonly #http: HttpClient
  readonly #reports: SenderReports
  readonly #destinations = new Map<number, Destination>()
  readonly #loads = new Map<number, Loaded>()

  constructor(http: HttpClient, reports: SenderReports) {
    this.#http = http
    this.#reports = reports
  }

  define(number: number, destination: Destination): void {
    this.#destinations.set(number, destination)
  }

  forget(number: number): void {
    this.#destinations.delete(number)
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
    const { unit, urls } = start
    const destination = this.#destinations.get(start.destination)
    const taken = this.#take(start.messages)
    const isUnsendable = taken === 'deleted' || taken === 'unreadable'
    if (isUnsendable && start.messages.length === 2) return this.#reports.unsendable(unit, taken)
    try {
      // The messages of a batch were read before. To end it as unsendable would lose the others.
      if (isUnsendable) throw new Error(`a message of a batch is ${taken}`)
      if (taken instanceof Error) throw taken
      if (destination === undefined) throw new Error('the sender does not know the destination')
      this.#send(start, destination, taken)
    } catch (error) {
      this.#reports.bug(unit, (error as Error).message)
      for (const at of urls) this.#reports.outcome(unit, at, UNWRITABLE)
    }
  }

  #send({ unit, attempt, replay, atMs, isBatch, keepAnswer, urls }: Start, destination: Destination, { texts, id, trace }: Taken): void {
    const kind = kindOf(destination)
    const { headers, body } = kind.request(destination, texts, isBatch, { id, attempt, replay, atMs, trace })
    const { timeoutMs } = destination
    const targets = kind.targets(destination)
    const verdictOf = kind.verdicts(destination)
    for (const at of urls) {
      const url = targets[at] as string
      this.#http.send({ url, headers, body, timeoutMs, verdictOf, keepAnswer }, (outcome) => this.#reports.outcome(unit, at, outcome))
    }
  }

  drain(): Promise<void> {
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
