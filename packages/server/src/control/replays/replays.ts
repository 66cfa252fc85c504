// Routes for replay jobs, which send many deliveries again: create, show progress, pause, resume and cancel. The store keeps the jobs and
// executes their steps; the runner decides when (replaying/replay-runner.ts).

import { queryTime } from '../../api/query-values.ts'
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
  shown,
  string,
  time,
  withDefault,
} from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { FinalStateName, ReplayJob, ReplayJobState, ReplaySelection, ReplaySkipReason, Store } from '../../store/store.ts'
import { audited } from '../routes/audit-entries.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { archiveSelection, archiveSize, archiveView, checkLoaded, countOf } from './archives.ts'

const JOB_STATES = ['running', 'paused', 'finished', 'cancelled'] as const satisfies readonly ReplayJobState[]
const STATES = ['failed', 'expired', 'cancelled', 'delivered'] as const satisfies readonly FinalStateName[]
const DEFAULT_STATES = ['failed', 'expired'] as const
const MAX_DELIVERY_IDS = 1_000

const RATE = nullable(
  integer({
    min: 1,
    max: 100_000,
    description: 'The maximum number of deliveries per second; null for no limit other than the speed of the destinations.',
  }),
)

const ARCHIVE_FIELDS = {
  destinationId: string({ description: 'The lake: a warehouse with the engine `parquet`.' }),
  after: time({ description: 'Messages that were received at this time or later.' }),
  before: time({ description: 'Messages that were received before this time.' }),
  sourceId: nullable(string()),
  event: nullable(string()),
  userId: nullable(string()),
}
const NEW_ARCHIVE = object(
  {
    destinationId: string({ min: 1, max: 100, description: 'The lake: a warehouse with the engine `parquet`.' }),
    after: queryTime({ description: 'Only messages that were received at this time or later.' }),
    before: queryTime({ description: 'Only messages that were received before this time.' }),
    sourceId: optional(string({ min: 1, max: 100, description: 'Only messages of this source.' })),
    event: optional(string({ min: 1, max: 1_000, description: 'Only track calls with this event name.' })),
    userId: optional(string({ min: 1, max: 1_000, description: 'Only messages with this userId.' })),
  },
  {
    description:
      'Sends messages from the archive of a lake instead of deliveries of the store. `destinationId` is required. Today’s filters, privacy rules and transformations apply. Cannot be combined with `states`, `reason`, `from`, `to`, `deliveryIds` and `includeReplayed`.',
  },
)

const NEW_REPLAY = object({
  destinationId: optional(
    string({
      min: 1,
      max: 100,
      description:
        'Only deliveries to this destination. If left out, deliveries to all destinations. With `archive`: the destination that the messages are sent to.',
    }),
  ),
  archive: optional(NEW_ARCHIVE),
  states: optional(
    array(oneOf(STATES), {
      min: 1,
      identity: (state) => state,
      description: 'Only deliveries in one of these states. Default: failed and expired.',
    }),
  ),
  reason: optional(string({ min: 1, max: 100, description: 'Only deliveries with this reason, such as `timeout`.' })),
  from: optional(queryTime({ description: 'Only deliveries that reached their state at this time or later.' })),
  to: optional(queryTime({ description: 'Only deliveries that reached their state at this time or earlier.' })),
  deliveryIds: optional(
    array(string({ min: 1, max: 100 }), {
      min: 1,
      max: MAX_DELIVERY_IDS,
      identity: (id) => id,
      description: 'The ids of the deliveries. Cannot be combined with the filters above.',
    }),
  ),
  includeReplayed: withDefault(
    boolean({
      description:
        'If true, also sends messages again that were replayed before and have been delivered since, for example because the receiver lost its data again. Each message is sent once. Messages that are pending again are still skipped.',
    }),
    false,
  ),
  ratePerSecond: optional(RATE),
  dryRun: withDefault(boolean({ description: 'If true, only counts the matching deliveries. No job is created.' }), false),
})
type NewReplay = Infer<typeof NEW_REPLAY>
const REPLAY_PATCH = object({
  state: optional(oneOf(['running', 'paused', 'cancelled'], { description: 'The new state. A cancelled job cannot be resumed.' })),
  ratePerSecond: optional(RATE),
})

