// The report of one run as Markdown: a table for each part, and what is not measured.

import { numberText, type Spread, spreadOf, spreadText, tableText } from '../client/table.ts'
import type { Latency, Percentiles } from './environment/latency.ts'
import type { Program, ProgramName } from './environment/programs.ts'
import type { Load } from './environment/traffic.ts'
import type { CostRound } from './scenarios/cpu-cost.ts'
import type { DeliveryRun } from './scenarios/delivery.ts'
import type { FloodRun } from './scenarios/flood.ts'
import type { IngestRun } from './scenarios/ingest.ts'
import type { SaturatedRun } from './scenarios/saturated.ts'
import { costRatios, cpuRatios, deadRatios, loadText, type ProgramRound, type Results, rateRatios } from './targets.ts'

export type Titles = Pick<Program, 'name' | 'title'>[]

/** Ratios are to the previous version if that was measured, and to the two-thread limit otherwise. */
export function deliveryText(titles: Titles, byLoad: Map<Load, ProgramRound<DeliveryRun>[]>): string {
  const isCompared = [...byLoad.values()].some((rounds) => runsOf(rounds, 'before').length > 0)
  const [base, baseTitle]: [ProgramName, string] = isCompared ? ['before', 'before'] : ['two-thread-limit', 'two-thread limit']
  const head = [
    'Load',
    'Program',
    'Rounds',
    'Events',
    'Events/s',
    `× ${baseTitle}`,
    'Acknowledged/s',
    'CPU µs/event',
    'Database µs',
    `× CPU of ${baseTitle}`,
    'Peak MB',
    'Received',
  ]
  const rows = deliveryRows(titles, byLoad, ({ name }, runs, rounds) => {
    const of = (value: (run: DeliveryRun) => number, digits = 0) => spreadText(spreadOf(runs.map(value)), digits)
    return [
      String(runs.length),
      of((run) => run.events),
      of((run) => run.eventsPerSecond),
      spreadText(rateRatios(rounds, base, name), 2),
      of((run) => run.acknowledgedPerSecond),
      of((run) => run.cpuUsPerEvent),
      runs.some((run) => run.databaseCpuUsPerEvent > 0) ? of((run) => run.databaseCpuUsPerEvent) : '–',
      spreadText(cpuRatios(rounds, base, name), 2),
      of((run) => run.peakRssBytes / 1e6),
      receivedText(runs),
    ]
  })
  const threadHead = ['Load', 'CPU µs/event by thread', 'Main', 'Ingest threads', 'Writer', 'Senders', 'V8 in the background', 'Others']
  const threadRows = deliveryRows(titles, byLoad, (_program, runs) =>
    (['main', 'ingest', 'writer', 'senders', 'v8', 'others'] as const).map((thread) =>
      spreadText(spreadOf(runs.map((run) => run.threads[thread])), 1),
    ),
  )
  return [
    tableText(head, rows, (column) => column === 1 || column === head.length - 1),
    tableText(threadHead, threadRows, (column) => column === 1),
  ].join('\n\n')
}

function deliveryRows(
  titles: Titles,
  byLoad: Map<Load, ProgramRound<DeliveryRun>[]>,
  cells: (program: Titles[number], runs: DeliveryRun[], rounds: ProgramRound<DeliveryRun>[]) => string[],
): string[][] {
  return [...byLoad].flatMap(([load, rounds]) =>
    titlesIn(titles, rounds).map((program) => [loadText(load), program.title].concat(cells(program, runsOf(rounds, program.name), rounds))),
  )
}

/** The line under each table: how much other work disturbed its runs. */
export function noiseText(shares: number[]): string {
  const percent = spreadOf(shares.map((share) => share * 100))
  return percent ? `Other work took ${spreadText(percent, 0)} % of the machine during these runs.` : 'Not run.'
}

function receivedText(runs: DeliveryRun[]): string {
  const duplicates = runs.reduce((sum, run) => sum + run.duplicates, 0)
  const complaints = [...new Set(runs.flatMap((run) => run.complaints))]
  return [complaints.length === 0 ? 'all' : complaints.join(', '), ...(duplicates > 0 ? [`${duplicates} twice`] : ['each once'])].join(', ')
}

export function ingestText(titles: Titles, byLoad: Map<Load, ProgramRound<IngestRun>[]>): string {
  const rows = [...byLoad].flatMap(([load, rounds]) =>
    titlesIn(titles, rounds).map(({ name, title }) => {
      const runs = runsOf(rounds, name)
      return [
        loadText(load),
        title,
        String(runs.length),
        spreadText(spreadOf(runs.map((run) => run.eventsPerSecond)), 0),
        spreadText(rateRatios(rounds, 'bare-fastify', name), 2),
        spreadText(spreadOf(runs.map((run) => run.cpuUsPerEvent)), 1),
      ]
    }),
  )
  return tableText(['Load', 'Program', 'Rounds', 'Events/s', '× Fastify', 'CPU µs/event'], rows, (column) => column === 1)
}

export function idleText(titles: Titles, rounds: ProgramRound<Latency>[]): string {
  const rows = titlesIn(titles, rounds).map(({ name, title }) => {
    const runs = runsOf(rounds, name)
    return [title, String(runs.length)].concat(latencyCells(runs))
  })
  return tableText(['Program', 'Rounds', ...LATENCY_HEAD], rows)
}

const LATENCY_HEAD = ['Acknowledged → received p50, ms', 'p99', 'Sent → received p50, ms', 'p99']

