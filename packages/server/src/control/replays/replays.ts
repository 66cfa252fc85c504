// Replays of many deliveries as jobs: what they are made for, how far they have come, and stopping and going on. The
// store keeps a job and makes its steps; when they are made is the runner's knowledge (replay-runner.ts).

import { isoTime } from '@switchyard/protocol'
import {
  array,
  boolean,
  type Infer,
  integer,
  invalidField,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  string,
  time,
  withDefault,
} from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { FinalStateName, ReplayCount, ReplayJob, ReplayJobState, ReplaySelection, ReplaySkipReason } from '../../store/store.ts'
import { audited } from '../access/audit.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest, queryTime } from '../query.ts'
import { type ControlParts, type Route, route } from '../route.ts'

const JOB_STATES = ['running', 'paused', 'finished', 'cancelled'] as const satisfies readonly ReplayJobState[]
const STATES = ['failed', 'expired', 'cancelled', 'delivered'] as const satisfies readonly FinalStateName[]
const USUAL_STATES = ['failed', 'expired'] as const
const MAX_NAMED = 1_000

const RATE = nullable(
  integer({ min: 1, max: 100_000, description: 'Most deliveries per second; null: as fast as the destinations take them.' }),
)

const NEW_REPLAY = object({
  destinationId: optional(string({ min: 1, max: 100, description: 'Only of this destination; of all when left out.' })),
  states: optional(
    array(oneOf(STATES), {
      min: 1,
      identity: (state) => state,
      description: 'The states of the deliveries. Failed and expired if left out.',
    }),
  ),
  reason: optional(string({ min: 1, max: 100, description: 'Only those with this reason.' })),
  from: optional(queryTime({ description: 'Came to their state at this time or later.' })),
  to: optional(queryTime({ description: 'Came to their state at this time or earlier.' })),
  deliveryIds: optional(
    array(string({ min: 1, max: 100 }), {
      min: 1,
      max: MAX_NAMED,
      identity: (id) => id,
      description: 'Just these deliveries, instead of all that match the fields above.',
    }),
  ),
  ratePerSecond: optional(RATE),
  dryRun: withDefault(boolean({ description: 'Whether only to count the deliveries that the job would have.' }), false),
})
const REPLAY_PATCH = object({
  state: optional(oneOf(['running', 'paused', 'cancelled'])),
  ratePerSecond: optional(RATE),
})

const SKIPS = {
  already_replayed: optional(integer({ description: 'The message is pending at the destination again, or was delivered there since.' })),
  not_found: optional(integer({ description: 'There is no delivery with this id.' })),
  still_pending: optional(integer({ description: 'The delivery has not come to an end.' })),
  message_gone: optional(integer({ description: 'The message is no longer stored.' })),
  destination_gone: optional(integer({ description: 'The destination was deleted.' })),
} satisfies Record<ReplaySkipReason, unknown>

const JOB_FIELDS = {
  id: string(),
  state: oneOf(JOB_STATES, {
    description: '`finished` when each delivery was replayed or skipped; `outcomes` has the states of the replays.',
  }),
  total: integer({ description: 'The number of deliveries in the job. Deliveries that reach one of the states later are not part of it.' }),
  done: integer({ description: 'Replayed and skipped.' }),
  replayed: integer({ description: 'Deliveries that were queued for their destinations again.' }),
  skipped: integer(),
  skippedReasons: object(SKIPS, { description: 'The number of skipped deliveries, by reason.' }),
  outcomes: object(
    { pending: integer(), delivered: integer(), failed: integer(), expired: integer(), cancelled: integer() },
    { description: 'The states of the replays.' },
  ),
  ratePerSecond: nullable(integer()),
  destinationId: nullable(string({ description: 'Null if the job is for all destinations, or for deliveries selected by id.' })),
  states: nullable(array(oneOf(STATES), { description: 'Null if the deliveries were selected by id.' })),
  reason: nullable(string()),
  from: nullable(time()),
  to: nullable(time()),
  createdAt: time(),
  finishedAt: nullable(time({ description: 'When it finished or was cancelled.' })),
  createdBy: nullable(object({ id: string(), name: string() })),
}
const JOB_SUMMARY = object(JOB_FIELDS)
const JOB = object({
  ...JOB_FIELDS,
  deliveryIds: nullable(array(string(), { description: 'Null if the deliveries were selected by a filter.' })),
})
const DRY_RUN = object({
  dryRun: boolean(),
  total: integer({ description: 'Deliveries that a job would be made for.' }),
  alreadyReplayed: integer({
    description:
      'Of those, how many would be skipped: pending again, delivered since, or failed again since, which is then what is repeated.',
  }),
  byDestination: array(object({ destinationId: string(), total: integer(), alreadyReplayed: integer() })),
})
/** 200 for both: a dry run creates nothing, and one path has one status. */
const JOB_OR_COUNT: Schema<Infer<typeof JOB> | Infer<typeof DRY_RUN>> = {
  parse: (value, path) =>
    (value as { dryRun?: unknown } | null)?.dryRun === undefined ? JOB.parse(value, path) : DRY_RUN.parse(value, path),
  toJsonSchema: () => ({ oneOf: [JOB.toJsonSchema(), DRY_RUN.toJsonSchema()] }),
}

