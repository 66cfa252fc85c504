// The live feed: what is accepted, refused and attempted, told to those who listen while they listen. It must never slow
// what it watches: without a listener nothing is done at all, and for a listener at most so many events a second are written
// out, into a buffer of bounded size. What does not fit is counted and told as `dropped`. Nothing is kept for later. Those who
// listen at other nodes are a relay's, which is offered the same events: see live-relay.ts.

import { createHash } from 'node:crypto'
import { isoTime, type JsonObject } from '@switchyard/protocol'
import type { AttemptEvent } from '../delivery/events.ts'
import type { AcceptedEvent, RejectedEvent } from '../ingest/events.ts'
import { outboundMessage } from '../outbound/outbound-message.ts'
import type { SegmentContent } from '../store/store.ts'
import type { Watcher } from './events.ts'
import { redactUrl } from './redact-url.ts'

export interface LiveFilter {
  sourceId?: string | undefined
  destinationId?: string | undefined
  type?: string | undefined
  messageId?: string | undefined
  event?: string | undefined
  /** Or the anonymousId. */
  userId?: string | undefined
  /** `failure`: what was rejected, and attempts that failed. */
  what?: 'accepted' | 'rejected' | 'attempt' | 'failure' | undefined
}

export interface LiveEvent {
  event: 'accepted' | 'rejected' | 'attempt' | 'dropped'
  /** The data, as JSON. */
  json: string
}

type Wants = (filter: LiveFilter) => boolean

/** What of an event is counted when it is dropped. */
type Kind = 'accepted' | 'rejected' | 'attempt' | 'failed attempt'

/** Takes events to where else they are listened to. */
export interface Relay {
  /** `json` writes the event out, and is asked for only if somebody wants it. */
  offer(event: LiveEvent['event'], wants: Wants, json: () => string): void
}

export interface LiveOptions {
  wallMs: () => number
  maxListeners?: number
  /** For one token, so that nobody can use up all of them. */
  maxPerToken?: number
  eventsPerSecond?: number
  bufferEvents?: number
}

const MAX_LISTENERS = 20
const MAX_PER_TOKEN = 8
const EVENTS_PER_SECOND = 500
const BUFFER_EVENTS = 1_000
const BUFFER_CHARACTERS = 1024 * 1024
const TELL_DROPPED_EVERY_MS = 1_000
/** A larger message is told without its content. */
const MESSAGE_CHARACTERS = 8 * 1024
const FIELD_CHARACTERS = 200

export class LiveFeed implements Watcher {
  readonly #options: LiveOptions
  readonly #listeners = new Set<Listener>()
  #relay: Relay | null = null
  #closed = false

  constructor(options: LiveOptions) {
    this.#options = options
  }

  get listeners(): number {
    return this.#listeners.size
  }

