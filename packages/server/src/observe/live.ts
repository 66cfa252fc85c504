// The live feed: streams accepted messages, rejected messages and attempts to listeners. It must never slow down ingest and delivery:
// without a listener it does nothing, and for each listener the number of events per second and the size of the buffer are limited.
// Events that do not fit are counted and reported as `dropped`. Nothing is stored. The relay (live-relay.ts) gets the same events
// for listeners on other nodes.

import { createHash } from 'node:crypto'
import { isoTime, type JsonObject } from '@switchyard/protocol'
import type { AttemptEvent } from '../delivery/events/events.ts'
import type { AcceptedEvent, RejectedEvent } from '../ingest/events.ts'
import { outboundMessage } from '../outbound/outbound-message.ts'
import type { SegmentContent } from '../store/store.ts'
import type { Watcher } from './events/events.ts'
import { redactUrl } from './redact-url.ts'

export interface LiveFilter {
  sourceId?: string | undefined
  /** The sources that the listener is limited to, in addition to the other conditions. Undefined: all. */
  sourceIds?: readonly string[] | undefined
  destinationId?: string | undefined
  type?: string | undefined
  messageId?: string | undefined
  event?: string | undefined
  /** Matches the userId or the anonymousId. */
  userId?: string | undefined
  /** `failure` means rejected messages and failed attempts. */
  what?: 'accepted' | 'rejected' | 'attempt' | 'failure' | undefined
}

/** The key of a filter is made of them, in this order. */
export const FILTER_FIELDS = ['sourceId', 'destinationId', 'type', 'messageId', 'event', 'userId', 'what'] as const

export interface LiveEvent {
  event: 'accepted' | 'rejected' | 'attempt' | 'dropped'
  /** The data, as JSON. */
  json: string
}

type Wants = (filter: LiveFilter) => boolean

/** The kinds by which dropped events are counted. */
type Kind = 'accepted' | 'rejected' | 'attempt' | 'failed attempt'

/** Forwards events to listeners on other nodes. */
export interface Relay {
  /** `json` serialises the event. It is only called if a listener wants the event. */
  offer(event: LiveEvent['event'], wants: Wants, json: () => string): void
}

export interface LiveOptions {
  wallMs: () => number
  maxListeners?: number
  /** The maximum for one token, so that nobody can use all of them. */
  maxPerToken?: number
  eventsPerSecond?: number
  bufferEvents?: number
}

