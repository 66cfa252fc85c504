// Routes for deliveries: their state, their attempts, the reconstructed request, and the replay of a single delivery.

import { isDeepStrictEqual } from 'node:util'
import { isoTime, type JsonObject } from '@switchyard/protocol'
import { statusOfReason } from '../../api/attempt-reasons.ts'
import { DELIVERY_FILTERS, DELIVERY_STATES } from '../../api/list-filters.ts'
import { array, boolean, integer, nullable, object, oneOf, optional, record, string, time } from '../../api/schema.ts'
import { kindOf, VERSIONED } from '../../destinations/kinds.ts'
import { ApiError, type ApiErrorCode } from '../../errors.ts'
import { traceIdOf } from '../../outbound/trace-context.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import {
  type Audit,
  type AuditEntry,
  type DeliveryDetail,
  type DeliveryRow,
  type Destination,
  type FailureCause,
  type ReplayResult,
  type Role,
  type RowId,
  type SegmentContent,
  type Store,
} from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { dueTime } from '../routes/times.ts'
import { ATTEMPT_FIELDS, attemptView } from './attempt-view.ts'
import { expiryOf } from './expiry.ts'
import { reasonSentence } from './reasons.ts'
import {
  ADDED_WHEN_SENT,
  attemptUrlFor,
  builtFor,
  hideOwnHeaders,
  isSigned,
  NOT_AS_SENT,
  replaceSignatures,
  textFor,
  wasAnswered,
} from './redaction.ts'

/** The reasons of attempts for which no request was sent, because none could be built. */
const NOT_SENT: ReadonlySet<string> = new Set(['mapping_failed', 'transformation_failed', 'dropped_by_transformation'])
/** How many changes of a destination are looked at to find out whether a request is still the same. */
const MAX_CHANGES = 50

const FAILURE_STATES = ['failed', 'expired', 'cancelled'] as const satisfies readonly FailureCause['state'][]
const CAUSES_FILTERS = {
  destinationId: DELIVERY_FILTERS.destinationId,
  state: optional(
    oneOf(FAILURE_STATES, { description: 'Only deliveries in this state. If left out, deliveries in all three states are counted.' }),
  ),
  from: DELIVERY_FILTERS.from,
  to: DELIVERY_FILTERS.to,
}
const CAUSE = object(
  {
    destinationId: string(),
    state: oneOf(FAILURE_STATES),
    reason: nullable(string({ description: 'The reason, as a stable code.' })),
    status: nullable(integer({ description: 'The HTTP status of the response, if that is the reason.' })),
    sentence: string({ description: 'The reason as a sentence, for display.' }),
    count: integer({ description: 'The number of deliveries.' }),
    firstAt: time({ description: 'When the oldest of these deliveries reached its state.' }),
    lastAt: time({ description: 'When the newest of these deliveries reached its state.' }),
    deliveryId: string({ description: 'The id of the newest of these deliveries, as an example.' }),
    partial: boolean({ description: 'Whether older deliveries of the same destination and state were not counted.' }),
  },
  { title: 'FailureCause' },
)
const CAUSES = object({
  data: array(CAUSE, { description: 'Sorted by the newest failure of each cause, newest first.' }),
  counted: integer({
    description:
      'The number of failures that were counted. The limit is about 100,000, divided among all destinations and states; the newest of each are counted.',
  }),
})

