// Why deliveries of one group failed: the newest of them by the reason of their last attempt and the start of the answer. So expired deliveries are
// told apart, whose own reason only says that the retry window ended, and the answers explain what a receiver does not accept.

import { statusOfReason } from '../../api/attempt-reasons.ts'
import { DELIVERY_FILTERS } from '../../api/list-filters.ts'
import { array, integer, nullable, object, oneOf, string } from '../../api/schema.ts'
import type { DeliveryFilter, Store } from '../../store/store.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { reasonSentence } from './reasons.ts'
import { Turns } from './turns.ts'

/** Each costs a few small reads. */
const MOST_EXAMINED = 50
const SHOWN_CHARACTERS = 300
/** The details of a delivery may be large: those of a big batch are up to 32 MB. So requests take turns, and each ends after this time. */
const LIMIT_MS = 2_000
const turns = new Turns()

const FILTERS = {
  destinationId: string({ min: 1, description: 'The destination.' }),
  state: oneOf(['failed', 'expired'], { description: 'The state of the deliveries.' }),
  reason: DELIVERY_FILTERS.reason,
  from: DELIVERY_FILTERS.from,
  to: DELIVERY_FILTERS.to,
}
const ANSWERS = object({
  data: array(
    object({
      reason: nullable(string({ description: 'The reason of the last attempt; null if no attempt was made.' })),
      status: nullable(integer({ description: 'The HTTP status of the answer, if that is the reason.' })),
      sentence: string({ description: 'The reason as a sentence.' }),
      responseStart: nullable(
        string({ description: 'The start of the answer, which all deliveries of this entry got; null without an answer.' }),
      ),
      count: integer({ description: 'The number of examined deliveries with this reason and answer.' }),
      deliveryId: string({ description: 'The newest of them.' }),
    }),
    { description: 'The most frequent first.' },
  ),
  examined: integer({ description: `The number of deliveries that were examined: the newest, at most ${MOST_EXAMINED}.` }),
})

interface Answer {
  reason: string | null
  status: number | null
  sentence: string
  responseStart: string | null
  count: number
  deliveryId: string
}

export function answerRoutes({ store }: ControlParts): Route[] {
  return [
    route('GET', '/deliveries/answers', {
      summary: 'List why deliveries failed or expired: the distinct answers to their last attempts',
      access: { role: 'viewer', sources: 'limited' },
      description: `Examines the newest ${MOST_EXAMINED} deliveries that match.`,
      query: object(FILTERS),
      answer: ANSWERS,
      async handle({ query }) {
        const { destinationId, state, reason, from: fromMs, to: toMs } = query
        const filter = { destinationId, state, reason, fromMs, toMs }
        return turns.run(() => readAnswers(store, filter))
      },
    }),
  ]
}

async function readAnswers({ history }: Pick<Store, 'history'>, filter: DeliveryFilter) {
  const untilMs = performance.now() + LIMIT_MS
  const { data: rows } = await history.deliveries(filter, { limit: MOST_EXAMINED, cursor: null })
  const found = new Map<string, Answer>()
  let examined = 0
  for (const { id } of rows) {
    if (examined > 0 && performance.now() > untilMs) break
    examined++
    const detail = await history.delivery(id)
    // It may have been deleted in the meantime.
    if (detail === undefined) continue
    const failures = detail.history.filter((attempt) => attempt.reason !== null)
    const last = failures.at(-1)
    const responseStart = last?.responseStart?.slice(0, SHOWN_CHARACTERS) ?? null
    const why = last?.reason ?? null
    const key = JSON.stringify([why, responseStart])
    const known = found.get(key)
    if (known !== undefined) known.count++
    else {
      const sentence = why === null ? reasonSentence(detail.reason) : reasonSentence(why)
      found.set(key, { reason: why, status: statusOfReason(why), sentence, responseStart, count: 1, deliveryId: id })
    }
  }
  return { data: [...found.values()].sort((a, b) => b.count - a.count), examined }
}
