// Deliveries: their state, what each attempt came to, the request that was made, and sending one again.

import { isoTime } from '@switchyard/protocol'
import { array, boolean, integer, nullable, object, oneOf, optional, record, string, time } from '../../api/schema.ts'
import { ApiError, type ApiErrorCode } from '../../errors.ts'
import { traceIdOf } from '../../outbound/trace-context.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type {
  Audit,
  DeliveryDetail,
  DeliveryRow,
  DeliveryState,
  Destination,
  FailureCause,
  ReplayResult,
  Role,
  RowId,
  SegmentContent,
} from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import {
  ADDED_WHEN_SENT,
  attemptUrlFor,
  hideOwnHeaders,
  isSigned,
  NOT_AS_SENT,
  replaceSignatures,
  wasAnswered,
} from '../destinations/redaction.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest, queryTime } from '../query.ts'
import { type ControlParts, type Route, route } from '../route.ts'
import { dueTime } from '../times.ts'
import { ATTEMPT_FIELDS, attemptView } from './attempt-view.ts'
import { reasonSentence, statusOfReason } from './reasons.ts'

const STATES = ['pending', 'delivered', 'failed', 'expired', 'cancelled'] as const satisfies readonly DeliveryState[]

const FILTERS = {
  destinationId: optional(string({ min: 1, description: 'Owed to this destination.' })),
  state: optional(oneOf(STATES, { description: 'In this state.' })),
  reason: optional(string({ min: 1, description: 'Only deliveries with this reason: a code such as `timeout` or `http_500`.' })),
  userId: optional(
    string({ min: 1, description: 'Only deliveries of messages of this user, by userId, anonymousId or previousId. A page may be short.' }),
  ),
  event: optional(string({ min: 1, description: 'Only deliveries of messages with this event. A page may be short.' })),
  from: optional(queryTime({ description: 'Only deliveries that reached their state at this time or later.' })),
  to: optional(queryTime({ description: 'Only deliveries that reached their state at this time or earlier.' })),
}

const FAILURE_STATES = ['failed', 'expired', 'cancelled'] as const satisfies readonly FailureCause['state'][]
const CAUSES_FILTERS = {
  destinationId: optional(string({ min: 1, description: 'Owed to this destination.' })),
  state: optional(oneOf(FAILURE_STATES, { description: 'In this state; in any of the three when left out.' })),
  from: optional(queryTime({ description: 'Only deliveries that reached their state at this time or later.' })),
  to: optional(queryTime({ description: 'Only deliveries that reached their state at this time or earlier.' })),
}
const CAUSE = object(
  {
    destinationId: string(),
    state: oneOf(FAILURE_STATES),
    reason: nullable(string({ description: 'A stable code.' })),
    status: nullable(integer({ description: 'The HTTP status that the receiver answered with, where that is the reason.' })),
    sentence: string({ description: 'The reason in words, to be printed as it is.' }),
    count: integer(),
    firstAt: time({ description: 'When the oldest of them reached its state.' }),
    lastAt: time({ description: 'When the newest of them reached its state.' }),
    deliveryId: string({ description: 'The newest of them, as an example.' }),
    partial: boolean({ description: 'Whether older deliveries of the same destination and state were not counted.' }),
  },
  { title: 'FailureCause' },
)
const CAUSES = object({
  data: array(CAUSE, { description: 'The cause of the newest failure first.' }),
  counted: integer({ description: 'Failures that were looked at: 100,000 at most, the newest of each destination and state.' }),
})