export const DELIVERY_FIELDS = {
  id: string(),
  messageId: nullable(string({ description: 'The messageId that the sender chose.' })),
  storedMessageId: string({ description: 'The id of the message in the store.' }),
  type: nullable(
    string({ description: 'The type of the message. This field and the next three are null if the message is no longer stored.' }),
  ),
  event: nullable(string({ description: 'The event name of a track message.' })),
  userId: nullable(string()),
  anonymousId: nullable(string()),
  destinationId: string(),
  state: oneOf(DELIVERY_STATES),
  reason: nullable(string({ description: 'Why the delivery has its state, as a stable code; null if it is pending or was delivered.' })),
  lastReason: nullable(
    string({
      description:
        'Why the last attempt of a pending delivery failed, as a stable code; null if there was none, or if the delivery is not pending. A list has it for the attempts whose records fit in 16 MB.',
    }),
  ),
  waitingFor: nullable(
    object(
      {
        messageId: nullable(
          string({ description: 'The messageId of that message; null if it was purged, or is of a source that the caller may not see.' }),
        ),
        key: nullable(string({ description: 'The key as text; null if the message of this delivery was purged.' })),
      },
      {
        description:
          'The message that must end before this one is sent, because both have the same key at an ordered destination. Null if the delivery waits for none.',
      },
    ),
  ),
  attemptCount: integer({ description: 'The number of attempts so far.' }),
  replay: boolean({ description: 'Whether this delivery is a replay.' }),
  replayOf: nullable(string({ description: 'If this delivery is a replay, the id of the delivery that it repeats.' })),
  replayJobId: nullable(string({ description: 'If a replay job created this delivery, the id of the job.' })),
  replayedBy: nullable(
    string({
      description:
        'The id of the newest delivery of the same message to the same destination, if there is one after this delivery; otherwise null.',
    }),
  ),
  nextAttemptAt: nullable(time({ description: 'When the next attempt is due; null if it is due now or the delivery is not pending.' })),
  expiresAt: nullable(
    time({
      description:
        'When a pending delivery expires if no attempt succeeds by then: at the end of the retry window, which begins with the first attempt. Null if there has been no attempt yet, if the delivery is not pending, and while the destination is paused, disabled or held, because nothing expires then.',
    }),
  ),
  settledAt: nullable(time({ description: 'When the delivery reached its final state; null while it is pending.' })),
}
export const ATTEMPTS = array(object({ attempt: integer(), ...ATTEMPT_FIELDS }))
const DELIVERY = object(DELIVERY_FIELDS, { title: 'Delivery' })
const DELIVERY_DETAIL = object({
  ...DELIVERY_FIELDS,
  deadLetter: nullable(
    object(
      { destinationId: string(), messageId: string({ description: 'The messageId of the dead letter.' }) },
      { description: 'The dead letter that was created when the delivery failed or expired, and its destination; null if there is none.' },
    ),
  ),
  deadLetterWithheld: nullable(
    object(
      { destinationId: string(), reason: string({ description: '`about_destination`: the message is an alert about this destination.' }) },
      { description: 'The dead-letter destination for which no dead letter was created, and why; null if there is none.' },
    ),
  ),
  attempts: ATTEMPTS,
  traceId: nullable(
    string({ description: 'The trace id of the sender. Requests to the destination pass it on in their `traceparent` header.' }),
  ),
  request: nullable(
    object(
      {
        headers: record(
          string({
            description:
              "Viewers see `(hidden)` instead of signatures and of the values of headers from the destination's settings. Editors and admins see a signature only if it is the one that was sent. Otherwise they see `(added when sent)` or `(not shown)`.",
          }),
        ),
        body: string(),
        note: nullable(string({ description: 'How this reconstruction may differ from the request as sent; null if identical.' })),
      },
      {
        description:
          'The last request, or the next one if none was sent yet; null if the message or the destination was deleted, or if no request can be built from the message.',
      },
    ),
  ),
})
const REPLAY_OPTIONS = object({
  resume: optional(
    boolean({
      description:
        'If true, the delivery must hold a key of an ordered destination. The message is put back at the head of that key, and the key goes on when it is delivered. If it fails again, the key is held again.',
    }),
  ),
})
const REPLAY_ANSWER = object({
  id: string({ description: 'The id of the new delivery.' }),
  replayOf: string({ description: 'The id of the delivery that it repeats.' }),
})

type ReplayRejection = Extract<ReplayResult, { ok: false }>['reason']
const REPLAY_ERRORS: Record<ReplayRejection, ApiErrorCode> = {
  not_found: 'delivery_not_found',
  still_pending: 'delivery_pending',
  message_gone: 'message_gone',
  destination_gone: 'destination_gone',
  holds_no_key: 'holds_no_key',
}

