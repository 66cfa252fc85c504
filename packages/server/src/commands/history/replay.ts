// `switchyard replay`: sends again, one delivery, several, or everything that failed or expired in a period. The many are
// a job of the service, which goes on when this command is gone.

import type { JsonObject } from '@switchyard/protocol'
import { type Argument, type Call, type Command, CommandProblem, EXIT, type ExitCode } from '../line/command.ts'
import { readText } from '../line/input.ts'
import { type Column, cell, LIMIT_FLAG, PERIOD_FLAGS, periodOf, showFacts, showNewest, state, time } from '../line/listing.ts'
import { at, optionalId } from '../line/references.ts'
import { parseCount, parseDuration } from '../line/times.ts'
import { pause } from '../service/api.ts'

const JOB: Argument = { name: 'REPLAY_ID', sentence: 'As `switchyard replay list` shows it.' }
const STATES = ['failed', 'expired', 'delivered', 'cancelled']
const SELECTING = ['destination', 'state', 'reason', 'from', 'to']
const POLL_MS = 300
const OVER = new Set(['finished', 'cancelled'])
const USUAL_PATIENCE = '10s'
const PATIENCE_FLAG = {
  placeholder: 'DURATION',
  sentence: 'How long to wait for the outcomes when all are on their way.',
  usual: USUAL_PATIENCE,
}

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['state', ({ state }) => state],
  ['done', ({ done, total }) => `${cell(done)} of ${cell(total)}`],
  ['outcomes', ({ outcomes }) => outcomesText(outcomes)],
  ['destination', ({ destinationId }) => destinationId],
  ['of', ({ states }) => states],
  ['created', ({ createdAt }) => time(createdAt)],
]

export const REPLAY_COMMANDS: readonly Command[] = [
  {
    name: 'replay',
    summary: 'Sends again: one delivery, several, or all that failed or expired in a period',
    details:
      'One DELIVERY_ID is sent once more. Several, or all that the flags select, are a job of the service: it shows how far it is, and goes on when this command is interrupted. ' +
      'What is pending at the destination again, or was delivered there since, is skipped by a job.\n\n' +
      'Each replayed delivery has a record of its own, and its request says X-Replay: true. Exit code 1: one of them failed again so far, or the job was cancelled.',
    arguments: [
      {
        name: 'DELIVERY_ID',
        sentence: 'As `switchyard deliveries` and `trace --json` show it; - or @FILE reads them, one on a line.',
        optional: true,
        many: true,
      },
    ],
    flags: {
      destination: { placeholder: 'DESTINATION', sentence: 'Only to this one, by id or name.', usual: 'all' },
      state: { placeholder: 'STATE', sentence: 'In this state.', many: true, values: STATES, usual: 'failed and expired' },
      reason: { placeholder: 'REASON', sentence: 'Only for this reason, such as http_500 or timeout.' },
      ...PERIOD_FLAGS,
      rate: { placeholder: 'NUMBER', sentence: 'Most deliveries per second.', usual: 'as fast as the destinations take them' },
      'dry-run': { placeholder: null, sentence: 'Counts what would be sent, and sends nothing.' },
      detach: { placeholder: null, sentence: 'Starts the job and does not wait for its end.' },
      timeout: PATIENCE_FLAG,
    },
    examples: [
      'switchyard replay 12-0',
      "switchyard replay --destination 'my webhook' --from 2h --dry-run",
      "switchyard replay --destination 'my webhook' --from 2h --rate 100",
      "switchyard deliveries --reason http_413 --json | jq -r '.[].id' | switchyard replay -",
    ],
    async run(call) {
      const selecting = SELECTING.filter((name) => call.has(name))
      const ids = await idsGiven(call)
      if (call.arguments.length > 0 && selecting.length > 0)
        throw new CommandProblem(`Give DELIVERY_IDs or --${selecting[0]}, not both.`, EXIT.usage)
      if (call.arguments.length === 0 && selecting.length === 0)
        throw new CommandProblem(
          'replay needs DELIVERY_IDs, or flags that select some: --destination, --state, --reason, --from, --to. `switchyard deliveries --state failed` lists some.',
          EXIT.usage,
        )
      if (call.arguments.length > 0 && ids.length === 0) throw new CommandProblem('No DELIVERY_ID was given.', EXIT.usage)
      const isJob = ids.length !== 1 || ['rate', 'dry-run', 'detach'].some((name) => call.has(name))
      return isJob ? await replayMany(call, ids) : await replayOne(call, ids[0] as string)
    },
  },
  {
    name: 'replay list',
    summary: 'Replay jobs, newest first',
    flags: LIMIT_FLAG,
    async run(call) {
      await showNewest(call, '/api/replays', {}, COLUMNS, 'There is no replay job.')
      return EXIT.ok
    },
  },
  {
    name: 'replay show',
    summary: 'One replay job; with --wait, until it is over',
    arguments: [JOB],
    flags: { wait: { placeholder: null, sentence: 'Shows how far it is until it is over.' }, timeout: PATIENCE_FLAG },
    async run(call) {
      const job = await call.api.get(pathOf(call))
      if (call.has('wait')) return await follow(call, job)
      show(call, job)
      return EXIT.ok
    },
  },
  { name: 'replay pause', summary: 'Pauses a replay job', arguments: [JOB], run: (call) => change(call, 'paused') },
  { name: 'replay resume', summary: 'Resumes a paused replay job', arguments: [JOB], run: (call) => change(call, 'running') },
  {
    name: 'replay cancel',
    summary: 'Ends a replay job; what it has sent stays sent',
    arguments: [JOB],
    run: (call) => change(call, 'cancelled'),
  },
]

