// `switchyard replay`: replays one delivery, several, or all that failed or expired in a period. Several deliveries are a job of the
// service, which continues when this command ends.

import type { JsonObject } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import { type Argument, type Call, type Command, EXIT, type ExitCode, UsageProblem } from '../line/command.ts'
import { readIds } from '../line/input.ts'
import { type Column, cell, PERIOD_FLAGS, periodOf, showFacts, state, time } from '../line/listing.ts'
import { at, optionalId } from '../line/references.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { parseCount, parseDuration } from '../line/times.ts'
import { pause } from '../service/api.ts'

const JOB: Argument = { name: 'REPLAY_ID', description: 'The id of the job, as listed by `switchyard replay list`.' }
const STATES = ['failed', 'expired', 'delivered', 'cancelled']
const SELECTION_FLAGS = ['destination', 'state', 'reason', 'from', 'to']
const ARCHIVE_FLAGS = ['source', 'event', 'user']
const POLL_MS = 300
const OVER = new Set(['finished', 'cancelled'])
const DEFAULT_TIMEOUT = '10s'
const TIMEOUT_FLAG = {
  placeholder: 'DURATION',
  description: 'How long to wait for the remaining outcomes after the job has queued all deliveries.',
  defaultText: DEFAULT_TIMEOUT,
}

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['state', ({ state }) => state],
  ['queued or skipped', ({ done, total }) => `${cell(done)} of ${cell(total)}`],
  ['outcomes', ({ outcomes }) => outcomesText(outcomes)],
  ['destination', ({ destinationId }) => destinationId],
  ['states', ({ states }) => states],
  ['created', ({ createdAt }) => time(createdAt)],
]

