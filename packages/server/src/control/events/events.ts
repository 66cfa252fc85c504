// Routes for the event catalogue: the events of all sources with their counts, and one event with its properties and the destinations that receive it. Counts come
// from documents that the service keeps; sample values and destinations come from retained messages, when somebody asks.

import { type JsonObject, MESSAGE_TYPES, ruleKey } from '@switchyard/protocol'
import { array, integer, nullable, number, object, oneOf, optional, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import {
  countsUntil,
  DAY_MS,
  DAYS_KEPT,
  EVENT_COUNTS,
  EVENT_PROPERTIES,
  type EventCounts,
  type EventProperties,
  eventKeyPrefix,
  HOUR_MS,
  HOURS_KEPT,
  isOtherEvents,
  type StoredProperty,
  sourceOfKey,
  sum,
  sumUntil,
} from '../../observe/event-catalog/event-documents.ts'
import { eachProperty, VALUE_TYPES } from '../../observe/event-catalog/event-properties.ts'
import { type Configuration, FILTER_RULES, type Store, type StoredDocument, type StoredMessage } from '../../store/store.ts'
import { skipSentence } from '../history/timeline.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

/** A list reads at most this many events, those that were seen last. */
const MAX_READ = 20_000
const READ_AT_ONCE = 500
const SPARKLINE_HOURS = 24
const RECENT_MESSAGES = 50
/** A message is stored a moment after the time at which it was received. */
const STORED_WITHIN_MS = 60_000
const SAMPLES_PER_PROPERTY = 5
const SAMPLE_CHARACTERS = 100

const FIELDS = {
  id: string({ description: 'The id of the event in the event catalogue.' }),
  sourceId: string(),
  sourceName: string(),
  type: nullable(
    oneOf(MESSAGE_TYPES, {
      description:
        'The type of the messages. Null for the entry that counts other events: those that exceed the limit of 10,000 events per source, and those whose name is longer than 200 characters.',
    }),
  ),
  event: nullable(string({ description: 'The name of the event, if the type is track; otherwise null.' })),
  firstSeen: time(),
  lastSeen: time(),
  total: integer({ description: 'The number of messages since the event was first seen.' }),
  lastDay: integer({ description: 'The number of messages in the last 24 hours, including the current hour.' }),
  lastWeek: integer({ description: 'The number of messages in the last 7 days, including the current hour.' }),
}
const POINTS = array(object({ at: time({ description: 'The start of the hour or day, in UTC.' }), count: integer() }))
const EVENT = object({
  ...FIELDS,
  hours: array(integer(), {
    description: 'The number of messages in each of the last 24 hours, oldest first. The last one is the current hour.',
  }),
})
const PROPERTY = object({
  path: string({
    description:
      'The name of the property; `address.city` is a property of the object `address`, `products[].price` of the first element of the array `products`.',
  }),
  types: array(
    object({ type: oneOf(VALUE_TYPES), share: number({ description: 'The share of the values that have this type, from 0 to 1.' }) }),
    {
      description: 'The JSON types of the values, the most frequent first.',
    },
  ),
  presence: number({ description: 'The share of the examined messages that have the property, from 0 to 1.' }),
  firstSeen: time(),
  lastSeen: time(),
  samples: array(string(), { description: 'Values from recent messages, as JSON. Long values are truncated.' }),
})
const RECEIVER = object({
  destinationId: string(),
  destinationName: string(),
  sent: integer({ description: 'How many of the recent messages are sent to the destination.' }),
  skips: array(
    object({
      reason: string({ description: 'The reason, as a stable code.' }),
      rule: nullable(oneOf(FILTER_RULES, { description: 'If the reason is `filtered`: the rule that excluded the messages.' })),
      message: string({ description: 'The reason as a sentence, for display.' }),
      count: integer({ description: 'How many of the recent messages are skipped for this reason.' }),
    }),
  ),
})
const EVENT_DETAIL = object({
  ...FIELDS,
  hours: POINTS,
  days: POINTS,
  examined: integer({
    description:
      'The number of messages whose properties were examined: a sample. When it reaches 10,000, all counts of properties are halved, so that shares describe recent messages.',
  }),
  properties: array(PROPERTY, { description: 'The properties or traits, the most frequent first. At most 200.' }),
  otherProperties: integer({
    description: 'The number of examined values that are not listed, because there are too many properties or the name is too long.',
  }),
  recentMessages: integer({
    description: 'The number of retained messages, at most 50, from which `samples` and `destinations` were derived.',
  }),
  destinations: array(RECEIVER, {
    description:
      'The destinations that are attached to the source, and how many of the recent messages they get by their current settings. Empty if no message is retained.',
  }),
  plan: nullable(
    object(
      {
        id: string(),
        name: string(),
        rule: nullable(
          object({
            mode: string(),
            description: nullable(string()),
            owner: nullable(string()),
          }),
        ),
      },
      {
        description:
          'The tracking plan of the source, with its rule for this event; the rule is null if the plan has none. Null if the source has no plan.',
      },
    ),
  ),
})

const EVENT_ID = /^[\w-]+\.[\w-]+$/
const ORDERS = ['count', 'lastSeen'] as const

interface Ranked {
  key: string
  counts: EventCounts
  /** What the list is ordered by, the greatest first. */
  rank: number
}

export function eventRoutes(parts: ControlParts): Route[] {
  return [listRoute(parts), detailRoute(parts)]
}

function listRoute({ store, clock, flushEvents }: ControlParts): Route {
  return route('GET', '/events', {
    summary: 'List the events of the event catalogue',
    access: { role: 'viewer', sources: 'limited' },
    description:
      'An event is a source, a message type and, for track, the name of the event. Events that were not seen for 90 days are left out. If there are very many events, only the 20,000 that were seen last are searched.',
    query: listQuery({
      q: optional(string({ min: 1, max: 200, description: 'Only events whose name or type contains this text, in upper or lower case.' })),
      type: optional(oneOf(MESSAGE_TYPES, { description: 'Only events of this type.' })),
      sourceId: optional(string({ max: 100, description: 'Only events of this source.' })),
      order: withDefault(
        oneOf(ORDERS, { description: '`count`: the most frequent in the last 7 days first. `lastSeen`: the latest first.' }),
        'count',
      ),
    }),
    answer: listAnswer(EVENT),
    errors: ['source_not_found'],
    async handle({ query }) {
      const { sourceId, order } = query
      const { sources } = store.configuration()
      if (sourceId !== undefined && !sources.has(sourceId)) throw new ApiError('source_not_found')
      await flushEvents?.()
      const nowHour = Math.floor(clock.wallMs() / HOUR_MS)
      const ranked = await rankedEvents(store, query, nowHour)
      const name = `events ${order}`
      const { limit, cursor } = pageRequest(name, query)
      const [, afterRank, afterKey = ''] = /^(\d+) (.*)$/.exec(cursor ?? '') ?? []
      const rest =
        afterRank === undefined
          ? ranked
          : ranked.filter(({ key, rank }) => rank < Number(afterRank) || (rank === Number(afterRank) && key > afterKey))
      const data = rest.slice(0, limit)
      const last = data.at(-1)
      const next = rest.length > limit && last !== undefined ? `${last.rank} ${last.key}` : null
      return pageAnswer(name, { data, next }, ({ key, counts }) => ({
        ...countsView(store.configuration(), key, counts, nowHour),
        hours: countsUntil(counts.hours, nowHour, SPARKLINE_HOURS),
      }))
    },
  })
}

function detailRoute({ store, clock, route: routeMessages, flushEvents }: ControlParts): Route {
  return route('GET', '/events/:id', {
    summary: 'Retrieve an event of the event catalogue',
    access: { role: 'viewer', sources: 'limited', subject: 'event' },
    description:
      'Returns the counts of the event, its properties with types and sample values, the destinations that receive it, and its rule in the tracking plan of the source.',
    answer: EVENT_DETAIL,
    errors: ['event_not_found'],
    async handle({ params }) {
      const key = params['id'] ?? ''
      const configuration = store.configuration()
      const sourceId = sourceOfKey(key)
      if (!EVENT_ID.test(key) || !configuration.sources.has(sourceId)) throw new ApiError('event_not_found')
      await flushEvents?.()
      const counts = (await store.documents.get(EVENT_COUNTS, key))?.doc as EventCounts | undefined
      if (counts === undefined) throw new ApiError('event_not_found')
      const examined = ((await store.documents.get(EVENT_PROPERTIES, key))?.doc as EventProperties | undefined) ?? NONE_EXAMINED
      const messages = isOtherEvents(key) ? [] : await recentMessages(store, sourceId, counts)
      const nowMs = clock.wallMs()
      const samples = samplesOf(messages)
      return {
        ...countsView(configuration, key, counts, Math.floor(nowMs / HOUR_MS)),
        hours: points(counts.hours, nowMs, HOUR_MS, HOURS_KEPT),
        days: points(counts.days, nowMs, DAY_MS, DAYS_KEPT),
        examined: examined.examined,
        properties: [...examined.properties]
          .sort((a, b) => sum(b[3]) - sum(a[3]))
          .map((property) => propertyView(property, examined.examined, samples.get(property[0]))),
        otherProperties: examined.other,
        recentMessages: messages.length,
        destinations: routeMessages === undefined ? [] : receiversOf(configuration, sourceId, messages, routeMessages),
        plan: planView(configuration, sourceId, counts),
      }
    },
  })
}

/** The events that the query asks for, in its order. */
async function rankedEvents(
  store: Store,
  { q, type, sourceId, order }: { q?: string; type?: string; sourceId?: string; order: (typeof ORDERS)[number] },
  nowHour: number,
): Promise<Ranked[]> {
  const { sources } = store.configuration()
  const text = q?.toLowerCase()
  const isWanted = ({ event: own, type: ownType, total }: EventCounts): boolean =>
    total > 0 && (type === undefined || ownType === type) && (text === undefined || (own ?? ownType ?? '').toLowerCase().includes(text))
  const ranked: Ranked[] = []
  for await (const page of pages(store, sourceId === undefined ? undefined : eventKeyPrefix(sourceId))) {
    for (const { key, doc } of page) {
      const counts = doc as EventCounts
      if (!isWanted(counts) || !sources.has(sourceOfKey(key))) continue
      ranked.push({ key, counts, rank: order === 'count' ? sumUntil(counts.hours, nowHour, HOURS_KEPT) : counts.lastMs })
    }
  }
  ranked.sort((a, b) => b.rank - a.rank || (a.key < b.key ? -1 : 1))
  return ranked
}

/** Those that were seen last come first. */
async function* pages(store: Store, prefix: string | undefined): AsyncGenerator<StoredDocument[]> {
  let after: StoredDocument | undefined
  for (let read = 0; read < MAX_READ; read += READ_AT_ONCE) {
    const scope = prefix === undefined ? {} : { prefix }
    const page = await store.documents.list(EVENT_COUNTS, { ...scope, order: 'newest', after, limit: READ_AT_ONCE })
    yield page
    after = page.at(-1)
    if (page.length < READ_AT_ONCE) return
  }
}

async function recentMessages(store: Store, sourceId: string, { type, event, lastMs }: EventCounts): Promise<StoredMessage[]> {
  const filter = { sourceId, type: type ?? undefined, event: event ?? undefined, toMs: lastMs + STORED_WITHIN_MS }
  return (await store.history.messages(filter, { limit: RECENT_MESSAGES, cursor: null })).data
}

const NONE_EXAMINED: EventProperties = { examined: 0, properties: [], other: 0 }

function countsView({ sources }: Configuration, key: string, counts: EventCounts, nowHour: number) {
  const sourceId = sourceOfKey(key)
  return {
    ...counts,
    id: key,
    sourceId,
    sourceName: sources.get(sourceId)?.name ?? sourceId,
    firstSeen: counts.firstMs,
    lastSeen: counts.lastMs,
    lastDay: sumUntil(counts.hours, nowHour, SPARKLINE_HOURS),
    lastWeek: sumUntil(counts.hours, nowHour, HOURS_KEPT),
  }
}

function points(window: EventCounts['hours'], nowMs: number, stepMs: number, size: number) {
  const last = Math.floor(nowMs / stepMs)
  return countsUntil(window, last, size).map((count, at) => ({ at: (last - size + 1 + at) * stepMs, count }))
}

function propertyView([path, firstMs, lastMs, counts]: StoredProperty, examined: number, samples: ReadonlySet<string> | undefined) {
  const values = sum(counts)
  return {
    path,
    types: VALUE_TYPES.map((type, at) => ({ type, share: share(counts[at] ?? 0, values) }))
      .filter((one) => one.share > 0)
      .sort((a, b) => b.share - a.share),
    presence: share(values, examined),
    firstSeen: firstMs,
    lastSeen: lastMs,
    samples: [...(samples ?? [])],
  }
}

/** With four digits. At most 1: halved counts are rounded up. */
function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(1, Math.round((part / whole) * 10_000) / 10_000)
}

