// The route for live events, as server-sent events. The feed belongs to another stage (observe/live.ts); app.ts passes it in.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { anyObject, boolean, integer, nullable, number, object, oneOf, optional, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const id = (description: string) => optional(string({ max: 100, description }))

const LIVE_QUERY = object({
  sourceId: id('Only events of messages from this source.'),
  destinationId: id('Only attempts to deliver to this destination.'),
  type: optional(
    oneOf([...MESSAGE_TYPES, 'delete', 'dead_letter'], { description: 'Only messages of this type, and attempts to deliver them.' }),
  ),
  messageId: id('Only the message with this messageId, and attempts to deliver it.'),
  event: optional(string({ max: 200, description: 'Only messages with this event name, and attempts to deliver them.' })),
  userId: optional(
    string({ max: 200, description: 'Only messages of this user, by userId or anonymousId, and attempts to deliver them.' }),
  ),
  what: optional(
    oneOf(['accepted', 'rejected', 'attempt', 'failure'], {
      description: 'Only events of this kind. `failure` stands for rejected messages and failed attempts.',
    }),
  ),
})

/** The fields of all events. The name of an event determines which of them it has. */
const LIVE_EVENT = object(
  {
    at: optional(time()),
    sourceId: optional(
      nullable(string({ description: 'The source. If the request of an attempt contains several messages, the source of the first one.' })),
    ),
    messageId: optional(nullable(string())),
    type: optional(
      nullable(
        string({
          description:
            'The type of the message. If the request of an attempt contains several messages, this field and the next three are those of the first one.',
        }),
      ),
    ),
    event: optional(nullable(string())),
    userId: optional(nullable(string())),
    anonymousId: optional(nullable(string())),
    duplicate: optional(boolean({ description: 'Whether the message was dropped because it had been accepted before.' })),
    bytes: optional(nullable(integer({ description: 'The size of the message as JSON, in bytes.' }))),
    message: optional(nullable(anyObject({ description: 'The message as it is sent to webhooks; null if it is larger than 8 KB.' }))),
    code: optional(string({ description: 'The error code of the rejection.' })),
    messages: optional(integer({ description: 'The number of rejected messages; for an attempt, the number of messages in its request.' })),
    sample: optional(string({ description: 'The start of the rejected message or request, without write keys.' })),
    destinationId: optional(string()),
    deliveryId: optional(string()),
    attempt: optional(integer({ min: 1, description: 'The number of the attempt.' })),
    replay: optional(boolean({ description: 'Whether the delivery is a replay.' })),
    url: optional(string({ description: 'The URL of the attempt, without user, password and query.' })),
    success: optional(boolean()),
    verdict: optional(
      oneOf(['success', 'temporary', 'permanent'], {
        description: 'The result of the attempt. Temporary failures are retried, permanent ones are not.',
      }),
    ),
    status: optional(nullable(integer({ description: 'The HTTP status of the response; null if there was none.' }))),
    reason: optional(nullable(string({ description: 'Why the attempt failed, as a stable code; null on success.' }))),
    error: optional(nullable(string({ description: 'Why the attempt failed, as a sentence; null on success.' }))),
    totalMs: optional(number({ description: 'The duration of the attempt in milliseconds.' })),
    traceId: optional(nullable(string({ description: 'The trace id of the sender, from its traceparent header.' }))),
    count: optional(
      integer({
        description: 'The number of events that were dropped, because there were too many or the client read too slowly.',
      }),
    ),
    accepted: optional(
      integer({
        description:
          'How many of the dropped events are accepted messages. This field and the next three do not include events that other nodes dropped.',
      }),
    ),
    rejected: optional(integer({ description: 'How many of the dropped events are rejected messages.' })),
    attempts: optional(integer({ description: 'How many of the dropped events are attempts.' })),
    failures: optional(integer({ description: 'How many of the dropped events are failed attempts.' })),
  },
  {
    description: 'Events have the names `accepted`, `rejected`, `attempt` and `dropped`. The data of each event has some of these fields:',
  },
)

export function liveRoutes({ store, live }: ControlParts): Route[] {
  return [
    route('GET', '/live', {
      summary: 'Stream live events',
      access: { role: 'viewer', sources: 'limited' },
      description: 'Sends an event for each accepted message, rejected message and delivery attempt, as it happens.',
      query: LIVE_QUERY,
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
