// Deliveries: their state, what each attempt came to, the request that was made, and sending one again.

import { isoTime } from '@switchyard/protocol'
import type { Clock } from '../clock.ts'
import { ApiError, type ApiErrorCode } from '../errors.ts'
import type { DeliveryDetail, DeliveryRow, DeliveryState, ReplayResult } from '../store/store.ts'
import { ATTEMPT_FIELDS, attemptView } from './attempt-view.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest, queryTime } from './query.ts'
import { type ControlParts, type Route, route } from './route.ts'
import { array, boolean, integer, nullable, object, oneOf, optional, record, string, time } from './schema.ts'
import { dueTime } from './times.ts'

const STATES = ['pending', 'delivered', 'failed', 'expired', 'cancelled'] as const satisfies readonly DeliveryState[]

const FILTERS = {
  destinationId: optional(string({ min: 1 })),
  state: optional(oneOf(STATES)),
  reason: optional(string({ min: 1 })),
  from: optional(queryTime({ description: 'Came to its state at this time or later.' })),
  to: optional(queryTime({ description: 'Came to its state before this time.' })),
}

export const DELIVERY_FIELDS = {
  id: string(),
  messageId: nullable(string()),
  storedMessageId: string({ description: "The message's id in the store." }),
  destinationId: string(),
  state: oneOf(STATES),
  reason: nullable(string({ description: 'Why it came to its state; null when it was delivered.' })),
  attemptCount: integer(),
  replay: boolean({ description: 'Whether it sends a message again.' }),
  nextAttemptAt: nullable(time({ description: 'Of a pending one; null when it is due at once.' })),
  settledAt: nullable(time()),
}
const DELIVERY = object(DELIVERY_FIELDS)
const DELIVERY_DETAIL = object({
  ...DELIVERY_FIELDS,
  attempts: array(object({ attempt: integer(), ...ATTEMPT_FIELDS })),
  request: nullable(
    object(
      { headers: record(string()), body: string() },
      { description: 'The last request, or the next if there was none; null when the message or the destination is gone.' },
    ),
  ),
})
const REPLAY_ANSWER = object({ id: string({ description: 'Of the new delivery.' }), replayOf: string() })

type ReplayRefusal = Extract<ReplayResult, { ok: false }>['reason']
const REPLAY_ERRORS: Record<ReplayRefusal, ApiErrorCode> = {
  not_found: 'delivery_not_found',
  still_pending: 'delivery_pending',
  message_gone: 'message_gone',
  destination_gone: 'destination_gone',
}

export function deliveryRoutes({ store, clock, delivery }: ControlParts): Route[] {
  function requestView(detail: DeliveryDetail) {
    const { content, index, history } = detail
    const destination = store.configuration().destinations.get(detail.destinationId)
    if (destination === undefined || content === null || content.items[index] == null) return null
    const last = history.at(-1)
    // Others of the same request that have been purged since cannot be shown.
    const indexes = (last?.indexes ?? [index]).filter((other) => content.items[other] != null)
    // A batch goes by the id of its first delivery.
    const deliveryId = `${detail.id.slice(0, detail.id.lastIndexOf('-'))}-${indexes[0]}`
    const about = { deliveryId, attempt: last?.attempt ?? 1, replay: detail.replay, atMs: last?.startedAtMs ?? clock.wallMs() }
    return delivery.describeRequest(destination, content, indexes, about)
  }

  return [
    route({
      method: 'GET',
      path: '/deliveries',
      summary: 'Deliveries, newest first',
      query: listQuery(FILTERS),
      status: 200,
      answer: listAnswer(DELIVERY),
      errors: ['invalid_cursor'],
      async handle({ query }) {
        const { destinationId, state, reason, from: fromMs, to: toMs } = query
        const page = await store.control.deliveries({ destinationId, state, reason, fromMs, toMs }, pageRequest('deliveries', query))
        return pageAnswer('deliveries', page, (row) => deliveryView(clock, row))
      },
    }),
    route({
      method: 'GET',
      path: '/deliveries/:id',
      summary: 'One delivery, with its attempts and its request',
      status: 200,
      answer: DELIVERY_DETAIL,
      errors: ['delivery_not_found'],
      async handle({ params }) {
        const detail = await store.control.delivery(params['id'] ?? '')
        if (detail === undefined) throw new ApiError('delivery_not_found')
        return {
          ...deliveryView(clock, detail),
          attempts: detail.history.map((entry) => ({ attempt: entry.attempt, ...attemptView(entry) })),
          request: requestView(detail),
        }
      },
    }),
    route({
      method: 'POST',
      path: '/deliveries/:id/replay',
      summary: 'Sends the message to the destination once more, as a delivery of its own',
      status: 202,
      answer: REPLAY_ANSWER,
      errors: Object.values(REPLAY_ERRORS),
      async handle({ params }) {
        const replayOf = params['id'] ?? ''
        const result = await store.control.replay(replayOf)
        if (!result.ok) throw new ApiError(REPLAY_ERRORS[result.reason])
        return { id: result.deliveryId, replayOf }
      },
    }),
  ]
}

export function deliveryView(clock: Clock, row: DeliveryRow) {
  const { id, messageId, destinationId, state, reason, attempts, replay, segment, index, atMs } = row
  const pending = state === 'pending'
  return {
    id,
    messageId,
    storedMessageId: `${segment}-${index}`,
    destinationId,
    state,
    reason,
    attemptCount: attempts,
    replay,
    nextAttemptAt: pending && atMs !== null ? dueTime(clock, atMs) : null,
    settledAt: pending || atMs === null ? null : isoTime(atMs),
  }
}
