// Counts over time, as series with fixed steps; steps in which nothing happened are included. The series of a source has the incoming
// messages, the series of a destination has the deliveries, and the series of the whole installation has both. For pages that show all
// sources or destinations at once, one request returns a short series of each.

import { isoTime, parseTime } from '@switchyard/protocol'
import { queryTime } from '../../api/query-values.ts'
import {
  array,
  type Infer,
  integer,
  invalidField,
  nullable,
  number,
  object,
  oneOf,
  optional,
  record,
  string,
  time,
  withDefault,
} from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import {
  addCounts,
  bySource,
  countOf,
  latencyHistogram,
  latencyOf,
  OLDEST_SECONDS,
  PENDING,
  rejectedByCode,
  type StatCounts,
  skippedByReason,
  warningsByCode,
} from '../../store/port/stat-counts.ts'
import type { StatKind } from '../../store/store.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const STEPS_MS = { '1m': 60_000, '5m': 300_000, '1h': 3_600_000, '1d': 86_400_000 } as const
type Step = keyof typeof STEPS_MS
const STEPS = Object.keys(STEPS_MS) as Step[]

const MAX_POINTS = 2_000
/** For the series of all sources or destinations at once. */
const MAX_POINTS_OF_EACH = 100
const DEFAULT_POINTS = 60

const PERIOD_FIELDS = {
  from: optional(queryTime({ description: `The start of the period. Default: ${DEFAULT_POINTS} steps before the end.` })),
  to: optional(
    queryTime({ description: 'The end of the period. Default: the current time. A step that begins at this time is not included.' }),
  ),
  step: withDefault(
    oneOf(STEPS, {
      description:
        'The length of a step. Counts per minute are kept as long as messages. Counts per hour and per day are kept for 90 days. Older steps have the value 0.',
    }),
    '1m',
  ),
}

const STATS_QUERY = object({
  sourceId: optional(string({ max: 100, description: 'Counts of messages from this source.' })),
  destinationId: optional(string({ max: 100, description: 'Counts of deliveries to this destination.' })),
  ...PERIOD_FIELDS,
  latency: optional(
    oneOf(['histogram'], { description: 'If `histogram`, each step also says how many attempts took how long, for a heat map.' }),
  ),
})
const EACH_QUERY = object(PERIOD_FIELDS)

const PERCENTILES = object({ p50: number(), p95: number(), p99: number() })

const INCOMING = {
  accepted: optional(integer()),
  duplicates: optional(integer()),
  rejected: optional(record(integer(), { description: 'The number of rejected messages, by error code.' })),
  warnings: optional(
    record(integer(), {
      description:
        'The number of accepted messages with a value that was ignored or is probably wrong, such as a timestamp that is not valid, by code.',
    }),
  ),
  suppressed: optional(integer()),
  quarantined: optional(integer({ description: 'Accepted messages that were put into quarantine. They are also counted as accepted.' })),
  skipped: optional(
    record(integer(), {
      description:
        'How many messages a destination was not sent, by reason, once for each destination: `filtered`, `integrations_disabled` (the message or the consent of its user excludes the destination), `historical`, `destination_disabled`.',
    }),
  ),
}
const OUTGOING = {
  owed: optional(
    integer({
      description: 'Deliveries that were created because messages were accepted. Replays and released messages are not included.',
    }),
  ),
  attempts: optional(integer({ description: 'The number of requests that were sent.' })),
  delivered: optional(integer()),
  failed: optional(integer()),
  expired: optional(integer()),
  cancelled: optional(integer()),
  retried: optional(integer({ description: 'How often a delivery was scheduled for another attempt.' })),
  latencyMs: optional(nullable(PERCENTILES)),
  latencyHistogram: optional(
    array(
      object({
        upToMs: number({ description: 'The longest duration of the group; the next group begins at it.' }),
        count: integer(),
      }),
      { description: 'Only with `latency=histogram`.' },
    ),
  ),
  pending: optional(integer({ description: 'The largest number of pending deliveries. It is read once a minute.' })),
  oldestPendingMs: optional(integer({ description: 'The largest age of the oldest pending delivery, in milliseconds.' })),
}

const STATS_ANSWER = object({
  data: array(
    object(
      { at: time({ description: 'The start of the step.' }), ...INCOMING, ...OUTGOING },
      { description: 'The series of a source has only the counts of messages, the series of a destination only the counts of deliveries.' },
    ),
  ),
  from: time(),
  to: time({ description: 'The end of the period, which is not included.' }),
  step: oneOf(STEPS),
  next: nullable(string({ description: 'Always null: the series is complete.' })),
})

