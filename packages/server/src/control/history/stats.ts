// Counts over time, as series with fixed steps; steps in which nothing happened are included. The series of a source has the incoming
// messages, the series of a destination has the deliveries, and the series of the whole installation has both.

import { isoTime, parseTime } from '@switchyard/protocol'
import { queryTime } from '../../api/query-values.ts'
import {
  array,
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
import { countOf, latencyOf, rejectedByCode, type StatCounts, warningsByCode } from '../../store/port/stat-counts.ts'
import type { StatKind } from '../../store/store.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const STEPS_MS = { '1m': 60_000, '5m': 300_000, '1h': 3_600_000, '1d': 86_400_000 } as const
type Step = keyof typeof STEPS_MS
const STEPS = Object.keys(STEPS_MS) as Step[]

const MAX_POINTS = 2_000
const DEFAULT_POINTS = 60

const STATS_QUERY = object({
  sourceId: optional(string({ max: 100, description: 'Counts of messages from this source.' })),
  destinationId: optional(string({ max: 100, description: 'Counts of deliveries to this destination.' })),
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
})

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
}
const OUTGOING = {
  attempts: optional(integer({ description: 'The number of requests that were sent.' })),
  delivered: optional(integer()),
  failed: optional(integer()),
  expired: optional(integer()),
  cancelled: optional(integer()),
  retried: optional(integer({ description: 'How often a delivery was scheduled for another attempt.' })),
  latencyMs: optional(nullable(PERCENTILES)),
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

export function statsRoutes({ store, clock, flushStats }: ControlParts): Route[] {
  return [
    route('GET', '/stats', {
      summary: 'Retrieve counts over time',
      access: { role: 'viewer', sources: 'limited' },
      description:
        'Returns a series for one source, for one destination, or for the whole installation. Steps in which nothing happened are included.',
      query: STATS_QUERY,
      answer: STATS_ANSWER,
      errors: ['source_not_found', 'destination_not_found', 'shared_destination'],
      async handle({ query: { sourceId, destinationId, from, to, step } }) {
        const { kind, subject } = subjectOf(store.configuration(), sourceId, destinationId)
        const stepMs = STEPS_MS[step]
        const { fromMs, toMs } = period(from, to ?? clock.wallMs(), stepMs)
        await flushStats?.()
        const points = await store.books.stats({ kind, subject, fromMs, toMs, stepMs })
        const counted = new Map(points.map(({ atMs, counts }) => [atMs, counts]))
        const data = Array.from({ length: (toMs - fromMs) / stepMs }, (_, index) => {
          const atMs = fromMs + index * stepMs
          return point(kind, atMs, counted.get(atMs) ?? {})
        })
        return { data, from: isoTime(fromMs), to: isoTime(toMs), step, next: null }
      },
    }),
  ]
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
function period(from: number | undefined, to: number, stepMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.ceil(to / stepMs) * stepMs
  const fromMs = from === undefined ? toMs - DEFAULT_POINTS * stepMs : Math.floor(from / stepMs) * stepMs
  if (fromMs >= toMs) throw invalidField('from', 'must be before to')
  // Rounding can extend the period beyond the range of times that ISO 8601 can express.
  if (parseTime(fromMs) === undefined || parseTime(toMs) === undefined)
    throw invalidField('to', 'is too far in the past or future. Choose a period closer to the current time')
  const points = (toMs - fromMs) / stepMs
  if (points > MAX_POINTS)
    throw invalidField(
      'step',
      `results in ${points} points for this period, and the maximum is ${MAX_POINTS}. Choose a larger step or a shorter period`,
    )
  return { fromMs, toMs }
}

function point(kind: StatKind, atMs: number, counts: StatCounts): object {
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
        }),
    ...(kind === 'source'
      ? {}
      : {
          attempts: countOf(counts, 'attempts'),
          delivered: countOf(counts, 'delivered'),
          failed: countOf(counts, 'failed'),
          expired: countOf(counts, 'expired'),
          cancelled: countOf(counts, 'cancelled'),
          retried: countOf(counts, 'retried'),
          latencyMs: latencyOf(counts),
        }),
  }
}
