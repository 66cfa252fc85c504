// Routes for messages: the list, and a single message with its deliveries, the destinations it was not sent to, and its timeline.

import { isoTime, type JsonObject } from '@switchyard/protocol'
import { DELIVERY_STATES, MESSAGE_FILTERS } from '../../api/list-filters.ts'
import { anyObject, array, boolean, integer, invalidField, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import { traceIdOf } from '../../outbound/trace-context.ts'
import { type DeliveryDetail, FILTER_RULES, type MessageTrail, type Store, type StoredMessage } from '../../store/store.ts'
import { VIOLATION_FIELDS } from '../plans/violations.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { dueMs } from '../routes/times.ts'
import { ATTEMPTS, attemptsView, DELIVERY_FIELDS, deliveryView } from './deliveries.ts'
import { expiryOf } from './expiry.ts'
import { quoted, skipSentence, TIMELINE_KINDS, type TimelineContext, timelineOf } from './timeline.ts'

const MESSAGE_FIELDS = {
  id: string({ description: 'The id of the message in the store.' }),
  messageId: nullable(string({ description: 'The id that the sender chose. It identifies duplicates.' })),
  sourceId: string(),
  type: nullable(string()),
  userId: nullable(string()),
  anonymousId: nullable(string()),
  event: nullable(string()),
  receivedAt: time({ description: 'When the service received the message.' }),
  timestamp: nullable(string({ description: 'When the event happened, corrected for the clock of the sender.' })),
  ip: nullable(string({ description: 'The IP address of the sender.' })),
  browser: boolean({ description: 'Whether the request came from a web page.' }),
  traceId: nullable(string({ description: 'The trace id of the sender, from its traceparent header.' })),
  violations: array(object(VIOLATION_FIELDS), { description: 'How the message differs from the tracking plan of its source.' }),
  message: nullable(anyObject({ description: 'The message as it is sent to destinations; null if it was purged.' })),
  quarantine: nullable(
    object(
      {
        state: oneOf(['held', 'released', 'deleted', 'expired']),
        at: nullable(time({ description: 'When the message left the quarantine; null if it is held.' })),
      },
      { description: 'Only if a tracking plan put the message in quarantine. A message that is `held` is not sent until it is released.' },
    ),
  ),
  skips: array(
    object({
      destinationId: nullable(string()),
      reason: string({ description: 'The reason, as a stable code.' }),
      rule: nullable(
        oneOf(FILTER_RULES, {
          description:
            'If the reason is `filtered`: the rule of the filter that excluded the message, or `subscribe` if the subscribe expression did.',
        }),
      ),
      message: string({ description: 'The reason as a sentence, for display.' }),
    }),
    {
      description:
        'The destinations that the message was not sent to, with the reason. If `destinationId` is null, the entry explains why the message was not sent to any destination.',
    },
  ),
}
const MESSAGE = object({
  ...MESSAGE_FIELDS,
  deliveries: array(
    object({
      id: string(),
      destinationId: string(),
      state: nullable(
        oneOf(DELIVERY_STATES, { description: 'Null if the list has too many attempts to read them all; then retrieve the delivery.' }),
      ),
      reason: nullable(string({ description: 'Why it did not end as delivered, as a stable code; null if it is pending or delivered.' })),
    }),
  ),
})
const MESSAGES = object({
  ...listAnswer(MESSAGE).fields,
  searchedBackTo: nullable(time({ description: 'If the page is not full although `next` is not null: all newer messages were searched.' })),
})
const TIMELINE = array(
  object({
    at: nullable(time({ description: 'When it happened or is due; null for entries that describe the current state or are due now.' })),
    what: oneOf(TIMELINE_KINDS),
    sentence: string({ description: 'What happened, as a sentence for display.' }),
    destinationId: nullable(string()),
    deliveryId: nullable(string()),
    reason: nullable(
      string({
        description:
          'The reason that the sentence gives, as a stable code: why the message was skipped, why the attempt or the delivery failed, or, for `waiting`, what holds the delivery back: `message_deleted`, `destination_deleted`, `destination_disabled`, `destination_paused`, `key_waiting`, `key_held` or `breaker_open`. Null if there is none.',
      }),
    ),
    attemptNumber: nullable(
      integer({ description: 'For `attempted`, the number of the attempt; for `waiting`, the number of the next one.' }),
    ),
    attemptIndex: nullable(integer({ description: 'For `attempted`, the place of the attempt in `attempts` of the delivery, from 0.' })),
    inBatch: boolean({ description: 'Whether the attempt sent other messages in the same request.' }),
  }),
  { description: 'The timeline of the message: what happened to it, in order.' },
)
const DUPLICATES = nullable(
  object(
    { count: integer(), lastAt: time() },
    { description: 'How often the message was received again and dropped as a duplicate; null if it was received only once.' },
  ),
)
const MESSAGE_DETAIL = object({
  ...MESSAGE_FIELDS,
  sourceName: nullable(string({ description: 'The name of the source; null if it was deleted.' })),
  purged: boolean({ description: 'Whether the content was deleted by a deletion request.' }),
  duplicates: DUPLICATES,
  deliveries: array(
    object({
      ...DELIVERY_FIELDS,
      destinationName: nullable(string({ description: 'The name of the destination; null if it was deleted.' })),
      attempts: ATTEMPTS,
    }),
    { description: 'The deliveries, with their current state and all attempts.' },
  ),
  story: TIMELINE,
  others: array(
    object({
      id: string(),
      sourceId: string(),
      sourceName: nullable(string()),
      receivedAt: time(),
      duplicates: DUPLICATES,
      story: TIMELINE,
    }),
    { description: 'Older messages with the same messageId: from other sources, or from another day.' },
  ),
})

/** How many changes of a destination are followed back at most: 1,000. */
const MAX_AUDIT_PAGES = 10
const AUDIT_PAGE = 100

export function messageRoutes(parts: ControlParts): Route[] {
  const { store, clock } = parts
  return [
    route('GET', '/messages', {
      summary: 'List messages, newest first',
      access: { role: 'viewer', sources: 'limited' },
      query: listQuery(MESSAGE_FILTERS),
      description:
        'A page reads at most 8 MB of messages. If few of them match, the page is not full although `next` is not null, and `searchedBackTo` says how far it has searched.',
      answer: MESSAGES,
      async handle({ query }) {
        const { sourceId, type, event, userId, messageId, search, from: fromMs, to: toMs } = query
        const property = query.property === undefined ? undefined : propertyFilter(query.property)
        const page = await store.history.messages(
          { sourceId, type, event, userId, messageId, search, property, fromMs, toMs },
          pageRequest('messages', query),
        )
        const answer = pageAnswer('messages', page, (stored) => ({ ...messageView(stored), deliveries: stored.deliveries }))
        return { ...answer, searchedBackTo: page.reachedMs ?? null }
      },
    }),
    route('GET', '/messages/:id', {
      summary: 'Retrieve a message by its id or messageId',
      access: { role: 'viewer', sources: 'limited', subject: 'message' },
      description: 'Returns the message with its timeline and its deliveries, and the reasons why it was not sent to other destinations.',
      answer: MESSAGE_DETAIL,
      errors: ['message_not_found'],
      async handle({ params, roleOn }) {
        const id = params['id'] ?? ''
        const [newest, ...older] = await store.history.trails(id)
        if (newest === undefined) throw await notFound(store, id)
        const { deliveries, expressions, ...rest } = await detailsOf(parts, newest)
        const { destinations } = store.configuration()
        const expires = expiryOf(parts)
        return {
          ...messageView(newest, expressions),
          ...rest,
          purged: newest.content.items[newest.index] == null,
          deliveries: deliveries.map((detail) => {
            const destination = destinations.get(detail.destinationId)
            const attempts = attemptsView(detail, roleOn(detail.destinationId), destination)
            return Object.assign(deliveryView(clock, detail, expires), { destinationName: destination?.name ?? null, attempts })
          }),
          others: await Promise.all(older.map((trail) => otherView(parts, trail))),
        }
      },
    }),
  ]
}

async function detailsOf({ store, clock, delivery }: ControlParts, trail: MessageTrail) {
  const { sources, destinations } = store.configuration()
  const found = await Promise.all(trail.deliveries.map(({ id }) => store.history.delivery(id)))
  // Retention may have removed a delivery in the meantime.
  const deliveries = found.filter((one): one is DeliveryDetail => one !== undefined)
  const sourceName = sources.get(trail.content.sourceId)?.name ?? null
  const expressions = await expressionsOf(store, trail)
  const about: TimelineContext = {
    sourceName,
    destination: (id) => destinations.get(id),
    breaker: (id) => delivery.health(id)?.breaker,
    failure: (id) => delivery.health(id)?.failure?.error ?? null,
    expression: (id) => expressions.get(id) ?? null,
    wallMs: (scheduleMs) => dueMs(clock, scheduleMs),
  }
  return {
    deliveries,
    expressions,
    sourceName,
    duplicates: trail.repeats,
    story: timelineOf(trail, deliveries, about),
  }
}

function propertyFilter(text: string): { path: string[]; value?: string } {
  const [, path = '', value] = /^([^=]+)(?:=(.*))?$/s.exec(text) ?? []
  const names = path.trim().split('.')
  if (names.includes('')) {
    throw invalidField('property', 'must be a path such as properties.plan, or a path and a value, such as properties.plan=pro')
  }
  return value === undefined || value === '' ? { path: names } : { path: names, value }
}

/** The subscribe expressions that excluded a message, by the id of the destination. */
async function expressionsOf(store: Store, { skips, content }: MessageTrail): Promise<Map<string, string>> {
  const expressions = new Map<string, string>()
  for (const { destinationId, rule } of skips) {
    if (rule !== 'subscribe' || destinationId === null) continue
    const expression = await subscribeAt(store, destinationId, content.receivedAtMs)
    if (expression !== null) expressions.set(destinationId, expression)
  }
  return expressions
}

/** The error for a message that is not stored. It includes the reason where one is known, because a 404 alone does not help to find it. */
async function notFound(store: Store, id: string): Promise<ApiError> {
  const rejection = (await store.books.rejections()).find(({ lastSample }) => namesMessage(lastSample, id))
  if (rejection !== undefined) {
    const { sourceId, code, lastAtMs } = rejection
    const origin = sourceId === null ? 'in a request with an unknown write key' : `from the source ${sourceId}`
    const message = `A message with this messageId, ${origin}, was rejected at ${isoTime(lastAtMs)} with the code ${code}, so it was not stored.`
    return new ApiError('message_not_found', { message, rejection: { code, sourceId, at: isoTime(lastAtMs) } })
  }
  const reasons = ['it never arrived', 'it was rejected (see GET /api/rejections)', 'it is older than the retention period']
  if (store.configuration().suppressions.size > 0) reasons.push('the messages of its user are suppressed (see GET /api/suppressions)')
  const message = `No message with the id or messageId ${quoted(id)} is stored. Possible reasons: ${reasons.join('; ')}.`
  return new ApiError('message_not_found', { message })
}

async function otherView(parts: ControlParts, trail: MessageTrail) {
  const { deliveries: _, expressions: __, ...rest } = await detailsOf(parts, trail)
  return { id: trail.id, sourceId: trail.content.sourceId, receivedAt: trail.content.receivedAtMs, ...rest }
}

function messageView({ id, index, content, skips, quarantine }: StoredMessage, expressions?: ReadonlyMap<string, string>) {
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
    receivedAt: content.receivedAtMs,
    timestamp: text(message?.['timestamp']),
    // Nothing that identifies the user of a purged message is shown.
    ip: item === null ? null : content.ip,
    browser: content.browser,
    traceId: traceIdOf(content.trace),
    violations: item === null ? [] : (content.violations?.[index] ?? []),
    message,
    quarantine: quarantine ?? null,
    skips: skips.map((skip) => {
      const { destinationId, reason, rule = null } = skip
      return { destinationId, reason, rule, message: skipSentence(skip, item, expressions?.get(destinationId ?? '')) }
    }),
  }
}

/**
 * The subscribe expression that a destination had at a time; null if it had none, or if it is not known. The store does not keep it with each
 * message, because the audit log has the settings before each change.
 */
async function subscribeAt(store: ControlParts['store'], destinationId: string, atMs: number): Promise<string | null> {
  let expression: unknown = store.configuration().destinations.get(destinationId)?.subscribe
  let cursor: string | null = null
  for (let page = 0; page < MAX_AUDIT_PAGES; page++) {
    // Newest first: each entry takes the expression one change further back.
    const { data, next } = await store.history.audit({ subject: destinationId, fromMs: atMs }, { limit: AUDIT_PAGE, cursor })
    for (const { before } of data) if (before !== null && 'subscribe' in before) expression = before['subscribe']
    cursor = next
    if (cursor === null) return text(expression)
  }
  return null
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Whether the start of a rejected message contains this messageId. */
function namesMessage(sample: string, id: string): boolean {
  const value = JSON.stringify(id)
  for (let at = sample.indexOf(value); at !== -1; at = sample.indexOf(value, at + 1)) {
    if (/"messageId"\s*:\s*$/.test(sample.slice(0, at))) return true
  }
  return false
}