const SERIES = { from: time(), to: time({ description: 'The end of the period, which is not included.' }), step: oneOf(STEPS) }
const NUMBERS = array(integer())
const NEXT = nullable(string({ description: 'Always null: the list is complete.' }))

const SOURCES_ANSWER = object({
  data: array(
    object({
      sourceId: string(),
      accepted: integer(),
      duplicates: integer(),
      rejected: integer(),
      suppressed: integer(),
      quarantined: integer(),
      series: object({ accepted: NUMBERS, rejected: NUMBERS }, { description: 'The counts of each step.' }),
    }),
  ),
  ...SERIES,
  next: NEXT,
})
const DESTINATIONS_ANSWER = object({
  data: array(
    object({
      destinationId: string(),
      owed: integer(),
      delivered: integer(),
      failed: integer(),
      expired: integer(),
      cancelled: integer(),
      retried: integer(),
      owedBySource: record(integer(), {
        description:
          'Of `owed`, how many deliveries were created because of which source, by its id. Only with a step of less than an hour.',
      }),
      series: object({ delivered: NUMBERS, unsuccessful: NUMBERS }, { description: 'The counts of each step.' }),
    }),
  ),
  ...SERIES,
  next: NEXT,
})

export function statsRoutes(parts: ControlParts): Route[] {
  return [seriesRoute(parts), ...eachRoutes(parts)]
}

function seriesRoute({ store, clock, flushStats }: ControlParts): Route {
  return route('GET', '/stats', {
    summary: 'Retrieve counts over time',
    access: { role: 'viewer', sources: 'limited' },
    description:
      'Returns a series for one source, for one destination, or for the whole installation. Steps in which nothing happened are included.',
    query: STATS_QUERY,
    answer: STATS_ANSWER,
    errors: ['source_not_found', 'destination_not_found', 'shared_destination'],
    async handle({ query: { sourceId, destinationId, from, to, step, latency } }) {
      const { kind, subject } = subjectOf(store.configuration(), sourceId, destinationId)
      const stepMs = STEPS_MS[step]
      const { fromMs, toMs } = period(from, to ?? clock.wallMs(), stepMs, MAX_POINTS)
      await flushStats?.()
      const points = await store.books.stats({ kind, subject, fromMs, toMs, stepMs })
      const counted = new Map(points.map(({ atMs, counts }) => [atMs, counts]))
      const data = Array.from({ length: (toMs - fromMs) / stepMs }, (_, index) => {
        const atMs = fromMs + index * stepMs
        return point(kind, atMs, counted.get(atMs) ?? {}, latency === 'histogram')
      })
      return { data, from: isoTime(fromMs), to: isoTime(toMs), step, next: null }
    },
  })
}

function eachRoutes({ store, clock, flushStats }: ControlParts): Route[] {
  const readEach = async (kind: StatKind, subjects: readonly string[], { from, to, step }: Infer<typeof EACH_QUERY>) => {
    const stepMs = STEPS_MS[step]
    const { fromMs, toMs } = period(from, to ?? clock.wallMs(), stepMs, MAX_POINTS_OF_EACH)
    await flushStats?.()
    const found = await store.books.statsOf({ kind, subjects, fromMs, toMs, stepMs })
    const each = found.map(({ subject, points }) => {
      const total: StatCounts = {}
      for (const { counts } of points) addCounts(total, counts)
      const series = (of: (counts: StatCounts) => number): number[] => {
        const numbers = Array.from({ length: (toMs - fromMs) / stepMs }, () => 0)
        for (const { atMs, counts } of points) numbers[(atMs - fromMs) / stepMs] = of(counts)
        return numbers
      }
      return { subject, total, series }
    })
    return { each, shown: { from: isoTime(fromMs), to: isoTime(toMs), step, next: null } }
  }
  return [
    route('GET', '/stats/sources', {
      summary: 'Retrieve counts of every source over time',
      access: { role: 'viewer', sources: 'limited' },
      description: `Returns the totals of a period for every source that sent something in it, with a short series: at most ${MAX_POINTS_OF_EACH} steps.`,
      query: EACH_QUERY,
      answer: SOURCES_ANSWER,
      async handle({ query }) {
        const { each, shown } = await readEach('source', [...store.configuration().sources.keys()], query)
        const data = each.map(({ subject, total, series }) => ({
          sourceId: subject,
          accepted: countOf(total, 'accepted'),
          duplicates: countOf(total, 'duplicates'),
          rejected: rejectedIn(total),
          suppressed: countOf(total, 'suppressed'),
          quarantined: countOf(total, 'quarantined'),
          series: { accepted: series((counts) => countOf(counts, 'accepted')), rejected: series(rejectedIn) },
        }))
        return { data, ...shown }
      },
    }),
    route('GET', '/stats/destinations', {
      summary: 'Retrieve counts of every destination over time',
      access: { role: 'viewer', sources: 'limited' },
      description: `Returns the totals of a period for every destination with deliveries in it, with a short series: at most ${MAX_POINTS_OF_EACH} steps. If your access is limited to some sources, destinations that serve other sources, too, are left out.`,
      query: EACH_QUERY,
      answer: DESTINATIONS_ANSWER,
      async handle({ query }) {
        const { sources, destinations } = store.configuration()
        const { each, shown } = await readEach('destination', [...destinations.keys()], query)
        const data = each.map(({ subject, total, series }) => ({
          destinationId: subject,
          owed: countOf(total, 'owed'),
          delivered: countOf(total, 'delivered'),
          failed: countOf(total, 'failed'),
          expired: countOf(total, 'expired'),
          cancelled: countOf(total, 'cancelled'),
          retried: countOf(total, 'retried'),
          // Another source may have been attached within the period.
          owedBySource: Object.fromEntries(Object.entries(bySource(total)).filter(([id]) => sources.has(id))),
          series: {
            delivered: series((counts) => countOf(counts, 'delivered')),
            unsuccessful: series((counts) => countOf(counts, 'failed') + countOf(counts, 'expired') + countOf(counts, 'retried')),
          },
        }))
        return { data, ...shown }
      },
    }),
  ]
}

