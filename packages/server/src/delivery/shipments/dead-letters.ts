// Builds dead letters: the messages of a destination whose deliveries failed or expired, as its dead-letter destination gets them. They are
// recorded by the settlement that ends the deliveries. Pure. The dead letters of users who were deleted meanwhile are left out when it is
// written: see without-deleted.ts.
// The context and integrations of a batch are stored once for all letters of its messages, and merged when a letter is sent
// (outbound-message.ts). If each letter contained them, a small batch could take hundreds of megabytes.

import type { JsonObject } from '@switchyard/protocol'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import type { SegmentBody } from '../../store/port/stored-messages.ts'
import {
  type AttemptRecord,
  type DeadLetterNote,
  type DeadLetters,
  type Destination,
  type FinalState,
  type SegmentContent,
  SYSTEM_SOURCE,
} from '../../store/store.ts'

/** The most that the letters of one segment have, without what they share, like a request to the tracking API. */
const MAX_BYTES = 500 * 1024
const MAX_MESSAGES = 1_000
/** What an item has in addition to the message. */
const ENVELOPE_BYTES = 300

type LetterItem = DeadLetters['items'][number]
type Collecting = DeadLetters & { items: LetterItem[] }

export type DeadLetterSettings = Pick<Destination, 'id' | 'name' | 'deadLetter'>

export class DeadLetterBuilder {
  readonly #from: { id: string; name: string }
  readonly #to: string
  readonly #full: DeadLetters[] = []
  /** By source and trace, which all messages of a segment share, and by the segment if they share a context or integrations. */
  readonly #open = new Map<string, Collecting>()

  private constructor({ id, name }: DeadLetterSettings, to: string) {
    this.#from = { id, name }
    this.#to = to
  }

  /** Returns null if the destination has no dead-letter destination. */
  static of(destination: DeadLetterSettings): DeadLetterBuilder | null {
    return destination.deadLetter === null ? null : new DeadLetterBuilder(destination, destination.deadLetter)
  }

  get letters(): DeadLetters[] {
    return [...this.#full, ...this.#open.values()]
  }

  /** Returns the record with a note of the messages that became dead letters. */
  add(record: AttemptRecord, body: SegmentBody | undefined): AttemptRecord {
    const ended = record.finals.filter(({ state }) => state === 'failed' || state === 'expired')
    if (ended.length === 0 || body === undefined) return record
    const prefix = `dead-letter-${String(record.origin)}-`
    const content = body.contentOf(new Set(ended.flatMap(({ indexes }) => indexes)))
    const shared = sharedOf(content)
    const own = shared === null ? content : { ...content, context: ipKeys(content.context), integrations: null }
    const added: number[] = []
    const withheld: number[] = []
    for (const { reason, indexes } of ended) {
      for (const index of indexes) {
        const item = content.items[index] ?? null
        // Purged.
        if (!content.isUnreadable && item === null) continue
        if (content.sourceId === SYSTEM_SOURCE && isAlertAbout(this.#to, item)) {
          withheld.push(index)
          continue
        }
        const message = item === null ? null : outboundOrNull(own, index)
        this.#push(record, body, shared, {
          ...ownerOf(item),
          ...this.#letter(record, reason, index),
          messageId: `${prefix}${index}`,
          message,
        })
        added.push(index)
      }
    }
    if (added.length + withheld.length === 0) return record
    const deadLetter: DeadLetterNote = { destinationId: this.#to, prefix, indexes: added }
    if (withheld.length > 0) deadLetter.withheld = withheld
    return { ...record, deadLetter }
  }

  #letter({ attempt, requests }: AttemptRecord, reason: FinalState['reason'], index: number): JsonObject {
    let lastStatus: number | null = null
    for (const { indexes, status } of requests) if (indexes.includes(index)) lastStatus = status
    return { type: 'dead_letter', reason, destination: this.#from, attempts: attempt, lastStatus }
  }

  #push({ atMs, segment }: AttemptRecord, { about: { sourceId, trace } }: SegmentBody, shared: Shared | null, item: LetterItem): void {
    const key = `${sourceId} ${trace?.traceparent} ${trace?.tracestate} ${shared === null ? '' : String(segment)}`
    const bytes = Buffer.byteLength(JSON.stringify(item['message'])) + ENVELOPE_BYTES
    let some = this.#open.get(key)
    if (some !== undefined && (some.items.length === MAX_MESSAGES || some.bytes + bytes > MAX_BYTES)) {
      this.#full.push(some)
      some = undefined
    }
    if (some === undefined) {
      some = { destinationId: this.#to, sourceId, atMs, trace, bytes: 0, ...shared, items: [] }
      this.#open.set(key, some)
    }
    some.items.push(item)
    some.bytes += bytes
  }
}

/** An alert about a destination is not sent to it, and neither is a dead letter of the alert, however many destinations it has passed. */
function isAlertAbout(destinationId: string, item: JsonObject | null): boolean {
  let message = item as { message?: typeof item; properties?: { subject?: { kind?: unknown; id?: unknown } } } | null
  while (message?.message != null) message = message.message
  const subject = message?.properties?.subject
  return subject?.kind === 'destination' && subject.id === destinationId
}

type Shared = Pick<SegmentContent, 'context' | 'integrations'>

/** What the messages of a batch share; null if that is nothing. */
function sharedOf({ context, integrations }: SegmentContent): Shared | null {
  const hasKeys = [context, integrations].some((shared) => shared !== null && Object.keys(shared).length > 0)
  return hasKeys ? { context, integrations } : null
}

/** The part of the context that decides whether a message gets the address of its sender. */
function ipKeys(context: JsonObject | null): JsonObject | null {
  if (context === null) return null
  return Object.fromEntries(['ip', 'direct'].flatMap((key) => (Object.hasOwn(context, key) ? [[key, context[key]]] : [])))
}

/** The message as it would have been sent, in a batch without what it shares; null if it cannot be built, which would be a bug. */
function outboundOrNull(...message: Parameters<typeof outboundMessage>): JsonObject | null {
  try {
    return outboundMessage(...message)
  } catch {
    return null
  }
}

/** The fields by which messages of a user are found. The message that announces a deletion is not a message of the user. */
function ownerOf(item: JsonObject | null): JsonObject {
  if (item === null || item['type'] === 'delete') return {}
  const { userId, anonymousId, previousId } = item
  return {
    ...(typeof userId === 'string' && { userId }),
    ...(typeof anonymousId === 'string' && { anonymousId }),
    ...(typeof previousId === 'string' && { previousId }),
  }
}