export function deliveryRoutes(parts: ControlParts): Route[] {
  const { store, clock } = parts
  return [
    route('GET', '/deliveries', {
      summary: 'List deliveries, newest first',
      access: { role: 'viewer', sources: 'limited' },
      description: 'With `userId` or `event`, a page may have fewer entries than `limit`.',
      query: listQuery(DELIVERY_FILTERS),
      answer: listAnswer(DELIVERY),
      async handle({ query }) {
        const { destinationId, state, reason, userId, event, from: fromMs, to: toMs } = query
        const filter = { destinationId, state, reason, userId, event, fromMs, toMs }
        const page = await store.history.deliveries(filter, pageRequest('deliveries', query))
        const expires = expiryOf(parts)
        return pageAnswer('deliveries', page, (row) => deliveryView(clock, row, expires))
      },
    }),
    route('GET', '/deliveries/causes', {
      summary: 'List failure causes',
      access: { role: 'viewer', sources: 'limited' },
      description: 'Counts deliveries that failed, expired or were cancelled, grouped by destination, state and reason.',
      query: object(CAUSES_FILTERS),
      answer: CAUSES,
      async handle({ query }) {
        const { destinationId, state, from: fromMs, to: toMs } = query
        const { causes, counted } = await store.history.failureCauses({ destinationId, state, fromMs, toMs })
        return { data: causes.map(causeView), counted }
      },
    }),
    route('GET', '/deliveries/:id', {
      summary: 'Retrieve a delivery, with its attempts and its request',
      access: { role: 'viewer', sources: 'limited', subject: 'delivery' },
      answer: DELIVERY_DETAIL,
      errors: ['delivery_not_found'],
      async handle({ params, roleOn }) {
        const detail = await store.history.delivery(params['id'] ?? '')
        if (detail === undefined) throw new ApiError('delivery_not_found')
        const role = roleOn(detail.destinationId)
        return {
          ...deliveryView(clock, detail, expiryOf(parts)),
          deadLetterWithheld: detail.withheldFrom === null ? null : { destinationId: detail.withheldFrom, reason: 'about_destination' },
          attempts: attemptsView(detail, role, store.configuration().destinations.get(detail.destinationId)),
          traceId: traceIdOf(detail.content?.trace ?? null),
          request: await requestView(parts, detail, role),
        }
      },
    }),
    route('POST', '/deliveries/:id/replay', {
      summary: 'Replay a delivery',
      access: { role: 'editor', sources: 'limited', subject: 'delivery' },
      description:
        'Sends the message to the destination again, as a new delivery. At an ordered destination, it is sent outside the order, unless `resume` is true.',
      body: REPLAY_OPTIONS,
      status: 202,
      answer: REPLAY_ANSWER,
      errors: [...Object.values(REPLAY_ERRORS), 'already_loaded'],
      async handle({ params, body, actor }) {
        const replayOf = params['id'] ?? ''
        // A delivery never changes its source.
        const delivery = await store.history.delivery(replayOf)
        const sourceId = delivery?.sourceId
        const target = store.configuration().destinations.get(delivery?.destinationId ?? '')
        if (delivery?.state === 'delivered' && target !== undefined && kindOf(target).place === 'loader')
          throw new ApiError('already_loaded')
        const audit: Audit<{ deliveryId: string }> = (after) => ({
          actor,
          sources: sourceId === undefined ? null : [sourceId],
          action: 'delivery.replay',
          subject: after?.deliveryId ?? null,
          before: null,
          after: body.resume ? { resume: true } : null,
        })
        const result = await store.replays.replay(replayOf, audit, body)
        if (!result.ok) throw new ApiError(REPLAY_ERRORS[result.reason])
        return { id: result.deliveryId, replayOf }
      },
    }),
  ]
}

async function requestView({ store, clock, delivery }: ControlParts, detail: DeliveryDetail, role: Role) {
  const { content, index, history } = detail
  const current = store.configuration().destinations.get(detail.destinationId)
  if (current === undefined || content === null || content.items[index] == null) return null
  const last = history.at(-1)
  if (NOT_SENT.has(last?.reason ?? '')) return null
  const version = last === undefined || last.version === current.version ? undefined : last.version
  const kept = version === undefined ? undefined : await store.resources.destinationVersion(current.id, version)
  const destination = { ...current, ...kept?.content }
  const carried = carriedBy(detail)
  // Other messages of the same request may have been purged since; they cannot be shown.
  const parts = carried.flatMap(({ content, indexes }) => {
    const left = content === null ? [] : indexes.filter((other) => content.items[other] != null)
    return content === null || left.length === 0 ? [] : [{ content, indexes: left }]
  })
  // The id of a batch is the id of its first delivery.
  const deliveryId = `${carried[0]?.origin}-${carried[0]?.indexes[0]}`
  const about = { deliveryId, attempt: last?.attempt ?? 1, replay: detail.replay, atMs: last?.startedAtMs ?? clock.wallMs() }
  const missing = countOf(carried) - countOf(parts)
  const described = await delivery.describeRequest(builtFor(role, destination), parts, about)
  if (described === null) return null
  const { headers, hidesSecrets } = described
  const body = textFor(role, destination)(described.body)
  const notes = await requestNotes(store, detail, missing, kept === undefined ? version : undefined)
  // An attempt sends the same request to all URLs.
  const answered = history.some((request) => request.attempt === last?.attempt && wasAnswered(request))
  if (last !== undefined && !answered && isSigned(headers)) {
    notes.push('The receiver did not answer, so the request may not have reached it. For this reason, its signatures are not shown.')
  }
  if (hidesSecrets === true)
    notes.push(
      'The request contained secrets of the destination, which are not shown. Signatures are not shown either, because they cover them.',
    )
  const note = notes.length === 0 ? null : notes.join(' ')
  if (role === 'viewer') return { headers: replaceSignatures(hideOwnHeaders(headers, destination), HIDDEN), body, note }
  if (last === undefined) return { headers: replaceSignatures(headers, ADDED_WHEN_SENT), body, note }
  return { headers: notes.length === 0 ? headers : replaceSignatures(headers, NOT_AS_SENT), body, note }
}

