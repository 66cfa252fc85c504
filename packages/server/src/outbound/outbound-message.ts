// Builds the JSON that a webhook receives from a stored message, as docs/guide/quick-start-receiver.md documents it for receivers.
// Pure, and on the hot path of every attempt: there is one object literal per type, so that object shapes stay stable, with
// undefined for fields that the call did not have (JSON.stringify leaves them out). They repeat what they have in common: spreading it into
// each takes 0.3 µs more. Delivery does the signing, batching and sending.
//
// Only the fields named here are sent. Other top-level fields of a message are internal to the client and are dropped:
// `writeKey`, `_metadata`, `version`, `channel`, `projectId`, `options`, `traits` of a track, `properties` of an identify…

import type { JsonObject } from '@switchyard/protocol'
import type { SegmentContent } from '../model/messages.ts'
import { type MessageTimes, messageTimes, messageTimestampMs } from './outbound-message-times.ts'

/** Throws if there is no message at the index. A duplicate or a purged message leaves an empty index, which is never sent. */
export function outboundMessage(content: SegmentContent, index: number): JsonObject {
  const item = itemAt(content, index)
  const type: unknown = item['type']
  if (type === 'dead_letter') return deadLetter(content, item)
  const times = messageTimes(content, item)
  switch (type) {
    case 'track':
      return trackMessage(content, item, times)
    case 'identify':
      return identifyMessage(content, item, times)
    case 'page':
    case 'screen':
      return viewMessage(content, item, times)
    case 'group':
      return groupMessage(content, item, times)
    case 'alias':
      return aliasMessage(content, item, times)
    case 'delete':
      return { type, userId: item['userId'], timestamp: times.timestamp }
    default:
      throw new Error(`A stored message has the type ${JSON.stringify(type)}, which ingest does not accept.`)
  }
}

function trackMessage(content: SegmentContent, item: JsonObject, times: MessageTimes): JsonObject {
  return {
    version: 1,
    type: item['type'],
    userId: item['userId'] ?? undefined,
    anonymousId: item['anonymousId'] ?? undefined,
    event: item['event'],
    properties: item['properties'] ?? {},
    context: outboundContext(content, item),
    integrations: merged(content.integrations, item['integrations']),
    messageId: item['messageId'] ?? undefined,
    timestamp: times.timestamp,
    originalTimestamp: times.originalTimestamp,
    sentAt: times.sentAt,
    receivedAt: times.receivedAt,
  }
}

function identifyMessage(content: SegmentContent, item: JsonObject, times: MessageTimes): JsonObject {
  return {
    version: 1,
    type: item['type'],
    userId: item['userId'] ?? undefined,
    anonymousId: item['anonymousId'] ?? undefined,
    traits: item['traits'] ?? {},
    context: outboundContext(content, item),
    integrations: merged(content.integrations, item['integrations']),
    messageId: item['messageId'] ?? undefined,
    timestamp: times.timestamp,
    originalTimestamp: times.originalTimestamp,
    sentAt: times.sentAt,
    receivedAt: times.receivedAt,
  }
}

/** A page or a screen. A page always has properties, as documented for receivers. A screen has them only if the call did. */
function viewMessage(content: SegmentContent, item: JsonObject, times: MessageTimes): JsonObject {
  return {
    version: 1,
    type: item['type'],
    userId: item['userId'] ?? undefined,
    anonymousId: item['anonymousId'] ?? undefined,
    name: item['name'] ?? undefined,
    category: item['category'] ?? undefined,
    properties: item['properties'] ?? (item['type'] === 'page' ? {} : undefined),
    context: outboundContext(content, item),
    integrations: merged(content.integrations, item['integrations']),
    messageId: item['messageId'] ?? undefined,
    timestamp: times.timestamp,
    originalTimestamp: times.originalTimestamp,
    sentAt: times.sentAt,
    receivedAt: times.receivedAt,
  }
}

function groupMessage(content: SegmentContent, item: JsonObject, times: MessageTimes): JsonObject {
  return {
    version: 1,
    type: item['type'],
    userId: item['userId'] ?? undefined,
    anonymousId: item['anonymousId'] ?? undefined,
    groupId: item['groupId'],
    traits: item['traits'] ?? {},
    context: outboundContext(content, item),
    integrations: merged(content.integrations, item['integrations']),
    messageId: item['messageId'] ?? undefined,
    timestamp: times.timestamp,
    originalTimestamp: times.originalTimestamp,
    sentAt: times.sentAt,
    receivedAt: times.receivedAt,
  }
}

function aliasMessage(content: SegmentContent, item: JsonObject, times: MessageTimes): JsonObject {
  return {
    version: 1,
    type: item['type'],
    'Previous ID': item['previousId'],
    'User ID': item['userId'] ?? undefined,
    anonymousId: item['anonymousId'] ?? undefined,
    context: outboundContext(content, item),
    integrations: merged(content.integrations, item['integrations']),
    messageId: item['messageId'] ?? undefined,
    timestamp: times.timestamp,
    originalTimestamp: times.originalTimestamp,
    sentAt: times.sentAt,
    receivedAt: times.receivedAt,
  }
}

/** Stored by delivery, with the message as it would have been sent, except for what its batch shared. */
function deadLetter(content: SegmentContent, item: JsonObject): JsonObject {
  const { type, messageId, reason, destination, attempts, lastStatus, message } = item
  return { type, messageId, reason, destination, attempts, lastStatus, message: withShared(content, message as JsonObject | null) }
}

function withShared(content: SegmentContent, message: JsonObject | null): JsonObject | null {
  // A delete message has no context. Letters that versions before this one have stored are complete.
  if (message === null || message['type'] === 'delete' || (content.context === null && content.integrations === null)) return message
  if (message['type'] === 'dead_letter') return deadLetter(content, message)
  const context = merged(content.context, message['context'])
  return { ...message, context, integrations: merged(content.integrations, message['integrations']) }
}

/** Returns the time of the message: the `timestamp` that is sent to receivers. */
export function timestampMs(content: SegmentContent, index: number): number {
  return messageTimestampMs(content, itemAt(content, index))
}

export function itemAt({ items }: SegmentContent, index: number): JsonObject {
  const item = items[index]
  if (item == null) throw new Error(`There is no message at ${index} of ${items.length}.`)
  return item
}

/** Every outbound message has a context, even if it is empty. */
export function outboundContext(content: SegmentContent, item: JsonObject): JsonObject {
  const context = merged(content.context, item['context'])
  const { ip } = content
  if (context === undefined) return content.browser && ip !== null ? { ip } : {}
  if (ip === null || context['ip'] != null || !(content.browser || context['direct'] === true)) return context
  return { ...context, ip }
}

/**
 * Adds the violations of a message to its context, for a destination that asks for them. What the sender wrote there is replaced or removed:
 * only the service says what differs from the plan.
 */
export function withViolations(message: JsonObject, { violations }: SegmentContent, index: number): JsonObject {
  const context = message['context'] as JsonObject | null | undefined
  const found = violations?.[index]
  if (context == null || (found === undefined && !Object.hasOwn(context, 'violations'))) return message
  return { ...message, context: { ...context, violations: found } }
}

/** Merges the keys of the message over those of the batch. Spreading copies a key named __proto__ as an ordinary key. */
export function merged(batch: JsonObject | null, own: JsonObject | null | undefined): JsonObject | undefined {
  if (batch === null) return own ?? undefined
  return own == null ? batch : { ...batch, ...own }
}