export const REPLAY_COMMANDS: readonly Command[] = [
  {
    name: 'replay',
    summary: 'Replay one delivery, several, or all that failed or expired in a period',
    details:
      'A single delivery is replayed immediately. Several deliveries, given by id or selected with flags, are replayed by a job that runs in the service. The command shows the progress of the job, which continues if the command is interrupted. ' +
      'A job skips deliveries whose message is pending for the destination again or has been delivered to it since, so that starting it twice sends nothing twice. If the receiver has lost its data again, use --include-replayed.\n\n' +
      'Each replay is a new delivery, and its request has the header X-Replay: true. The exit code is 1 if a replayed delivery failed or expired before the command ended, or if the job was cancelled.',
    arguments: [
      {
        name: 'DELIVERY_ID',
        description:
          'The id of a delivery, as shown by `switchyard deliveries` and `switchyard trace --json`. Use - for stdin or @FILE to read ids, one per line.',
        optional: true,
        many: true,
      },
    ],
    flags: {
      destination: {
        placeholder: 'DESTINATION',
        description: 'Only deliveries to this destination, by id or name.',
        defaultText: 'all destinations',
      },
      state: {
        placeholder: 'STATE',
        description: 'Only deliveries in this state.',
        many: true,
        values: STATES,
        defaultText: 'failed and expired',
      },
      reason: { placeholder: 'REASON', description: 'Only deliveries with this reason, such as http_500 or timeout.' },
      ...PERIOD_FLAGS,
      archive: {
        placeholder: 'LAKE',
        description:
          'Send messages from the archive of this lake, by id or name, to --destination. --from and --to are when they were received; --to is now by default.',
      },
      source: { placeholder: 'SOURCE', description: 'With --archive: only messages of this source, by id or name.' },
      event: { placeholder: 'EVENT', description: 'With --archive: only track calls with this event name.' },
      user: { placeholder: 'USER_ID', description: 'With --archive: only messages with this userId.' },
      'include-replayed': {
        placeholder: null,
        description: 'Also send messages again that were replayed before and have been delivered since. Each message is sent once.',
      },
      rate: { placeholder: 'NUMBER', description: 'The maximum number of deliveries per second.', defaultText: 'no limit' },
      'dry-run': { placeholder: null, description: 'Count the matching deliveries without sending anything.' },
      detach: { placeholder: null, description: 'Start the job and do not wait for it.' },
      timeout: TIMEOUT_FLAG,
    },
    examples: [
      'switchyard replay 12-0',
      "switchyard replay --destination 'my webhook' --from 2h --dry-run",
      "switchyard replay --destination 'my webhook' --from 2h --rate 100",
      "switchyard replay --archive Lake --destination 'new tool' --from 90d --rate 500",
      "switchyard deliveries --reason http_413 --json | jq -r '.[].id' | switchyard replay -",
    ],
    async run(call) {
      const selecting = SELECTION_FLAGS.filter((name) => call.has(name))
      if (call.has('archive')) return await replayArchive(call)
      const extra = ARCHIVE_FLAGS.find((name) => call.has(name))
      if (extra !== undefined) throw new UsageProblem(`--${extra} needs --archive.`)
      const ids = await readIds('DELIVERY_ID', call.arguments)
      if (call.arguments.length > 0 && selecting.length > 0)
        throw new UsageProblem(`DELIVERY_IDs cannot be combined with --${selecting[0]}. Use one or the other.`)
      if (call.arguments.length === 0 && selecting.length === 0)
        throw new UsageProblem(
          'Nothing is selected. Give DELIVERY_IDs, or select deliveries with --destination, --state, --reason, --from or --to. Run `switchyard deliveries --state failed` for a list.',
        )
      if (call.arguments.length > 0 && ids.length === 0) throw new UsageProblem('The input contains no DELIVERY_ID.')
      const isJob = ids.length !== 1 || ['rate', 'dry-run', 'detach'].some((name) => call.has(name))
      return isJob ? await replayMany(call, ids) : await replayOne(call, ids[0] as string)
    },
  },
  newestCommand({
    name: 'replay list',
    summary: 'List replay jobs, newest first',
    path: '/api/replays',
    columns: COLUMNS,
    none: 'There are no replay jobs.',
  }),
  {
    name: 'replay show',
    summary: 'Show a replay job',
    arguments: [JOB],
    flags: { wait: { placeholder: null, description: 'Show the progress until the job is finished.' }, timeout: TIMEOUT_FLAG },
    async run(call) {
      const job = await call.api.get(pathOf(call))
      if (call.has('wait')) return await follow(call, job)
      show(call, job)
      return EXIT.ok
    },
  },
  { name: 'replay pause', summary: 'Pause a replay job', arguments: [JOB], run: (call) => change(call, 'paused') },
  { name: 'replay resume', summary: 'Resume a paused replay job', arguments: [JOB], run: (call) => change(call, 'running') },
  {
    name: 'replay cancel',
    summary: 'Cancel a replay job (deliveries that it has already queued are still sent)',
    arguments: [JOB],
    run: (call) => change(call, 'cancelled'),
  },
]

async function replayOne({ api, json, out }: Call, id: string): Promise<ExitCode> {
  const replay = await api.post(at`/api/deliveries/${id}/replay`)
  if (json) out.json(replay)
  else
    out.line(
      out.inForm(
        `Replaying ${id} as delivery ${cell(replay['id'])}. Run \`switchyard deliveries show ${cell(replay['id'])}\` to see the result.`,
      ),
    )
  return EXIT.ok
}

async function replayArchive(call: Call): Promise<ExitCode> {
  const { api, flag } = call
  const other = ['state', 'reason', 'include-replayed'].find((name) => call.has(name))
  if (other !== undefined || call.arguments.length > 0)
    throw new UsageProblem(`${other === undefined ? 'DELIVERY_IDs' : `--${other}`} cannot be combined with --archive.`)
  if (!call.has('destination')) throw new UsageProblem('--archive needs --destination: the destination that the messages are sent to.')
  const { from, to = new Date().toISOString() } = periodOf(call)
  if (from === undefined) throw new UsageProblem('--archive needs --from, such as --from 90d or --from 2026-11-01T00:00:00Z.')
  const archive = {
    destinationId: await optionalId(api, 'destination', flag('archive')),
    after: from,
    before: to,
    sourceId: await optionalId(api, 'source', flag('source')),
    event: flag('event'),
    userId: flag('user'),
  }
  return await start(call, { destinationId: await optionalId(api, 'destination', flag('destination')), archive })
}