function latencyCells(runs: Latency[]): string[] {
  const of = (value: (run: Latency) => Percentiles, percentile: keyof Percentiles) =>
    spreadText(spreadOf(runs.map((run) => value(run)[percentile])), 2)
  return [of((run) => run.ackedMs, 'p50'), of((run) => run.ackedMs, 'p99'), of((run) => run.sentMs, 'p50'), of((run) => run.sentMs, 'p99')]
}

export function floodText(runs: FloodRun[]): string {
  const rows = runs.map((run) => [
    run.death,
    String(run.seconds),
    numberText(run.acknowledged, 0),
    numberText(run.acknowledged / run.seconds, 0),
    numberText(run.peakFirstHalfBytes / 1e6, 0),
    numberText(run.peakSecondHalfBytes / 1e6, 0),
    Object.entries(run.refusals)
      .map(([what, times]) => `${times} × ${what}`)
      .join(', ') || 'none',
  ])
  const head = ['The destination is', 'Seconds', 'Acknowledged', 'Events/s', 'Peak MB, first half', 'Second half', 'Rejected requests']
  return tableText(head, rows, (column) => column === 0 || column === head.length - 1)
}

export function costText({ cost, backlogs }: Results): string {
  const rows = (['stored', 'pending'] as const).flatMap((kind) =>
    [...(cost[kind][0]?.keys() ?? [])]
      .sort((a, b) => a - b)
      .map((size) => {
        const runs = cost[kind].flatMap((round: CostRound) => round.get(size) ?? [])
        const backlog = backlogs.find((candidate) => candidate.kind === kind && candidate.events === size)
        return [
          `${numberText(size, 0)} ${kind}`,
          String(runs.length),
          spreadText(spreadOf(runs.map((run) => run.cpuUsPerEvent)), 1),
          spreadText(costRatios(cost[kind], size), 2),
          spreadText(spreadOf(runs.map((run) => run.eventsPerSecond)), 0),
          backlog ? numberText(backlog.storeBytes / 1e6, 1) : '–',
          backlog && backlog.dataBytes > 0 ? numberText(backlog.storeBytes / backlog.dataBytes, 2) : '–',
          backlog ? numberText(backlog.events / backlog.fillSeconds, 0) : '–',
        ]
      }),
  )
  return tableText(['Before', 'Rounds', 'CPU µs/event', '× smallest', 'Events/s', 'Store MB', '× bytes sent', 'Filled, events/s'], rows)
}

export function deadText({ dead, starts }: Results): string {
  const rows = [
    ['nothing owed', ...latencyCells(dead.map((round) => round.without))],
    ['a million pending for a dead one', ...latencyCells(dead.map((round) => round.with))],
    ['ratio', '', '', spreadText(deadRatios(dead, 'p50'), 2), spreadText(deadRatios(dead, 'p99'), 2)],
  ]
  const startRow = (title: string, times: number[] | undefined) => [title, spreadText(startSpread(times), 0)]
  const startRows = [
    startRow('nothing owed', starts?.emptyMs),
    startRow('a million pending, stopped normally', starts?.stoppedMs),
    startRow('a million pending, killed under load', starts?.killedMs),
  ]
  return [tableText(['The healthy one beside', ...LATENCY_HEAD], rows), tableText(['Start with', 'ms to ready'], startRows)].join('\n\n')
}

export function saturatedText(rounds: ProgramRound<SaturatedRun>[]): string {
  const runs = runsOf(rounds, 'service')
  const of = (value: (run: SaturatedRun) => number, digits = 0) => spreadText(spreadOf(runs.map(value)), digits)
  const row = [
    String(runs.length),
    of((run) => run.acknowledgedPerSecond),
    of((run) => run.deliveredPerSecond),
    of((run) => run.alonePerSecond),
    of((run) => run.ratio, 2),
    of((run) => run.answerMs.p50),
    of((run) => run.answerMs.p99),
    of((run) => run.refused),
    of((run) => run.backlog),
  ]
  const head = [
    'Rounds',
    'Acknowledged/s',
    'Delivered/s',
    'Alone/s',
    'Ratio',
    'Answer p50, ms',
    'p99',
    'Refused requests',
    'Backlog at the end',
  ]
  return tableText(head, [row])
}

function startSpread(times: number[] | undefined): Spread | undefined {
  return times && spreadOf(times)
}

function runsOf<Run>(rounds: ProgramRound<Run>[], name: ProgramName): Run[] {
  return rounds.flatMap((round) => round.get(name) ?? [])
}

function titlesIn<Run>(titles: Titles, rounds: ProgramRound<Run>[]): Titles {
  return titles.filter(({ name }) => runsOf(rounds, name).length > 0)
}

export const NOT_MEASURED = `- A network: all traffic is on 127.0.0.1, without latency, loss, TLS or a proxy; so is the peers' database.
- A dedicated machine: sender, receiver and program share the cores, and other processes may run at the same time. Programs take
  turns within a round; trust ratios and spreads, not seconds.
- A disk that is slow to sync, or a power failure: a successful fsync is trusted.
- Deliveries that are batched, sent to several URLs or signed with signing secrets (all are signed with a shared secret); other calls than \`track\`; text beyond ASCII; more than one
  source or healthy destination at a time; gzip.
- Other features of the peers. graphile-worker and BullMQ do more than send POST requests, and retry as the service does; the limit
  and bare Fastify do less than any service must.
- Other data. The events consist of numbers and words of a small vocabulary; real text compresses less, so a compressed store
  would be larger.
- Long runs: retention, a store of more than about a million messages, memory use over hours or days.`