const MAX_LISTENERS = 20
const MAX_PER_TOKEN = 8
const EVENTS_PER_SECOND = 500
const BUFFER_EVENTS = 1_000
const BUFFER_CHARACTERS = 1024 * 1024
const REPORT_DROPPED_EVERY_MS = 1_000
/** A larger message is sent without its content. */
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

  /** The filters of the listeners on this node, by a key that is the same on every node. */
  get wanted(): Map<string, LiveFilter> {
    return new Map([...this.#listeners].map(({ key, filter }) => [key, filter]))
  }

  /** Null if there are no listeners on other nodes. */
  useRelay(relay: Relay | null): void {
    this.#relay = relay
  }

  /** Delivers an event of another node to the listeners whose filters have these keys. */
  receive(keys: readonly string[], event: LiveEvent): void {
    const nowMs = performance.now()
    const kind = kindOf(event)
    for (const listener of this.#listeners) {
      if (!keys.includes(listener.key) || !isFor(listener.filter, event)) continue
      if (listener.hasRoom(nowMs, kind)) listener.push(event)
    }
  }

  /** Counts events that another node dropped because they did not fit into its messages. */
  missed(key: string, count: number): void {
    for (const listener of this.#listeners) if (listener.key === key) listener.drop(count, null)
  }

  /** Returns null if the limit of listeners is reached, in total or for this token. The stream lasts until the iteration is left or the feed is closed. */
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
    if (this.#hasNoListeners) return
    const { sourceId, items } = content
    for (let index = 0; index < items.length; index++) {
      const item = items[index] as JsonObject
      const wants: Wants = (filter) =>
        filter.destinationId === undefined &&
        (filter.what === undefined || filter.what === 'accepted') &&
        matches(filter.sourceId, sourceId) &&
        isInScope(filter, sourceId) &&
        matches(filter.type, item['type']) &&
        matches(filter.messageId, item['messageId']) &&
        matchesContent(filter, item)
      this.#emit('accepted', wants, () => acceptedJson(content, index, item, repeated.includes(index)))
    }
  }

  rejected({ sourceId, code, messages, sample }: RejectedEvent): void {
    if (this.#hasNoListeners) return
    // A rejected message has no destination, and its other fields may be invalid.
    const wants: Wants = ({ destinationId, type, messageId, event, userId, what, ...filter }) =>
      [destinationId, type, messageId, event, userId].every((each) => each === undefined) &&
      (what === undefined || what === 'rejected' || what === 'failure') &&
      matches(filter.sourceId, sourceId) &&
      isInScope(filter, sourceId)
    this.#emit('rejected', wants, () =>
      JSON.stringify({ at: isoTime(this.#options.wallMs()), sourceId, code, messages, sample: redactWriteKeys(sample) }),
    )
  }

  attempted(attempt: AttemptEvent): void {
    if (this.#hasNoListeners) return
    const isFailed = attempt.outcome.verdict !== 'success'
    const wants: Wants = (filter) =>
      matches(filter.destinationId, attempt.destination.id) &&
      (filter.what === undefined || filter.what === 'attempt' || (filter.what === 'failure' && isFailed)) &&
      // A request that also contained messages of other sources is not shown: the event describes its first message, and counts all.
      (filter.sourceIds === undefined || attempt.messages.every((message) => isInScope(filter, message.sourceId))) &&
      attempt.messages.some(
        (message) =>
          matches(filter.sourceId, message.sourceId) &&
          matches(filter.type, message.type) &&
          matches(filter.messageId, message.messageId) &&
          matchesSent(filter, message.json),
      )
    this.#emit('attempt', wants, () => attemptJson(attempt), isFailed)
  }

  get #hasNoListeners(): boolean {
    return this.#listeners.size === 0 && this.#relay === null
  }

  /** Serialises the event at most once, and only if a listener wants it and has room for it. */
  #emit(event: 'accepted' | 'rejected' | 'attempt', wants: Wants, write: () => string, isFailed = false): void {
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

/** Equal filters have the same key on every node. */
function keyOf(filter: LiveFilter): string {
  const fields = FILTER_FIELDS.map((field) => filter[field] ?? null)
  const text = JSON.stringify(filter.sourceIds === undefined ? fields : [...fields, [...filter.sourceIds].sort()])
  return createHash('sha256').update(text).digest('base64url').slice(0, 8)
}

class Listener implements AsyncIterable<LiveEvent>, AsyncIterator<LiveEvent> {
  readonly filter: LiveFilter
  readonly tokenId: string
  readonly key: string
  readonly #limits: { eventsPerSecond: number; bufferEvents: number }
  readonly #onEnd: () => void
  #events: LiveEvent[] = []
  #characters = 0
  #secondMs = 0
  #inSecond = 0
  #dropped = 0
  readonly #droppedKinds = { accepted: 0, rejected: 0, attempts: 0, failures: 0 }
  #reportedMs = Number.NEGATIVE_INFINITY
  #reportTimer: NodeJS.Timeout | undefined
  #ended = false
  #waiting: ((result: IteratorResult<LiveEvent>) => void) | null = null

  constructor(filter: LiveFilter, tokenId: string, limits: { eventsPerSecond: number; bufferEvents: number }, onEnd: () => void) {
    this.filter = filter
    this.tokenId = tokenId
    this.key = keyOf(filter)
    this.#limits = limits
    this.#onEnd = onEnd
  }

  /** Called before an event is serialised, so that a dropped event costs no more than counting it. */
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
    this.#resolveNext()
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#reportTimer)
    this.#events = []
    this.#onEnd()
    this.#resolveNext()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<LiveEvent>> {
    const waiting = new Promise<IteratorResult<LiveEvent>>((resolve) => {
      this.#waiting = resolve
    })
    this.#resolveNext()
    return waiting
  }

  async return(): Promise<IteratorResult<LiveEvent>> {
    this.end()
    return { done: true, value: undefined }
  }

  /** `kind` is null if it is not known. */
  drop(count: number, kind: Kind | null): void {
    this.#dropped += count
    const kinds = this.#droppedKinds
    if (kind === 'accepted' || kind === 'rejected') kinds[kind] += count
    else if (kind !== null) kinds.attempts += count
    if (kind === 'failed attempt') kinds.failures += count
    // Reports the dropped events even if no other event follows.
    this.#reportTimer ??= setTimeout(() => {
      this.#reportTimer = undefined
      this.#resolveNext()
    }, REPORT_DROPPED_EVERY_MS).unref()
  }

  #resolveNext(): void {
    const waiting = this.#waiting
    if (waiting === null) return
    const result = this.#nextResult()
    if (result === null) return
    this.#waiting = null
    waiting(result)
  }

  #nextResult(): IteratorResult<LiveEvent> | null {
    if (this.#ended) return { done: true, value: undefined }
    const nowMs = performance.now()
    if (this.#dropped > 0 && nowMs - this.#reportedMs >= REPORT_DROPPED_EVERY_MS) {
      const kinds = Object.entries(this.#droppedKinds).filter(([, count]) => count > 0)
      const json = JSON.stringify({ count: this.#dropped, ...Object.fromEntries(kinds) })
      this.#dropped = 0
      Object.assign(this.#droppedKinds, { accepted: 0, rejected: 0, attempts: 0, failures: 0 })
      this.#reportedMs = nowMs
      return { done: false, value: { event: 'dropped', json } }
    }
    const event = this.#events.shift()
    if (event === undefined) return null
    this.#characters -= event.json.length
    return { done: false, value: event }
  }
}

function isInScope({ sourceIds }: Pick<LiveFilter, 'sourceIds'>, sourceId: string | null): boolean {
  return sourceIds === undefined || (sourceId !== null && sourceIds.includes(sourceId))
}

/** A node of an earlier version does not know that a filter is limited to sources, and sends events of all. */
function isFor(filter: LiveFilter, { json }: LiveEvent): boolean {
  return filter.sourceIds === undefined || isInScope(filter, (JSON.parse(json) as { sourceId?: string | null }).sourceId ?? null)
}

function matches(wanted: string | undefined, value: unknown): boolean {
  return wanted === undefined || wanted === value
}

function matchesContent(
  { event, userId }: LiveFilter,
  { event: itsEvent, userId: itsUser, anonymousId }: Readonly<Record<string, unknown>>,
): boolean {
  return matches(event, itsEvent) && (userId === undefined || userId === itsUser || userId === anonymousId)
}

/** Matches a message as it is sent. Searching the text first excludes most messages and is cheaper than parsing them. */
function matchesSent(filter: LiveFilter, json: string | null): boolean {
  const { event, userId } = filter
  if (event === undefined && userId === undefined) return true
  if (json === null || [event, userId].some((each) => each !== undefined && !json.includes(JSON.stringify(each)))) return false
  return matchesContent(filter, contentOf(json))
}

function contentOf(json: string | null | undefined): Readonly<Record<string, unknown>> {
  return json == null ? {} : (JSON.parse(json) as Record<string, unknown>)
}

/** Unescaped quotes cannot occur within a JSON string, and an attempt contains no nested objects, so searching the text is safe. */
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

/** Returns the message as it is sent to webhooks, or null if it cannot be serialised. Delivery reports that error. */
function messageJson(content: SegmentContent, index: number): string | null {
  try {
    return JSON.stringify(outboundMessage(content, index))
  } catch {
    return null
  }
}

function attemptJson({ destination, startedAtMs, outcome, messages, ...about }: AttemptEvent): string {
  // Parsed from the JSON that was sent, so that nothing extra is kept in memory for possible listeners.
  const content = contentOf(messages[0]?.json)
  const { deliveryId, sourceId, count, attempt, replay, traceId, url } = about
  return JSON.stringify({
    at: isoTime(startedAtMs),
    destinationId: destination.id,
    deliveryId,
    messageId: messages[0]?.messageId ?? null,
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
    // A temporary failure is retried within the retry window.
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

/** Removes write keys: a request with an unknown write key may contain a valid key of another source, or one with a typo. */
function redactWriteKeys(sample: string): string {
  return sample.replaceAll(/("writeKey"\s*:\s*")(?:[^"\\]|\\.)*("?)/gi, '$1…$2')
}
