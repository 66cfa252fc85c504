// What happens now, as server-sent events. The feed itself is another stage's, handed in by app.ts.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { anyObject, boolean, integer, nullable, number, object, oneOf, optional, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { type ControlParts, type Route, route } from '../route.ts'

const id = (description: string) => optional(string({ max: 100, description }))

const LIVE_QUERY = object({
  sourceId: id('Only what came from this source.'),
  destinationId: id('Only attempts at this destination.'),
  type: optional(oneOf([...MESSAGE_TYPES, 'delete'], { description: 'Only messages of this type, and attempts with one.' })),
  messageId: id('Only this message, and attempts with it.'),
  event: optional(string({ max: 200, description: 'Only messages with this event, and attempts with one.' })),
  userId: optional(string({ max: 200, description: 'Only messages of this user, by userId or anonymousId, and attempts with one.' })),
  what: optional(
    oneOf(['accepted', 'rejected', 'attempt', 'failure'], {
      description: 'Only these; `failure` is what was rejected, and attempts that failed.',
    }),
  ),
})

/** The fields of all events: which of them one has is told by its name. */
const LIVE_EVENT = object(
  {
    at: optional(time()),
    sourceId: optional(nullable(string({ description: 'If the attempt has several messages, that of the first.' }))),
    messageId: optional(nullable(string())),
    type: optional(
      nullable(string({ description: 'If the attempt has several messages, this and the next three fields are those of the first.' })),
    ),
    event: optional(nullable(string())),
    userId: optional(nullable(string())),
    anonymousId: optional(nullable(string())),
    duplicate: optional(boolean({ description: 'Whether it had been accepted before, and was dropped.' })),
    bytes: optional(nullable(integer({ description: 'Of the message, as JSON.' }))),
    message: optional(
      nullable(anyObject({ description: 'The message in the form in which webhooks get it; null if it is larger than 8 KB.' })),
    ),
    code: optional(string({ description: 'Why it was rejected.' })),
    messages: optional(integer({ description: 'How many were rejected, or were in the request.' })),
    sample: optional(string({ description: 'The start of what was rejected, without write keys.' })),
    destinationId: optional(string()),
    deliveryId: optional(string()),
    attempt: optional(integer({ min: 1 })),
    replay: optional(boolean()),
    url: optional(string({ description: 'Without user, password and query.' })),
    success: optional(boolean()),
    verdict: optional(oneOf(['success', 'temporary', 'permanent'])),
    status: optional(nullable(integer())),
    reason: optional(nullable(string())),
    error: optional(nullable(string())),
    totalMs: optional(number()),
    traceId: optional(nullable(string())),
    count: optional(integer({ description: 'How many events were dropped, because they came too fast or were read too slowly.' })),
    accepted: optional(integer({ description: 'Of those dropped, as far as it is known: not of those that other nodes dropped.' })),
    rejected: optional(integer()),
    attempts: optional(integer()),
    failures: optional(integer({ description: 'How many of the dropped events are failed attempts.' })),
  },
  { description: 'Events are named accepted, rejected, attempt and dropped; each has some of these fields.' },
)

export function liveRoutes({ store, live }: ControlParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/live',
      summary: 'A stream of accepted and rejected messages and of attempts, as they happen',
      query: LIVE_QUERY,
      status: 200,
      answer: LIVE_EVENT,
      stream: true,
      errors: ['source_not_found', 'destination_not_found', 'too_many_listeners'],
      handle({ query, actor }) {
        const { sources, destinations } = store.configuration()
        if (query.sourceId !== undefined && !sources.has(query.sourceId)) throw new ApiError('source_not_found')
        if (query.destinationId !== undefined && !destinations.has(query.destinationId)) throw new ApiError('destination_not_found')
        const events = live?.listen(query, actor.id) ?? null
        if (events === null) throw new ApiError('too_many_listeners')
        return events
      },
    }),
  ]
}