const SKIPS = {
  already_replayed: optional(
    integer({
      description:
        'The message is already pending again for the destination, has been delivered to it since (unless `includeReplayed` is true), or was sent by this job already.',
    }),
  ),
  not_found: optional(integer({ description: 'There is no delivery with this id.' })),
  still_pending: optional(integer({ description: 'The delivery is still pending.' })),
  message_gone: optional(integer({ description: 'The message is no longer stored.' })),
  destination_gone: optional(integer({ description: 'The destination was deleted.' })),
  already_loaded: optional(
    integer({
      description:
        'The destination is a warehouse, and has the rows of the message already: it was delivered to it, or, for an archive, it was received when the warehouse existed already.',
    }),
  ),
  user_suppressed: optional(integer({ description: 'The user is suppressed. Only for messages from an archive, like the following.' })),
  user_deleted: optional(integer({ description: 'The user was deleted after the message was received.' })),
  filtered: optional(integer({ description: 'A filter of the destination excludes the message.' })),
  integrations_disabled: optional(integer({ description: 'The `integrations` of the message exclude the destination.' })),
  historical: optional(integer({ description: 'The destination gets no messages that are about times long before they were received.' })),
  unreadable: optional(integer({ description: 'The archive has no valid message there.' })),
} satisfies Record<ReplaySkipReason, unknown>

const JOB_FIELDS = {
  id: string(),
  state: oneOf(JOB_STATES, {
    description: '`finished` means that every delivery was replayed or skipped. `outcomes` shows the states of the replays.',
  }),
  total: integer({
    description:
      'The number of deliveries in the job. Deliveries that reach one of the states later are not part of it. For an archive, the number of messages in its files of that time, which may be too high until the job is finished.',
  }),
  done: integer({ description: 'The number of deliveries that were replayed or skipped so far.' }),
  replayed: integer({ description: 'The number of deliveries that were queued again.' }),
  skipped: integer({ description: 'The number of deliveries that were skipped.' }),
  skippedReasons: object(SKIPS, { description: 'The number of skipped deliveries, by reason.' }),
  outcomes: object(
    { pending: integer(), delivered: integer(), failed: integer(), expired: integer(), cancelled: integer() },
    { description: 'The number of replays in each state.' },
  ),
  includeReplayed: boolean({ description: 'Whether messages that were replayed before and delivered since are sent again, too.' }),
  ratePerSecond: nullable(integer()),
  destinationId: nullable(string({ description: 'Null if the job is for all destinations, or for deliveries selected by id.' })),
  sourceIds: nullable(
    array(string(), {
      description: 'Only messages of these sources: those that the creator of the job had access to. Null for all sources.',
    }),
  ),
  archive: nullable(
    object(ARCHIVE_FIELDS, {
      description: 'The messages of an archive that are replayed. Null if the job is about deliveries of the store.',
    }),
  ),
  reachedAt: nullable(time({ description: 'How far the job is in the archive: when the last message was received.' })),
  problem: nullable(
    object(
      { code: string(), message: string() },
      {
        description: 'Why the archive cannot be read. The job is paused, or tries again if the problem may end by itself.',
      },
    ),
  ),
  states: nullable(array(oneOf(STATES), { description: 'Null if the deliveries were selected by id.' })),
  reason: nullable(string()),
  from: nullable(time()),
  to: nullable(time()),
  createdAt: time(),
  finishedAt: nullable(time({ description: 'When the job finished or was cancelled.' })),
  createdBy: nullable(object({ id: string(), name: string() }, { description: 'The control token that created the job.' })),
}
const JOB_SUMMARY = object(JOB_FIELDS)
const JOB = object({
  ...JOB_FIELDS,
  deliveryIds: nullable(array(string(), { description: 'Null if the deliveries were selected by a filter.' })),
})
const DRY_RUN = object({
  dryRun: boolean(),
  total: integer({ description: 'The number of deliveries that match.' }),
  alreadyReplayed: integer({
    description:
      'The number of these deliveries that were replayed before: the message is pending again, was delivered since, or has a later failed delivery, which would be replayed instead. They would be skipped; with `includeReplayed`, their messages would be sent again once, except those that are pending.',
  }),
  byDestination: array(object({ destinationId: string(), total: integer(), alreadyReplayed: integer() })),
})
/** The status is 200 for both, because a route has one status and a dry run creates nothing. */
const JOB_OR_COUNT: Schema<Infer<typeof JOB> | Infer<typeof DRY_RUN>> = {
  parse: (value, path) =>
    (value as { dryRun?: unknown } | null)?.dryRun === undefined ? JOB.parse(value, path) : DRY_RUN.parse(value, path),
  show: (value) => shown((value as { dryRun?: true }).dryRun === undefined ? JOB : DRY_RUN, value),
  toJsonSchema: () => ({ oneOf: [JOB.toJsonSchema(), DRY_RUN.toJsonSchema()] }),
}