async function replayMany(call: Call, deliveryIds: readonly string[]): Promise<ExitCode> {
  const { api, flag } = call
  return await start(call, {
    destinationId: await optionalId(api, 'destination', flag('destination')),
    states: call.has('state') ? [...new Set(call.flags('state'))] : undefined,
    reason: flag('reason'),
    ...periodOf(call),
    deliveryIds: deliveryIds.length > 0 ? deliveryIds : undefined,
    includeReplayed: call.has('include-replayed') || undefined,
  })
}

async function start(call: Call, selection: JsonObject): Promise<ExitCode> {
  const { api, flag, json, out } = call
  const rate = flag('rate')
  const dryRun = call.has('dry-run')
  // JSON omits undefined fields.
  const ratePerSecond = rate === undefined ? undefined : parseCount('rate', rate)
  const job = await api.post('/api/replays', { ...selection, ratePerSecond, dryRun: dryRun || undefined })
  if (!dryRun && !call.has('detach')) return await follow(call, job)
  if (!dryRun) show(call, job)
  else if (json) out.json(job)
  else if (selection['archive'] !== undefined)
    out.line(`The archive has up to ${counted(Number(job['total']), 'message', 'messages')} of this time.`)
  else {
    const already = Number(job['alreadyReplayed'])
    const rest = already === 0 ? '' : ` ${replayedBefore(already, call.has('include-replayed'))}`
    out.line(`${counted(Number(job['total']), 'delivery matches', 'deliveries match')}.${rest}`)
  }
  return EXIT.ok
}

function replayedBefore(already: number, isIncluded: boolean): string {
  const were = `${already} of them ${already === 1 ? 'was' : 'were'} replayed before`
  return isIncluded
    ? `${were}; their messages would be sent again once, except those that are pending.`
    : `${were} and would be skipped, because they are pending again or have been delivered since. To send them again, use --include-replayed.`
}

async function follow(call: Call, job: JsonObject): Promise<ExitCode> {
  const { api, out, json, signal } = call
  const timeoutMs = parseDuration('timeout', call.flag('timeout') ?? DEFAULT_TIMEOUT)
  const path = at`/api/replays/${String(job['id'])}`
  const progress = out.progress('Replayed')
  let now = job
  let overMs: number | undefined
  try {
    for (;;) {
      // A delivery that was queued and is still pending is not done.
      const done = Number(now['done']) - outcome(now, 'pending')
      progress.update(done, Number(now['total']), progressText(now))
      const problem = now['problem'] as JsonObject | null
      if (problem !== null && problem !== undefined && now['state'] === 'paused') {
        progress.end()
        if (json) out.json(now)
        else {
          out.line(`${cell(now['id'])} is paused: ${cell(problem['message'])}`)
          out.remark(`To continue, run \`switchyard replay resume ${cell(now['id'])}\`.`)
        }
        return EXIT.failed
      }
      if (OVER.has(String(now['state']))) overMs ??= performance.now()
      if (overMs !== undefined && (outcome(now, 'pending') === 0 || performance.now() - overMs > timeoutMs)) break
      await pause(POLL_MS, signal)
      if (signal.aborted) {
        progress.end()
        if (overMs === undefined)
          out.remark(
            `The job continues. Run \`switchyard replay show ${cell(job['id'])} --wait\` to follow it, or \`switchyard replay cancel ${cell(job['id'])}\` to cancel it.`,
          )
        return EXIT.interrupted
      }
      now = await api.get(path)
    }
  } finally {
    progress.end()
  }
  if (json) out.json(now)
  else {
    const skipped = Object.entries(now['skippedReasons'] as Record<string, number>).map(([reason, count]) => `${count} ${reason}`)
    const replayed = `${cell(now['replayed'])} of ${cell(now['total'])} replayed`
    const outcomes = outcomesText(now['outcomes'])
    out.line(`${cell(now['id'])}: ${state(call, now['state'])}, ${replayed}${outcomes === 'none' ? '' : `: ${outcomes}`}.`)
    if (skipped.length > 0) out.line(`Skipped: ${skipped.join(', ')}.`)
    const pending = outcome(now, 'pending')
    if (pending > 0)
      out.remark(
        `${counted(pending, 'delivery is', 'deliveries are')} still pending. Run \`switchyard replay show ${cell(now['id'])} --wait\` to follow ${pending === 1 ? 'it' : 'them'}.`,
      )
    if (now['includeReplayed'] !== true && Number((now['skippedReasons'] as JsonObject)['already_replayed'] ?? 0) > 0)
      out.remark(
        'Messages that were replayed before are skipped if they are pending again or have been delivered since. To send them again, use --include-replayed.',
      )
  }
  const isGood = now['state'] === 'finished' && outcome(now, 'failed') + outcome(now, 'expired') === 0
  return isGood ? EXIT.ok : EXIT.failed
}