/** Different values of each property, newest first. Objects are left out, because their properties are listed. */
function samplesOf(messages: readonly StoredMessage[]): Map<string, Set<string>> {
  const samples = new Map<string, Set<string>>()
  for (const { content, index } of messages) {
    eachProperty(content.items[index] ?? {}, (path, value) => {
      const known = samples.get(path) ?? new Set()
      if (known.size >= SAMPLES_PER_PROPERTY || (typeof value === 'object' && value !== null && !Array.isArray(value))) return
      const json = JSON.stringify(value)
      samples.set(path, known.add(json.length > SAMPLE_CHARACTERS ? `${json.slice(0, SAMPLE_CHARACTERS)}…` : json))
    })
  }
  return samples
}

function receiversOf(
  configuration: Configuration,
  sourceId: string,
  messages: readonly StoredMessage[],
  routeMessages: NonNullable<ControlParts['route']>,
) {
  const attached = [...configuration.destinations.values()].filter(({ sourceIds }) => sourceIds.includes(sourceId))
  const receivers = new Map(
    attached.map(({ id, name, subscribe }) => [id, { name, subscribe, sent: 0, skips: new Map<string, SkipCount>() }]),
  )
  for (const { content, index } of messages) {
    const item: JsonObject | null = content.items[index] ?? null
    const { shipments, skips } = routeMessages(configuration, sourceId, { ...content, items: [item] })
    for (const { destinationId } of shipments) {
      const receiver = receivers.get(destinationId)
      if (receiver !== undefined) receiver.sent++
    }
    for (const { destinationId, reason, rule = null } of skips) {
      const receiver = receivers.get(destinationId ?? '')
      const key = `${reason} ${rule}`
      const message = skipSentence({ reason, ...(rule === null ? {} : { rule }) }, item, receiver?.subscribe)
      const skip = receiver?.skips.get(key) ?? { reason, rule, message, count: 0 }
      receiver?.skips.set(key, { ...skip, count: skip.count + 1 })
    }
  }
  if (messages.length === 0) return []
  return [...receivers].map(([destinationId, { name, sent, skips }]) => ({
    destinationId,
    destinationName: name,
    sent,
    skips: [...skips.values()],
  }))
}

interface SkipCount {
  reason: string
  rule: (typeof FILTER_RULES)[number] | null
  message: string
  count: number
}

function planView({ plans }: Configuration, sourceId: string, { type, event }: EventCounts) {
  const plan = [...plans.values()].find(({ sourceIds }) => sourceIds.includes(sourceId))
  if (plan === undefined) return null
  const rule = type === null ? undefined : plan.rules.find((one) => ruleKey(one.type, one.event) === ruleKey(type, event ?? undefined))
  const shown = rule && { mode: rule.mode, description: rule.description ?? null, owner: rule.owner ?? null }
  return { id: plan.id, name: plan.name, rule: shown ?? null }
}