  /** What is listened for here, each by a name that is the same on every node. */
  get wanted(): Map<string, LiveFilter> {
    return new Map([...this.#listeners].map(({ key, filter }) => [key, filter]))
  }

  /** Null: nobody listens elsewhere. */
  useRelay(relay: Relay | null): void {
    this.#relay = relay
  }

  /** What happened at another node, for those whose filters are named. */
  hear(keys: readonly string[], event: LiveEvent): void {
    const nowMs = performance.now()
    const kind = kindOf(event)
    for (const listener of this.#listeners) if (keys.includes(listener.key) && listener.hasRoom(nowMs, kind)) listener.push(event)
  }

  /** Events of another node that did not fit on their way here. */
  missed(key: string, count: number): void {
    for (const listener of this.#listeners) if (listener.key === key) listener.drop(count, null)
  }

  /** Null if the limit of listeners is reached, in all or for this token. Until the iteration is left, or the feed is closed. */
  listen(filter: LiveFilter, tokenId: string): AsyncIterable<LiveEvent> | null {
    const { maxListeners = MAX_LISTENERS, maxPerToken = MAX_PER_TOKEN } = this.#options
    const { eventsPerSecond = EVENTS_PER_SECOND, bufferEvents = BUFFER_EVENTS } = this.#options
    const own = [...this.#listeners].filter((listener) => listener.tokenId === tokenId)
    if (this.#listeners.size >= maxListeners || own.length >= maxPerToken) return null
    const listener = new Listener(filter, tokenId, { eventsPerSecond, bufferEvents }, () => this.#listeners.delete(listener))
    this.#listeners.add(listener)
    if (this.#closed) listener.end()
    return listener
  }

  /** Ends every stream at once. */
  close(): void {
    this.#closed = true
    for (const listener of this.#listeners) listener.end()
  }

  accepted({ content, repeated }: AcceptedEvent): void {
    if (this.#isUnheard) return
    const { sourceId, items } = content
    for (let index = 0; index < items.length; index++) {
      const item = items[index] as JsonObject
      const wants: Wants = (filter) =>
        filter.destinationId === undefined &&
        (filter.what === undefined || filter.what === 'accepted') &&
        fits(filter.sourceId, sourceId) &&
        fits(filter.type, item['type']) &&
        fits(filter.messageId, item['messageId']) &&
        fitsContent(filter, item)
      this.#tell('accepted', wants, () => acceptedJson(content, index, item, repeated.includes(index)))
    }
  }

  rejected({ sourceId, code, messages, sample }: RejectedEvent): void {
    if (this.#isUnheard) return
    // What was refused has no destination, and its other fields may be what is wrong with it.
    const wants: Wants = ({ destinationId, type, messageId, event, userId, what, ...filter }) =>
      [destinationId, type, messageId, event, userId].every((each) => each === undefined) &&
      (what === undefined || what === 'rejected' || what === 'failure') &&
      fits(filter.sourceId, sourceId)
    this.#tell('rejected', wants, () =>
      JSON.stringify({ at: isoTime(this.#options.wallMs()), sourceId, code, messages, sample: withoutKeys(sample) }),
    )
  }

  attempted(attempt: AttemptEvent): void {
    if (this.#isUnheard) return
    const isFailed = attempt.outcome.verdict !== 'success'
    const wants: Wants = (filter) =>
      fits(filter.destinationId, attempt.destination.id) &&
      (filter.what === undefined || filter.what === 'attempt' || (filter.what === 'failure' && isFailed)) &&
      attempt.messages.some(
        (message) =>
          fits(filter.sourceId, message.sourceId) &&
          fits(filter.type, message.type) &&
          fits(filter.messageId, message.messageId) &&
          fitsSent(filter, message.json),
      )
    this.#tell('attempt', wants, () => attemptJson(attempt), isFailed)
  }

  get #isUnheard(): boolean {
    return this.#listeners.size === 0 && this.#relay === null
  }

  /** Written out once, and only if somebody has room for it. */
  #tell(event: 'accepted' | 'rejected' | 'attempt', wants: Wants, write: () => string, isFailed = false): void {
    const nowMs = performance.now()
    const kind = isFailed ? 'failed attempt' : event
    let json: string | undefined
    const written = (): string => (json ??= write())
    for (const listener of this.#listeners) {
      if (wants(listener.filter) && listener.hasRoom(nowMs, kind)) listener.push({ event, json: written() })
    }
    this.#relay?.offer(event, wants, written)
  }
}

/** The same for equal filters on every node. */
function keyOf({ sourceId, destinationId, type, messageId, event, userId, what }: LiveFilter): string {
  const text = JSON.stringify([sourceId, destinationId, type, messageId, event, userId, what].map((each) => each ?? null))
  return createHash('sha256').update(text).digest('base64url').slice(0, 8)
}

class Listener implements AsyncIterable<LiveEvent>, AsyncIterator<LiveEvent> {
  readonly filter: LiveFilter
  readonly tokenId: string
  readonly key: string
  readonly #limits: { eventsPerSecond: number; bufferEvents: number }
  readonly #left: () => void
  #events: LiveEvent[] = []
  #characters = 0
  #secondMs = 0
  #inSecond = 0
  #dropped = 0
  readonly #droppedKinds = { accepted: 0, rejected: 0, attempts: 0, failures: 0 }
  #toldMs = Number.NEGATIVE_INFINITY
  #telling: NodeJS.Timeout | undefined
  #ended = false
  #waiting: ((result: IteratorResult<LiveEvent>) => void) | null = null

  constructor(filter: LiveFilter, tokenId: string, limits: { eventsPerSecond: number; bufferEvents: number }, left: () => void) {
    this.filter = filter
    this.tokenId = tokenId
    this.key = keyOf(filter)
    this.#limits = limits
    this.#left = left
  }

  /** Asked before an event is written out: what would be dropped costs nothing more than being counted. */
  hasRoom(nowMs: number, kind: Kind | null): boolean {
    if (nowMs - this.#secondMs >= 1_000) {
      this.#secondMs = nowMs
      this.#inSecond = 0
    }
    if (this.#inSecond++ < this.#limits.eventsPerSecond) return true
    this.drop(1, kind)
    return false
  }

  push(event: LiveEvent): void {
    this.#events.push(event)
    this.#characters += event.json.length
    let surplus = 0
    while (
      this.#events.length - surplus > this.#limits.bufferEvents ||
      (this.#characters > BUFFER_CHARACTERS && surplus < this.#events.length)
    ) {
      this.#characters -= (this.#events[surplus++] as LiveEvent).json.length
    }
    for (const dropped of this.#events.splice(0, surplus)) this.drop(1, kindOf(dropped))
    this.#hand()
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#telling)
    this.#events = []
    this.#left()
    this.#hand()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<LiveEvent>> {
    const waiting = new Promise<IteratorResult<LiveEvent>>((resolve) => {
      this.#waiting = resolve
    })
    this.#hand()
    return waiting
  }

  async return(): Promise<IteratorResult<LiveEvent>> {
    this.end()
    return { done: true, value: undefined }
  }

  /** Null: of which kind they were is not known. */
  drop(count: number, kind: Kind | null): void {
    this.#dropped += count
    const kinds = this.#droppedKinds
    if (kind === 'accepted' || kind === 'rejected') kinds[kind] += count
    else if (kind !== null) kinds.attempts += count
    if (kind === 'failed attempt') kinds.failures += count
    // Should nothing more come, it is still told.
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined
      this.#hand()
    }, TELL_DROPPED_EVERY_MS).unref()
  }

  #hand(): void {
    const waiting = this.#waiting
    if (waiting === null) return
    const result = this.#take()
    if (result === null) return
    this.#waiting = null
    waiting(result)
  }

  #take(): IteratorResult<LiveEvent> | null {
    if (this.#ended) return { done: true, value: undefined }
    const nowMs = performance.now()
    if (this.#dropped > 0 && nowMs - this.#toldMs >= TELL_DROPPED_EVERY_MS) {
      const kinds = Object.entries(this.#droppedKinds).filter(([, count]) => count > 0)
      const json = JSON.stringify({ count: this.#dropped, ...Object.fromEntries(kinds) })
      this.#dropped = 0
      Object.assign(this.#droppedKinds, { accepted: 0, rejected: 0, attempts: 0, failures: 0 })
      this.#toldMs = nowMs
      return { done: false, value: { event: 'dropped', json } }
    }
    const event = this.#events.shift()
    if (event === undefined) return null
    this.#characters -= event.json.length
    return { done: false, value: event }
  }
}

function fits(wanted: string | undefined, value: unknown): boolean {
  return wanted === undefined || wanted === value
}

function fitsContent(
  { event, userId }: LiveFilter,
  { event: itsEvent, userId: itsUser, anonymousId }: Readonly<Record<string, unknown>>,
): boolean {
  return fits(event, itsEvent) && (userId === undefined || userId === itsUser || userId === anonymousId)
}

/** Of a message as it is sent. Most that do not fit are told by a look at the text, which costs less than taking it apart. */
function fitsSent(filter: LiveFilter, json: string | null): boolean {
  const { event, userId } = filter
  if (event === undefined && userId === undefined) return true
  if (json === null || [event, userId].some((each) => each !== undefined && !json.includes(JSON.stringify(each)))) return false
  return fitsContent(filter, contentOf(json))
}

function contentOf(json: string | null | undefined): Readonly<Record<string, unknown>> {
  return json == null ? {} : (JSON.parse(json) as Record<string, unknown>)
}

/** The quotes are not to be found within a string, and an attempt has no objects in it. */
function kindOf({ event, json }: LiveEvent): Kind | null {
  if (event === 'dropped') return null
  return event === 'attempt' && json.includes('"success":false') ? 'failed attempt' : event
}

function acceptedJson(content: SegmentContent, index: number, item: JsonObject, duplicate: boolean): string {
  const message = messageJson(content, index)
  const summary = JSON.stringify({
    at: isoTime(content.receivedAtMs),
    sourceId: content.sourceId,
    messageId: text(item['messageId']),
    type: text(item['type']),
    event: text(item['event']),
    userId: text(item['userId']),
    anonymousId: text(item['anonymousId']),
    duplicate,
    bytes: message === null ? null : Buffer.byteLength(message),
  })
  return `${summary.slice(0, -1)},"message":${message === null || message.length > MESSAGE_CHARACTERS ? 'null' : message}}`
}

/** As it goes to webhooks. Null for one that cannot be written, which is delivery's to complain about. */
function messageJson(content: SegmentContent, index: number): string | null {
  try {
    return JSON.stringify(outboundMessage(content, index))
  } catch {
    return null
  }
}

function attemptJson({ destination, startedAtMs, outcome, messages, ...about }: AttemptEvent): string {
  // Read from what was sent: nothing of it is kept for the case that somebody listens.
  const content = contentOf(messages[0]?.json)
  const { deliveryId, messageId, sourceId, count, attempt, replay, traceId, url } = about
  return JSON.stringify({
    at: isoTime(startedAtMs),
    destinationId: destination.id,
    deliveryId,
    messageId,
    sourceId,
    type: messages[0]?.type ?? null,
    event: text(content['event']),
    userId: text(content['userId']),
    anonymousId: text(content['anonymousId']),
    messages: count,
    attempt,
    replay,
    url: redactUrl(url),
    success: outcome.verdict === 'success',
    // A temporary failure is tried again, within the window.
    verdict: outcome.verdict,
    status: outcome.status,
    reason: outcome.reason,
    error: outcome.error,
    totalMs: Math.round(outcome.timings.totalMs * 100) / 100,
    traceId,
  })
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value.slice(0, FIELD_CHARACTERS) : null
}

/** A call whose write key is not known may hold the right key of another source, or one with a letter missing. */
function withoutKeys(sample: string): string {
  return sample.replaceAll(/("writeKey"\s*:\s*")(?:[^"\\]|\\.)*("?)/gi, '$1…$2')
}