function progressText({ state: now, outcomes, reachedAt }: JsonObject): string {
  if (now === 'paused') return 'paused'
  return reachedAt == null ? outcomesText(outcomes) : `${outcomesText(outcomes)}, reached ${time(reachedAt)}`
}

function outcome({ outcomes }: JsonObject, name: string): number {
  return Number((outcomes as JsonObject | undefined)?.[name] ?? 0)
}

/** Such as `12 delivered, 1 failed`. */
function outcomesText(outcomes: unknown): string {
  const counts = Object.entries((outcomes ?? {}) as Record<string, number>).filter(([, count]) => count > 0)
  return counts.map(([name, count]) => `${count} ${name}`).join(', ') || 'none'
}

async function change(call: Call, to: 'paused' | 'running' | 'cancelled'): Promise<ExitCode> {
  show(call, await call.api.patch(pathOf(call), { state: to }))
  return EXIT.ok
}

function pathOf({ arguments: [id = ''] }: Call): string {
  return at`/api/replays/${id}`
}

function archiveText(archive: JsonObject | null | undefined): string | undefined {
  if (archive == null) return undefined
  const only = ['sourceId', 'event', 'userId'].flatMap((name) => (archive[name] == null ? [] : `${name} ${cell(archive[name])}`))
  return [`${cell(archive['destinationId'])}, received from ${time(archive['after'])} to ${time(archive['before'])}`, ...only].join(', ')
}

function show(call: Call, job: JsonObject): void {
  if (call.json) return call.out.json(job)
  const { id, destinationId, states, reason, from, to, ratePerSecond, total, done, skipped, outcomes, createdAt, finishedAt } = job
  showFacts(call.out, [
    ['id', id],
    ['state', state(call, job['state'])],
    ['queued or skipped', `${cell(done)} of ${cell(total)}`],
    ['skipped', skipped],
    ['outcomes', outcomesText(outcomes)],
    ['destination', destinationId],
    ['archive', archiveText(job['archive'] as JsonObject | null)],
    ['reached', job['reachedAt'] == null ? undefined : time(job['reachedAt'])],
    ['problem', (job['problem'] as JsonObject | null)?.['message']],
    ['states', states ?? undefined],
    ['reason', reason ?? undefined],
    ['from', from == null ? undefined : time(from)],
    ['to', to == null ? undefined : time(to)],
    ['rate', ratePerSecond == null ? undefined : `${cell(ratePerSecond)} per second`],
    ['created', time(createdAt)],
    ['finished', finishedAt == null ? undefined : time(finishedAt)],
  ])
}
