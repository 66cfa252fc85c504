// The keys of an ordered destination that wait or are held, and what operators do about them. A key may have messages of all sources of the destination,
// so the routes are for callers that have all of them. Entries of the audit log name deliveries, never keys: a key may be a user id that is deleted later.

import { array, boolean, integer, nullable, object, oneOf, optional, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { countOf } from '../../store/port/stat-counts.ts'
import type { Actor, Destination, KeyActionResult, NewAuditEntry, OrderedKey, Store } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { reasonSentence } from '../history/reasons.ts'
import { listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { dueTime } from '../routes/times.ts'

const KEY_STATE = oneOf(['waiting', 'held'], {
  description:
    '`waiting`: the message is attempted again, and later messages of the key wait for it. `held`: it failed or expired, and nothing of the key is sent until somebody resumes or skips it.',
})
const MESSAGE_ID = nullable(string({ description: 'The messageId of the message that the others wait for; null if it was purged.' }))
const KEY_TEXT = nullable(
  string({ description: 'The key as text, read from the message that the others wait for; null if that was purged.' }),
)
const SINCE = time({ description: 'Since when messages of the key wait.' })
const REASON = nullable(string({ description: 'Why the last attempt failed, as a stable code.' }))

const KEY = object(
  {
    key: KEY_TEXT,
    state: KEY_STATE,
    waiting: integer({ description: 'The number of messages that wait, without the one that they wait for.' }),
    since: SINCE,
    skipping: boolean({ description: 'Whether the message was skipped, and ends when its running attempt is over.' }),
    head: object(
      {
        messageId: MESSAGE_ID,
        deliveryId: string(),
        state: oneOf(['pending', 'failed', 'expired']),
        attempts: integer({ description: 'The number of attempts so far.' }),
        reason: REASON,
        reasonSentence: nullable(string({ description: 'The same as a sentence, for display.' })),
        nextAttemptAt: nullable(time({ description: 'When the next attempt is due; null if it is due now, or if the key is held.' })),
      },
      { description: 'The message that the others wait for.' },
    ),
  },
  { title: 'OrderedKey' },
)

const ORDER = object({
  waitingKeys: integer({ description: 'The number of keys that wait, without held ones.' }),
  waitingMessages: integer({ description: 'The number of messages that wait behind another one, in keys that wait or are held.' }),
  heldKeys: integer({ description: 'The number of keys that are held.' }),
  keylessMessages: integer({
    description:
      'The number of messages accepted in the last 24 hours that have no key, because the value is missing, empty, an object, an array, or longer than 1 KB. They are sent outside the order. Updated every few seconds.',
  }),
  oldest: nullable(
    object(
      { key: KEY_TEXT, since: SINCE, messageId: MESSAGE_ID, reason: REASON },
      { description: 'The key that has waited or been held for longest; null if there is none.' },
    ),
  ),
  data: array(KEY, { description: 'The keys whose first message has failed at least once, or that are held, oldest first.' }),
  next: nullable(string({ description: 'The `cursor` for the next page; null on the last page.' })),
})

const ACTION = object({
  key: string({
    min: 1,
    max: 1024,
    description: 'The key as text: the value of `order.by` in the messages, or the id of the source if messages are ordered by source.',
  }),
  messageId: optional(
    string({ description: 'Only if this is still the message that the others wait for. Without it, whichever message that is.' }),
  ),
})

const ACTION_ANSWER = object({
  deliveryId: string({ description: 'The delivery that the key waited for, or that held it.' }),
  state: oneOf(['waiting', 'held'], { description: 'The state of the key before this.' }),
  done: boolean({ description: 'False if the delivery is being attempted at the moment: then it takes effect when the attempt is over.' }),
})

const KEYLESS_HOURS = 24
const HOUR_MS = 3_600_000

const ERRORS = ['destination_not_found', 'key_not_waiting', 'not_head_of_key'] as const
const REFUSED = { not_waiting: 'key_not_waiting', not_head: 'not_head_of_key' } as const

export function orderRoutes({ store, clock, flushStats }: ControlParts): Route[] {
  return [
    route('GET', '/destinations/:id/order', {
      summary: 'List the keys of an ordered destination that wait or are held, oldest first',
      access: { role: 'viewer', sources: 'limited', subject: 'destination', whole: true },
      description: 'A key is listed when its first message has failed at least once, or when it is held.',
      query: listQuery({}),
      answer: ORDER,
      errors: ['destination_not_found'],
      async handle({ params, query }) {
        const { id } = destinationOf(store, params['id'])
        await flushStats?.()
        const [{ keys, oldest, ...counts }, keylessMessages] = await Promise.all([
          store.order.read(id, pageRequest('order', query)),
          keylessOf(store, id, clock.wallMs()),
        ])
        return {
          ...counts,
          keylessMessages,
          oldest: oldest && {
            key: oldest.key,
            since: oldest.sinceMs,
            messageId: oldest.head.messageId,
            reason: oldest.head.reason,
          },
          ...pageAnswer('order', keys, (key) => keyView(key, clock)),
        }
      },
    }),
    route('POST', '/destinations/:id/order/skip', {
      summary: 'Skip the message that a key waits for, or release a held key',
      access: { role: 'editor', sources: 'limited', subject: 'destination', whole: true },
      description:
        'If the key waits, the delivery that it waits for ends as `cancelled` with the reason `skipped_by_operator`; if it is being attempted, when the attempt is over, unless that succeeds. If the key is held, it is released, and no delivery changes. Either way, the next message of the key is sent.',
      body: ACTION,
      answer: ACTION_ANSWER,
      errors: ERRORS,
      async handle({ params, body, actor }) {
        const destination = destinationOf(store, params['id'])
        return answerOf(await store.order.skip(destination.id, body.key, body.messageId, entry(actor, 'order.skip', destination)))
      },
    }),
    route('POST', '/destinations/:id/order/retry', {
      summary: 'Attempt the message that a key waits for at once',
      access: { role: 'editor', sources: 'limited', subject: 'destination', whole: true },
      description:
        'If the key waits, the next attempt is due now. If the key is held, its message is put back at the head of the key, as by `POST /api/deliveries/{id}/replay` with `resume`. Nothing is sent while the destination is disabled, paused, or its circuit breaker is open.',
      body: ACTION,
      answer: ACTION_ANSWER,
      errors: [...ERRORS, 'holds_no_key', 'message_gone', 'destination_gone'],
      async handle({ params, body, actor }) {
        const destination = destinationOf(store, params['id'])
        const audit = entry(actor, 'order.retry', destination)
        const result = await store.order.retryNow(destination.id, body.key, body.messageId, audit)
        if (!result.ok || result.state === 'waiting') return answerOf(result)
        const resumed = await store.replays.replay(result.deliveryId, undefined, { resume: true })
        if (!resumed.ok) {
          const { reason } = resumed
          throw new ApiError(reason === 'message_gone' || reason === 'destination_gone' ? reason : 'holds_no_key')
        }
        return { deliveryId: resumed.deliveryId, state: result.state, done: true }
      },
    }),
  ]
}

/** The counts of whole hours are kept for long, and are the same on all nodes. */
async function keylessOf({ books }: Store, subject: string, nowMs: number): Promise<number> {
  const fromMs = Math.floor((nowMs - KEYLESS_HOURS * HOUR_MS) / HOUR_MS) * HOUR_MS
  const toMs = Math.ceil((nowMs + 1) / HOUR_MS) * HOUR_MS
  const points = await books.stats({ kind: 'destination', subject, fromMs, toMs, stepMs: HOUR_MS })
  return points.reduce((sum, { counts }) => sum + countOf(counts, 'keyless'), 0)
}

function destinationOf(store: Store, id: string | undefined): Destination {
  const destination = store.configuration().destinations.get(id ?? '')
  if (destination === undefined) throw new ApiError('destination_not_found')
  return destination
}

function entry(actor: Actor, action: string, { id, sourceIds }: Destination): NewAuditEntry {
  return { actor, action, subject: id, before: null, after: null, sources: sourceIds.length === 0 ? null : sourceIds }
}

function answerOf(result: KeyActionResult) {
  if (!result.ok) throw new ApiError(REFUSED[result.reason])
  const { deliveryId, state, isOver } = result
  return { deliveryId, state, done: isOver }
}

function keyView({ head, sinceMs, ...key }: OrderedKey, clock: Clock) {
  const { dueAtMs, reason, ...rest } = head
  const nextAttemptAt = dueAtMs === null || dueAtMs <= clock.scheduleMs() ? null : dueTime(clock, dueAtMs)
  return { ...key, since: sinceMs, head: { ...rest, reason, reasonSentence: reason && reasonSentence(reason), nextAttemptAt } }
}