export const DELIVERY_FIELDS = {
  id: string(),
  messageId: nullable(string()),
  storedMessageId: string({ description: "The message's id in the store." }),
  type: nullable(
    string({ description: 'The type of the message. Null if the message is no longer stored; the same holds for the next three fields.' }),
  ),
  event: nullable(string({ description: 'The event of a track message.' })),
  userId: nullable(string()),
  anonymousId: nullable(string()),
  destinationId: string(),
  state: oneOf(STATES),
  reason: nullable(string({ description: 'The reason for its state; null if it was delivered.' })),
  attemptCount: integer(),
  replay: boolean({ description: 'Whether this delivery is a replay.' }),
  replayOf: nullable(string({ description: 'If this delivery is a replay: the delivery that it repeats.' })),
  replayJobId: nullable(string({ description: 'If this delivery is a replay: the job that made it; null if it was replayed alone.' })),
  replayedBy: nullable(string({ description: 'The newest delivery of the same message to the same destination, if that is a later one.' })),
  nextAttemptAt: nullable(time({ description: 'Only if pending; null if it is due now.' })),
  settledAt: nullable(time()),
}
export const ATTEMPTS = array(object({ attempt: integer(), ...ATTEMPT_FIELDS }))
const DELIVERY = object(DELIVERY_FIELDS, { title: 'Delivery' })
const DELIVERY_DETAIL = object({
  ...DELIVERY_FIELDS,
  attempts: ATTEMPTS,
  traceId: nullable(string({ description: "Of the caller's trace, which the request carries as traceparent." })),
  request: nullable(
    object(
      {
        headers: record(
          string({
            description:
              "Viewers see (hidden) in place of signatures and of the values of the destination's own headers. Admins see a signature only if it is the one that was sent; otherwise they see (added when sent) or (not shown).",
          }),
        ),
        body: string(),
        note: nullable(string({ description: 'How this reconstruction may differ from the request as sent; null if identical.' })),
      },
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
  async function requestView(detail: DeliveryDetail, role: Role) {
    const { content, index, history } = detail
    const destination = store.configuration().destinations.get(detail.destinationId)
    if (destination === undefined || content === null || content.items[index] == null) return null
    const last = history.at(-1)
    const carried = carriedBy(detail)
    // Others of the same request that have been purged since cannot be shown.
    const parts = carried.flatMap(({ content, indexes }) => {
      const left = content === null ? [] : indexes.filter((other) => content.items[other] != null)
      return content === null || left.length === 0 ? [] : [{ content, indexes: left }]
    })
    // A batch goes by the id of its first delivery.
    const deliveryId = `${carried[0]?.origin}-${carried[0]?.indexes[0]}`
    const about = { deliveryId, attempt: last?.attempt ?? 1, replay: detail.replay, atMs: last?.startedAtMs ?? clock.wallMs() }
    const missing = countOf(carried) - countOf(parts)
    const { headers, body } = delivery.describeRequest(destination, parts, about)
    const notes = await requestNotes(detail, missing)
    // All URLs of an attempt get the same request.
    const answered = history.some((request) => request.attempt === last?.attempt && wasAnswered(request))
    if (last !== undefined && !answered && isSigned(headers)) {
      notes.push('The receiver did not answer, so the request may not have reached it. For this reason its signatures are not shown.')
    }
    const note = notes.length === 0 ? null : notes.join(' ')
    if (role !== 'admin') return { headers: replaceSignatures(hideOwnHeaders(headers, destination), HIDDEN), body, note }
    if (last === undefined) return { headers: replaceSignatures(headers, ADDED_WHEN_SENT), body, note }
    return { headers: notes.length === 0 ? headers : replaceSignatures(headers, NOT_AS_SENT), body, note }
  }

  /** How the reconstructed request may differ from what was sent. */
  async function requestNotes({ destinationId, history, gathered }: DeliveryDetail, missing: number): Promise<string[]> {
    const last = history.at(-1)
    if (last === undefined) return ['It was not sent yet. This is the request as it would be sent now.']
    const notes: string[] = []
    // The destination's settings of the time are not kept, but that they were changed is.
    const changes = { subject: destinationId, action: 'destination.update', fromMs: last.startedAtMs }
    const [change] = (await store.history.audit(changes, { limit: 1, cursor: null })).data
    if (change !== undefined) notes.push(`The destination was changed at ${isoTime(change.atMs)}: this is made from its present settings.`)
    if (last.gathered !== undefined && gathered === null) notes.push('It carried messages of other calls too, of which no record is left.')
    if (missing > 0) notes.push(`Of the messages that it carried, ${missing} are left out: no longer stored, or too large together.`)
    return notes
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
        const { destinationId, state, reason, userId, event, from: fromMs, to: toMs } = query
        const filter = { destinationId, state, reason, userId, event, fromMs, toMs }
        const page = await store.history.deliveries(filter, pageRequest('deliveries', query))
        return pageAnswer('deliveries', page, (row) => deliveryView(clock, row))
      },
    }),
    route({
      method: 'GET',
      path: '/deliveries/causes',
      summary: 'Deliveries that failed, expired or were cancelled, grouped by destination, state and reason',
      query: object(CAUSES_FILTERS),
      status: 200,
      answer: CAUSES,
      async handle({ query }) {
        const { destinationId, state, from: fromMs, to: toMs } = query
        const { causes, looked } = await store.history.failureCauses({ destinationId, state, fromMs, toMs })
        return { data: causes.map(causeView), counted: looked }
      },
    }),
    route({
      method: 'GET',
      path: '/deliveries/:id',
      summary: 'One delivery, with its attempts and its request',
      status: 200,
      answer: DELIVERY_DETAIL,
      errors: ['delivery_not_found'],
      async handle({ params, role }) {
        const detail = await store.history.delivery(params['id'] ?? '')
        if (detail === undefined) throw new ApiError('delivery_not_found')
        return {
          ...deliveryView(clock, detail),
          attempts: attemptsView(detail, role, store.configuration().destinations.get(detail.destinationId)),
          traceId: traceIdOf(detail.content?.trace ?? null),
          request: await requestView(detail, role),
        }
      },
    }),
    route({
      method: 'POST',
      path: '/deliveries/:id/replay',
      summary: 'Sends the message to the destination again, as a new delivery',
      status: 202,
      answer: REPLAY_ANSWER,
      errors: Object.values(REPLAY_ERRORS),
      async handle({ params, actor }) {
        const replayOf = params['id'] ?? ''
        const audit: Audit<{ deliveryId: string }> = (after) => ({
          actor,
          action: 'delivery.replay',
          subject: after?.deliveryId ?? null,
          before: null,
          after: null,
        })
        const result = await store.replays.replay(replayOf, audit)
        if (!result.ok) throw new ApiError(REPLAY_ERRORS[result.reason])
        return { id: result.deliveryId, replayOf }
      },
    }),
  ]
}