export function replayRoutes({ store, replays }: ControlParts): Route[] {
  function selectionOf({ deliveryIds, ...filter }: Infer<typeof NEW_REPLAY>): ReplaySelection {
    const { destinationId, states, reason, from, to } = filter
    if (deliveryIds !== undefined) {
      const other = (['destinationId', 'states', 'reason', 'from', 'to'] as const).find((name) => filter[name] !== undefined)
      if (other !== undefined)
        throw invalidField(other, 'cannot be combined with deliveryIds. Select deliveries either by id or by a filter')
      return { deliveryIds }
    }
    if (destinationId !== undefined && !store.configuration().destinations.has(destinationId))
      throw invalidField('destinationId', 'is not the id of a destination. GET /api/destinations lists all destinations')
    if (from !== undefined && to !== undefined && to < from) throw invalidField('to', 'must not be before from')
    return {
      destinationId: destinationId ?? null,
      states: states ?? [...USUAL_STATES],
      reason: reason ?? null,
      fromMs: from ?? null,
      toMs: to ?? null,
    }
  }

  return [
    route({
      method: 'GET',
      path: '/replays',
      summary: 'Replay jobs, newest first',
      query: listQuery({ state: optional(oneOf(JOB_STATES, { description: 'In this state.' })) }),
      status: 200,
      answer: listAnswer(JOB_SUMMARY),
      errors: ['invalid_cursor'],
      handle: async ({ query }) =>
        pageAnswer('replays', await store.replays.list({ state: query.state }, pageRequest('replays', query)), summaryView),
    }),
    route({
      method: 'POST',
      path: '/replays',
      summary: 'Creates a job that sends many deliveries again; with dryRun, only counts them',
      body: NEW_REPLAY,
      status: 200,
      answer: JOB_OR_COUNT,
      async handle({ body, actor }) {
        const selection = selectionOf(body)
        if (body.dryRun) return countView(await store.replays.count(selection))
        const job = await store.replays.create(
          { selection, ratePerSecond: body.ratePerSecond ?? null, createdBy: actor },
          audited(actor, 'replay.create', auditView),
        )
        replays?.wake()
        return jobView(job)
      },
    }),
    route({
      method: 'GET',
      path: '/replays/:id',
      summary: 'One replay job, with its progress',
      status: 200,
      answer: JOB,
      errors: ['replay_not_found'],
      async handle({ params }) {
        const job = await store.replays.one(params['id'] ?? '')
        if (job === undefined) throw new ApiError('replay_not_found')
        return jobView(job)
      },
    }),
    route({
      method: 'PATCH',
      path: '/replays/:id',
      summary: 'Pauses, resumes or cancels a replay job, or changes its rate',
      body: REPLAY_PATCH,
      status: 200,
      answer: JOB,
      errors: ['replay_not_found', 'replay_over'],
      async handle({ params, body, actor }) {
        const result = await store.replays.update(params['id'] ?? '', body, audited(actor, 'replay.update', auditView))
        if (!result.ok) throw new ApiError(result.reason === 'over' ? 'replay_over' : 'replay_not_found')
        replays?.wake()
        return jobView(result.job)
      },
    }),
  ]
}

function summaryView(job: ReplayJob) {
  const { id, state, total, replayed, skipped, ended, ratePerSecond, selection, createdAtMs, finishedAtMs, createdBy } = job
  const skips = Object.values(skipped).reduce((sum, count) => sum + count, 0)
  const filter = 'deliveryIds' in selection ? null : selection
  return {
    id,
    state,
    total,
    done: replayed + skips,
    replayed,
    skipped: skips,
    skippedReasons: { ...skipped },
    outcomes: { pending: replayed - Object.values(ended).reduce((sum, count) => sum + count, 0), ...ended },
    ratePerSecond,
    destinationId: filter?.destinationId ?? null,
    states: filter === null ? null : [...filter.states],
    reason: filter?.reason ?? null,
    from: isoOrNull(filter?.fromMs),
    to: isoOrNull(filter?.toMs),
    createdAt: isoTime(createdAtMs),
    finishedAt: isoOrNull(finishedAtMs),
    createdBy: createdBy && { id: createdBy.id, name: createdBy.name },
  }
}

function jobView(job: ReplayJob) {
  return { ...summaryView(job), deliveryIds: 'deliveryIds' in job.selection ? [...job.selection.deliveryIds] : null }
}

function countView({ total, alreadyReplayed, byDestination }: ReplayCount) {
  return { dryRun: true, total, alreadyReplayed, byDestination }
}

/** What a person decided, and not how far it had come just then. */
function auditView(job: ReplayJob) {
  const { id, state, total, ratePerSecond, destinationId, states, reason, from, to, deliveryIds } = jobView(job)
  return { id, state, total, ratePerSecond, ...(deliveryIds === null ? { destinationId, states, reason, from, to } : { deliveryIds }) }
}

function isoOrNull(ms: number | null | undefined): string | null {
  return ms == null ? null : isoTime(ms)
}