export function replayRoutes({ store, replays, archives }: ControlParts): Route[] {
  return [
    route('GET', '/replays', {
      summary: 'List replay jobs, newest first',
      access: { role: 'viewer', sources: 'limited' },
      query: listQuery({ state: optional(oneOf(JOB_STATES, { description: 'Only jobs in this state.' })) }),
      answer: listAnswer(JOB_SUMMARY),
      handle: async ({ query }) =>
        pageAnswer('replays', await store.replays.list({ state: query.state }, pageRequest('replays', query)), jobView),
    }),
    route('POST', '/replays', {
      summary: 'Create a replay job',
      access: { role: 'editor', sources: 'limited' },
      description: 'Sends the selected deliveries again, in the background. With `dryRun`, only counts them and creates no job.',
      body: NEW_REPLAY,
      answer: JOB_OR_COUNT,
      errors: ['already_loaded', 'no_archive', 'archive_unreadable', 'not_installed'],
      async handle({ body, actor }) {
        const selection = selectionOf(store, body)
        const isArchive = 'archive' in selection
        if (isArchive) await checkLoaded(store, selection)
        const expected = isArchive ? await archiveSize(store, archives, selection) : undefined
        if (body.dryRun) return { dryRun: true, ...(isArchive ? countOf(selection, expected ?? 0) : await store.replays.count(selection)) }
        const job = await store.replays.create(
          { selection, ratePerSecond: body.ratePerSecond ?? null, createdBy: { id: actor.id, name: actor.name }, expected },
          audited(actor, 'replay.create', auditView, sourcesOf),
        )
        replays?.wake()
        return jobView(job)
      },
    }),
    route('GET', '/replays/:id', {
      summary: 'Retrieve a replay job, with its progress',
      access: { role: 'viewer', sources: 'limited', subject: 'replay' },
      answer: JOB,
      errors: ['replay_not_found'],
      async handle({ params }) {
        const job = await store.replays.one(params['id'] ?? '')
        if (job === undefined) throw new ApiError('replay_not_found')
        return jobView(job)
      },
    }),
    route('PATCH', '/replays/:id', {
      summary: 'Pause, resume or cancel a replay job, or change its rate',
      access: { role: 'editor', sources: 'limited', subject: 'replay' },
      body: REPLAY_PATCH,
      answer: JOB,
      errors: ['replay_not_found', 'replay_over'],
      async handle({ params, body, actor }) {
        const result = await store.replays.update(params['id'] ?? '', body, audited(actor, 'replay.update', auditView, sourcesOf))
        if (!result.ok) throw new ApiError(result.reason === 'over' ? 'replay_over' : 'replay_not_found')
        replays?.wake()
        return jobView(result.job)
      },
    }),
  ]
}

function selectionOf(store: Store, body: NewReplay): ReplaySelection {
  const { deliveryIds, includeReplayed, archive, ...filter } = body
  if (archive !== undefined) return archiveSelection(store, body, archive)
  const again = includeReplayed ? { includeReplayed } : {}
  const { destinationId, states, reason, from, to } = filter
  if (deliveryIds !== undefined) {
    const other = (['destinationId', 'states', 'reason', 'from', 'to'] as const).find((name) => filter[name] !== undefined)
    if (other !== undefined) throw invalidField(other, 'cannot be combined with deliveryIds. Select deliveries either by id or by a filter')
    return { deliveryIds, ...again }
  }
  if (destinationId !== undefined && !store.configuration().destinations.has(destinationId))
    throw invalidField('destinationId', 'is not the id of a destination. GET /api/destinations lists all destinations')
  if (from !== undefined && to !== undefined && to < from) throw invalidField('to', 'must not be before from')
  return {
    destinationId: destinationId ?? null,
    states: states ?? [...DEFAULT_STATES],
    reason: reason ?? null,
    fromMs: from ?? null,
    toMs: to ?? null,
    ...again,
  }
}

/** Null: the deliveries of all sources. */
function sourcesOf({ selection }: ReplayJob): readonly string[] | null {
  return selection.sourceIds ?? null
}

const NO_FILTER = { states: null, reason: null, fromMs: null, toMs: null }

function jobView(job: ReplayJob) {
  const { replayed, skipped, ended, selection, archive } = job
  const skips = sum(skipped)
  return {
    ...job,
    ...('states' in selection ? selection : NO_FILTER),
    destinationId: 'deliveryIds' in selection ? null : selection.destinationId,
    archive: 'archive' in selection ? archiveView(selection.archive) : null,
    reachedAtMs: archive?.reachedMs ?? null,
    problem: archive?.problem ?? null,
    deliveryIds: 'deliveryIds' in selection ? selection.deliveryIds : null,
    sourceIds: sourcesOf(job),
    done: replayed + skips,
    skipped: skips,
    skippedReasons: skipped,
    outcomes: { pending: replayed - sum(ended), ...ended },
    includeReplayed: selection.includeReplayed === true,
  }
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

/** For the audit log: what a person decided, without the progress at that time. */
function auditView(job: ReplayJob) {
  const view = shown(JOB, jobView(job)) as Infer<typeof JOB>
  const { id, state, total, ratePerSecond, includeReplayed, destinationId, states, reason, from, to, deliveryIds, archive } = view
  if (archive !== null) return { id, state, total, ratePerSecond, destinationId, archive }
  return {
    id,
    state,
    total,
    ratePerSecond,
    includeReplayed,
    ...(deliveryIds === null ? { destinationId, states, reason, from, to } : { deliveryIds }),
  }
}