/** `destination`: undefined for one that was deleted. */
export function attemptsView({ history }: DeliveryDetail, role: Role, destination: Destination | undefined) {
  const shownUrl = attemptUrlFor(role, destination)
  return history.map((entry) => ({ attempt: entry.attempt, ...attemptView(entry, shownUrl) }))
}

interface CarriedPart {
  origin: RowId
  content: SegmentContent | null
  indexes: readonly number[]
}

/** What the last request carried, in order; of one that was not made yet, the message alone. */
function carriedBy({ id, index, content, history, gathered }: DeliveryDetail): readonly CarriedPart[] {
  return gathered ?? [{ origin: id.slice(0, id.lastIndexOf('-')), content, indexes: history.at(-1)?.indexes ?? [index] }]
}

function countOf(parts: readonly { indexes: readonly number[] }[]): number {
  return parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
}

function causeView({ destinationId, state, reason, count, firstAtMs, lastAtMs, deliveryId, isPartial }: FailureCause) {
  const sentence = reasonSentence(reason)
  const times = { firstAt: isoTime(firstAtMs), lastAt: isoTime(lastAtMs) }
  return { destinationId, state, reason, status: statusOfReason(reason), sentence, count, ...times, deliveryId, partial: isPartial }
}

export function deliveryView(clock: Clock, row: DeliveryRow) {
  const { id, messageId, destinationId, state, reason, attempts, replay, replayOf, replayJobId, replayedBy, segment, index, atMs } = row
  const { type, event, userId, anonymousId } = row
  const pending = state === 'pending'
  return {
    id,
    messageId,
    storedMessageId: `${segment}-${index}`,
    type,
    event,
    userId,
    anonymousId,
    destinationId,
    state,
    reason,
    attemptCount: attempts,
    replay,
    replayOf,
    replayJobId,
    replayedBy,
    nextAttemptAt: pending && atMs !== null ? dueTime(clock, atMs) : null,
    settledAt: pending || atMs === null ? null : isoTime(atMs),
  }
}