async function idsGiven({ arguments: given }: Call): Promise<string[]> {
  const ids: string[] = []
  for (const argument of given) ids.push(...(await readText('DELIVERY_ID', argument)).split(/\s+/).filter((id) => id !== ''))
  return [...new Set(ids)]
}

async function replayOne({ api, json, out }: Call, id: string): Promise<ExitCode> {
  const replay = await api.post(at`/api/deliveries/${id}/replay`)
  if (json) out.json(replay)
  else
    out.line(`${id} is sent again as ${cell(replay['id'])}. \`switchyard deliveries show ${cell(replay['id'])}\` tells what comes of it.`)
  return EXIT.ok
}

async function replayMany(call: Call, deliveryIds: readonly string[]): Promise<ExitCode> {
  const { api, flag, json, out } = call
  const rate = flag('rate')
  const dryRun = call.has('dry-run')
  const body = {
    destinationId: await optionalId(api, 'destination', flag('destination')),
    states: call.has('state') ? [...new Set(call.flags('state'))] : undefined,
    reason: flag('reason'),
    ...periodOf(call),
    deliveryIds: deliveryIds.length > 0 ? deliveryIds : undefined,
    ratePerSecond: rate === undefined ? undefined : parseCount('rate', rate),
    dryRun: dryRun || undefined,
  }
  // What is undefined is not sent.
  const job = await api.post('/api/replays', body)
  if (!dryRun && !call.has('detach')) return await follow(call, job)
  if (!dryRun) show(call, job)
  else if (json) out.json(job)
  else {
    const already = Number(job['alreadyReplayed'])
    const rest = already === 0 ? '' : ` ${already} of them would be skipped: they are pending again, or were delivered since.`
    out.line(`${cell(job['total'])} match.${rest}`)
  }
  return EXIT.ok
}

async function follow(call: Call, job: JsonObject): Promise<ExitCode> {
  const { api, out, json, signal } = call
  const patienceMs = parseDuration('timeout', call.flag('timeout') ?? USUAL_PATIENCE)
  const path = at`/api/replays/${String(job['id'])}`
  const progress = out.progress('Sent again')
  let now = job
  let overMs: number | undefined
  try {
    for (;;) {
      progress.update(Number(now['done']), Number(now['total']), now['state'] === 'paused' ? 'paused' : outcomesText(now['outcomes']))
      if (OVER.has(String(now['state']))) overMs ??= performance.now()
      if (overMs !== undefined && (outcome(now, 'pending') === 0 || performance.now() - overMs > patienceMs)) break
      await pause(POLL_MS, signal)
      if (signal.aborted) {
        progress.end()
        if (overMs === undefined)
          out.remark(
            `The job goes on. \`switchyard replay show ${cell(job['id'])} --wait\` follows it, \`switchyard replay cancel ${cell(job['id'])}\` ends it.`,
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
    out.line(
      `${cell(now['id'])}: ${state(call, now['state'])}, ${cell(now['replayed'])} of ${cell(now['total'])} sent again: ${outcomesText(now['outcomes'])}.`,
    )
    if (skipped.length > 0) out.line(`Skipped: ${skipped.join(', ')}.`)
  }
  const isGood = now['state'] === 'finished' && outcome(now, 'failed') + outcome(now, 'expired') === 0
  return isGood ? EXIT.ok : EXIT.failed
}

function outcome({ outcomes }: JsonObject, name: string): number {
  return Number((outcomes as JsonObject | undefined)?.[name] ?? 0)
}

/** 12 delivered, 1 failed. */
function outcomesText(outcomes: unknown): string {
  const counts = Object.entries((outcomes ?? {}) as Record<string, number>).filter(([, count]) => count > 0)
  return counts.map(([name, count]) => `${count} ${name}`).join(', ') || 'none on its way'
}

async function change(call: Call, to: 'paused' | 'running' | 'cancelled'): Promise<ExitCode> {
  show(call, await call.api.patch(pathOf(call), { state: to }))
  return EXIT.ok
}

function pathOf({ arguments: [id = ''] }: Call): string {
  return at`/api/replays/${id}`
}

function show(call: Call, job: JsonObject): void {
  if (call.json) return call.out.json(job)
  const { id, destinationId, states, reason, from, to, ratePerSecond, total, done, skipped, outcomes, createdAt, finishedAt } = job
  showFacts(call.out, [
    ['id', id],
    ['state', state(call, job['state'])],
    ['done', `${cell(done)} of ${cell(total)}`],
    ['skipped', skipped],
    ['outcomes', outcomesText(outcomes)],
    ['destination', destinationId],
    ['of', states ?? undefined],
    ['reason', reason ?? undefined],
    ['from', from == null ? undefined : time(from)],
    ['to', to == null ? undefined : time(to)],
    ['rate', ratePerSecond == null ? undefined : `${cell(ratePerSecond)} per second`],
    ['created', time(createdAt)],
    ['finished', finishedAt == null ? undefined : time(finishedAt)],
  ])
}
