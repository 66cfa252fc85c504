// Messages as they were accepted, where each one goes, and where it does not and why.

import { isoTime, type JsonObject } from '@switchyard/protocol'
import { ApiError } from '../errors.ts'
import { outboundMessage } from '../outbound-message.ts'
import type { SkipReason, StoredMessage } from '../store/store.ts'
import { DELIVERY_FIELDS, deliveryView } from './deliveries.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest, queryTime } from './query.ts'
import { type ControlParts, type Route, route } from './route.ts'
import { SAMPLE_TYPES } from './sample-message.ts'
import { anyObject, array, nullable, object, oneOf, optional, string, time } from './schema.ts'

const SKIPS: Record<SkipReason, string> = {
  no_destination: 'The source has no destination.',
  destination_disabled: 'The destination was disabled when the message was accepted.',
  destination_deleted: 'The destination was deleted before the message was accepted.',
  integrations_disabled: "The message's integrations object turns the destination off.",
  filtered: "The destination's filter does not let this type or event through.",
  historical: 'The message happened more than 24 h before it was received, and the destination takes no historical messages.',
}

const FILTERS = {
  sourceId: optional(string({ min: 1 })),
  type: optional(oneOf(SAMPLE_TYPES)),
  userId: optional(string({ min: 1 })),
  messageId: optional(string({ min: 1 })),
  from: optional(queryTime({ description: 'Received at this time or later.' })),
  to: optional(queryTime({ description: 'Received before this time.' })),
}

const MESSAGE_FIELDS = {
  id: string({ description: 'Its place in the store.' }),
  messageId: nullable(string({ description: "The sender's id, by which duplicates are known." })),
  sourceId: string(),
  type: nullable(string()),
  userId: nullable(string()),
  anonymousId: nullable(string()),
  event: nullable(string()),
  receivedAt: time(),
  timestamp: nullable(string()),
  ip: nullable(string({ description: "The sender's address." })),
  message: nullable(anyObject({ description: 'As it is delivered; null when it was purged.' })),
  skips: array(object({ destinationId: nullable(string()), reason: string(), message: string() }), {
    description: 'Where it does not go, and why; without a destination, why it goes nowhere.',
  }),
}
const MESSAGE = object({ ...MESSAGE_FIELDS, deliveries: array(object({ id: string(), destinationId: string() })) })
const MESSAGE_DETAIL = object({
  ...MESSAGE_FIELDS,
  deliveries: array(object(DELIVERY_FIELDS), { description: 'With their present state.' }),
})

export function messageRoutes({ store, clock }: ControlParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/messages',
      summary: 'Messages, newest first',
      query: listQuery(FILTERS),
      status: 200,
      answer: listAnswer(MESSAGE),
      errors: ['invalid_cursor'],
      async handle({ query }) {
        const { sourceId, type, userId, messageId, from: fromMs, to: toMs } = query
        const page = await store.control.messages({ sourceId, type, userId, messageId, fromMs, toMs }, pageRequest('messages', query))
        return pageAnswer('messages', page, (stored) => ({
          ...messageView(stored),
          deliveries: stored.deliveries.map(({ id, destinationId }) => ({ id, destinationId })),
        }))
      },
    }),
    route({
      method: 'GET',
      path: '/messages/:id',
      summary: 'One message, by its id or its messageId, with its deliveries or why it went nowhere',
      status: 200,
      answer: MESSAGE_DETAIL,
      errors: ['message_not_found'],
      async handle({ params }) {
        const stored = await store.control.message(params['id'] ?? '')
        if (stored === undefined) throw new ApiError('message_not_found')
        const deliveries = await Promise.all(stored.deliveries.map(({ id }) => store.control.delivery(id)))
        return {
          ...messageView(stored),
          // One that retention dropped in between is no longer to be told of.
          deliveries: deliveries.filter((delivery) => delivery !== undefined).map((delivery) => deliveryView(clock, delivery)),
        }
      },
    }),
  ]
}

function messageView({ id, index, content, skips }: StoredMessage) {
  const item: JsonObject | null = content.items[index] ?? null
  const message = item === null ? null : outboundMessage(content, index)
  return {
    id,
    messageId: text(item?.['messageId']),
    sourceId: content.sourceId,
    type: text(item?.['type']),
    userId: text(item?.['userId']),
    anonymousId: text(item?.['anonymousId']),
    event: text(item?.['event']),
    receivedAt: isoTime(content.receivedAtMs),
    timestamp: text(message?.['timestamp']),
    ip: content.ip,
    message,
    skips: skips.map(({ destinationId, reason }) => ({ destinationId, reason, message: SKIPS[reason] })),
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
