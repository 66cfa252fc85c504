// The route for violations of tracking plans: which rule, which property, how often, and in which messages. They are counted in the background.

import { VIOLATION_CODES } from '@switchyard/protocol'
import { array, integer, nullable, object, oneOf, optional, string, time } from '../../api/schema.ts'
import { countsUntil, DAY_MS, HOUR_MS } from '../../observe/event-catalog/event-documents.ts'
import { partsOfKey, VIOLATION, type ViolationCounts, violationsOfPlan } from '../../observe/violations/violation-documents.ts'
import type { StoredDocument } from '../../store/store.ts'
import { listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const HOURS_SHOWN = 24
const DAYS_SHOWN = 30

export const VIOLATION_FIELDS = {
  rule: string({ description: 'The rule: the type and, for `track`, the name of the event.' }),
  code: oneOf(VIOLATION_CODES, { description: 'What is wrong, as a stable code.' }),
  path: string({ description: 'Where in the message, for example `properties.total`.' }),
  expected: string({ description: 'What the plan expects, in words.' }),
  found: string({ description: 'What the message has, in words. Never the value itself.' }),
}
const COUNTED = object(
  {
    planId: string(),
    sourceId: string(),
    violation: nullable(
      object({
        ...VIOLATION_FIELDS,
        path: string({ description: 'Where in the message, with `*` for the index of an element: `properties.products.*.price`.' }),
      }),
    ),
    total: integer({ description: 'The number of messages.' }),
    firstSeen: time(),
    lastSeen: time(),
    hours: array(integer(), { description: `The number of messages in each of the last ${HOURS_SHOWN} hours, oldest first.` }),
    days: array(integer(), { description: `The number of messages on each of the last ${DAYS_SHOWN} days (UTC), oldest first.` }),
    messageIds: array(string(), { description: 'The messageIds of the newest messages, at most 10.' }),
  },
  {
    title: 'CountedViolation',
    description:
      'How messages differ from a tracking plan, and how often. `violation` is null for those beyond the first 1,000 of a source, which are counted together.',
  },
)
const ANSWER = object({
  data: array(COUNTED),
  next: nullable(string({ description: 'The `cursor` for the next page; null on the last page.' })),
  faults: array(object({ planId: string(), rule: string(), message: string() }), {
    description: 'Rules that this node could not apply. Their messages count as valid.',
  }),
})
const QUERY = listQuery({
  sourceId: optional(string({ min: 1, description: 'Only violations by messages of this source.' })),
  source: optional(string({ min: 1, description: 'The older name of `sourceId`.' })),
  plan: optional(string({ min: 1, description: 'Only violations of the plan with this id.' })),
})

export function violationRoutes({ store, clock, planFaults = () => [], flushViolations = async () => {} }: ControlParts): Route[] {
  return [
    route('GET', '/violations', {
      summary: 'List violations of tracking plans, newest first',
      access: { role: 'viewer', sources: 'limited' },
      description: 'Violations are kept for 90 days, as long as their plan and their source exist.',
      query: QUERY,
      answer: ANSWER,
      async handle({ query }) {
        await flushViolations()
        const { limit, cursor } = pageRequest('violations', query)
        const { plans, sources } = store.configuration()
        const { source, sourceId = source } = query
        const planId = query.plan ?? [...plans.values()].find(({ sourceIds }) => sourceIds.includes(sourceId ?? ''))?.id
        const shown = planId === undefined ? [...plans.keys()] : [planId]
        const faults = shown.flatMap((id) => planFaults(id).map(({ rule, message }) => ({ planId: id, rule, message })))
        // Nothing is stored for others, and their ids may contain what the store cannot compare with.
        const isKnown =
          (planId === undefined || plans.has(planId)) && (sourceId === undefined || (planId !== undefined && sources.has(sourceId)))
        if (!isKnown) return { data: [], next: null, faults }
        const [, afterMs, key = ''] = /^(\d+) (.*)$/s.exec(cursor ?? '') ?? []
        const found = await store.documents.list(VIOLATION, {
          prefix: planId === undefined ? '' : violationsOfPlan(planId, sourceId),
          order: 'newest',
          after: afterMs === undefined ? undefined : { key, atMs: Number(afterMs) },
          limit: limit + 1,
        })
        const data = found.slice(0, limit)
        const last = data.at(-1)
        const next = found.length > limit && last !== undefined ? `${last.atMs} ${last.key}` : null
        // The document of other violations also counts the documents, and may have no violations.
        const seen = data.filter(({ doc }) => (doc as ViolationCounts).total > 0)
        return { ...pageAnswer('violations', { data: seen, next }, (stored) => countedView(stored, clock.wallMs())), faults }
      },
    }),
  ]
}

function countedView({ key, doc }: StoredDocument, nowMs: number) {
  const counts = doc as ViolationCounts
  const { firstMs, lastMs, hours, days } = counts
  return {
    ...counts,
    ...partsOfKey(key),
    firstSeen: firstMs,
    lastSeen: lastMs,
    hours: countsUntil(hours, Math.floor(nowMs / HOUR_MS), HOURS_SHOWN),
    days: countsUntil(days, Math.floor(nowMs / DAY_MS), DAYS_SHOWN),
  }
}