/** How the reconstructed request may differ from what was sent. */
async function requestNotes(
  store: Store,
  { destinationId, history, gathered }: DeliveryDetail,
  missing: number,
  /** The version that the request was built with, if it is not kept any more. */
  lostVersion: number | undefined,
): Promise<string[]> {
  const last = history.at(-1)
  if (last === undefined) return ['Not sent yet. This is the request as it would be sent now.']
  const notes: string[] = []
  if (lostVersion !== undefined)
    notes.push(
      `The request was built with version ${lostVersion} of the destination, which is no longer kept. The reconstruction uses the current version.`,
    )
  // Other settings of that time are not stored, but the audit log shows whether they were changed since.
  const changes = { subject: destinationId, action: 'destination.update', fromMs: last.startedAtMs }
  const { data } = await store.history.audit(changes, { limit: MAX_CHANGES, cursor: null })
  const change = data.length === MAX_CHANGES ? data[0] : data.find(changesMoreThanContent)
  if (change !== undefined)
    notes.push(`The destination was changed at ${isoTime(change.atMs)}, after this request. The reconstruction uses its current settings.`)
  if (last.gathered !== undefined && gathered === null)
    notes.push('The request also contained messages of other calls, whose records are no longer stored.')
  if (missing > 0)
    notes.push(
      `${missing} of the messages in the request ${missing === 1 ? 'is' : 'are'} not shown, because the stored messages were deleted or are too large to show together.`,
    )
  return notes
}

/** `destination` is undefined if it was deleted. */
export function attemptsView({ history }: DeliveryDetail, role: Role, destination: Destination | undefined) {
  const shownUrl = attemptUrlFor(role, destination)
  return history.map((entry) => attemptView(entry, shownUrl))
}

/** Whether a destination was changed in more than what its versions keep. */
function changesMoreThanContent({ before, after }: AuditEntry): boolean {
  return !isDeepStrictEqual(withoutContent(before), withoutContent(after))
}

function withoutContent(settings: JsonObject | null): JsonObject {
  const { changedSecrets, version: _, ...rest } = settings ?? {}
  for (const name of VERSIONED) delete rest[name]
  const secrets = Array.isArray(changedSecrets) ? changedSecrets.filter((name) => !String(name).startsWith('request.')) : []
  return { ...rest, secrets }
}

interface CarriedPart {
  origin: RowId
  content: SegmentContent | null
  indexes: readonly number[]
}

/** The messages of the last request, in order. Before the first request, the message alone. */
function carriedBy({ id, index, content, history, gathered }: DeliveryDetail): readonly CarriedPart[] {
  return gathered ?? [{ origin: id.slice(0, id.lastIndexOf('-')), content, indexes: history.at(-1)?.indexes ?? [index] }]
}

function countOf(parts: readonly { indexes: readonly number[] }[]): number {
  return parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
}

function causeView(cause: FailureCause) {
  const { reason, isPartial } = cause
  return { ...cause, status: statusOfReason(reason), sentence: reasonSentence(reason), partial: isPartial }
}

export function deliveryView(clock: Clock, row: DeliveryRow, expires: ReturnType<typeof expiryOf>) {
  const { segment, index, state, attempts, atMs, destinationId, firstAttemptAtMs } = row
  const pending = state === 'pending'
  return {
    ...row,
    storedMessageId: `${segment}-${index}`,
    attemptCount: attempts,
    nextAttemptAt: pending && atMs !== null ? dueTime(clock, atMs) : null,
    expiresAt: pending ? expires(destinationId, firstAttemptAtMs) : null,
    settledAt: pending ? null : atMs,
  }
}