function rejectedIn(counts: StatCounts): number {
  return Object.values(rejectedByCode(counts)).reduce((sum, count) => sum + count, 0)
}

function subjectOf(
  { sources, destinations }: { sources: ReadonlyMap<string, unknown>; destinations: ReadonlyMap<string, unknown> },
  sourceId: string | undefined,
  destinationId: string | undefined,
): { kind: StatKind; subject: string } {
  if (sourceId !== undefined && destinationId !== undefined)
    throw invalidField('destinationId', 'cannot be combined with sourceId. Send only one of them')
  if (sourceId !== undefined) {
    if (!sources.has(sourceId)) throw new ApiError('source_not_found')
    return { kind: 'source', subject: sourceId }
  }
  if (destinationId === undefined) return { kind: 'all', subject: '' }
  if (!destinations.has(destinationId)) throw new ApiError('destination_not_found')
  return { kind: 'destination', subject: destinationId }
}

/** Rounds the period to whole steps: from the start of its first step to the end of its last. */
function period(from: number | undefined, to: number, stepMs: number, maxPoints: number): { fromMs: number; toMs: number } {
  const toMs = Math.ceil(to / stepMs) * stepMs
  const fromMs = from === undefined ? toMs - DEFAULT_POINTS * stepMs : Math.floor(from / stepMs) * stepMs
  if (fromMs >= toMs) throw invalidField('from', 'must be before to')
  // Rounding can extend the period beyond the range of times that ISO 8601 can express.
  if (parseTime(fromMs) === undefined || parseTime(toMs) === undefined)
    throw invalidField('to', 'is too far in the past or future. Choose a period closer to the current time')
  const points = (toMs - fromMs) / stepMs
  if (points > maxPoints)
    throw invalidField(
      'step',
      `results in ${points} points for this period, and the maximum is ${maxPoints}. Choose a larger step or a shorter period`,
    )
  return { fromMs, toMs }
}

function point(kind: StatKind, atMs: number, counts: StatCounts, withHistogram: boolean): object {
  return {
    at: isoTime(atMs),
    ...(kind === 'destination'
      ? {}
      : {
          accepted: countOf(counts, 'accepted'),
          duplicates: countOf(counts, 'duplicates'),
          rejected: rejectedByCode(counts),
          warnings: warningsByCode(counts),
          suppressed: countOf(counts, 'suppressed'),
          quarantined: countOf(counts, 'quarantined'),
          skipped: skippedByReason(counts),
        }),
    ...(kind === 'source'
      ? {}
      : {
          owed: countOf(counts, 'owed'),
          attempts: countOf(counts, 'attempts'),
          delivered: countOf(counts, 'delivered'),
          failed: countOf(counts, 'failed'),
          expired: countOf(counts, 'expired'),
          cancelled: countOf(counts, 'cancelled'),
          retried: countOf(counts, 'retried'),
          latencyMs: latencyOf(counts),
          ...(withHistogram ? { latencyHistogram: latencyHistogram(counts) } : {}),
          pending: countOf(counts, PENDING),
          oldestPendingMs: countOf(counts, OLDEST_SECONDS) * 1_000,
        }),
  }
}
