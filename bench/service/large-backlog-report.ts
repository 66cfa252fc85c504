// The report and the targets of a run with a large backlog.

import { numberText, type Spread, spreadOf, spreadText, tableText } from '../client/table.ts'
import type { PerformanceTarget } from '../client/targets.ts'
import type { CostRound, CostRun } from './scenarios/cpu-cost.ts'
import type { LargeBacklogRun } from './scenarios/large-backlog.ts'
import type { PageTime } from './scenarios/page-times.ts'

const COST_FACTOR = 1.1
const START_MS = 2_000
const PAGE_MS = 15
const SEARCH_MS = 250

export function backlogText(run: LargeBacklogRun): string {
  const { backlog, cost, starts, pages } = run
  const costRow = (title: string, key: number, ratio: string) => {
    const runs = cost.flatMap((round: CostRound) => round.get(key) ?? [])
    const of = (value: (each: CostRun) => number, digits: number) => spreadText(spreadOf(runs.map(value)), digits)
    return [
      title,
      String(runs.length),
      of((each) => each.cpuUsPerEvent, 1),
      of((each) => each.databaseCpuUsPerEvent, 1),
      ratio,
      of((each) => each.eventsPerSecond, 0),
      of((each) => each.peakRssBytes / 1e6, 0),
    ]
  }
  const pending = numberText(backlog.events, 0)
  const costRows = [costRow('nothing pending', 0, '1.00'), costRow(`${pending} pending`, backlog.events, spreadText(ratiosToEmpty(run), 2))]
  const startRows = [
    ['nothing pending', spreadText(spreadOf(starts?.emptyMs ?? []), 0)],
    [`${pending} pending, stopped normally`, spreadText(spreadOf(starts?.stoppedMs ?? []), 0)],
    [`${pending} pending, kill -9 under load`, spreadText(spreadOf(starts?.killedMs ?? []), 0)],
  ]
  const pageRows = pages.map(({ page, path, ms, cpuMs }) => {
    const spread = spreadOf(ms)
    return [page, `\`GET ${shortened(path)}\``, numberText(spread?.median ?? 0, 1), numberText(spread?.max ?? 0, 1), numberText(cpuMs, 1)]
  })
  const facts = [
    ['filled', `${numberText(backlog.events / backlog.fillSeconds, 0)} events/s`],
    [
      'size of the store',
      `${numberText(backlog.storeBytes / 1e9, 2)} GB, ${numberText(backlog.storeBytes / backlog.dataBytes, 2)} × the bytes sent`,
    ],
    ['peak memory of the service while the pages were read', `${numberText(run.peakRssBytes / 1e6, 0)} MB`],
  ]
  return [
    tableText(['Beside', 'Rounds', 'CPU µs/event', 'Database µs', '× empty', 'Events/s', 'Peak MB'], costRows),
    tableText(['Start with', 'ms to ready'], startRows),
    tableText(['Page', 'Request', 'p50 ms', 'max ms', 'CPU ms'], pageRows, (column) => column < 2),
    tableText(['', ''], facts),
  ].join('\n\n')
}

/** CPU time of an event, of the service and its database, with the backlog divided by that without, round by round. */
function ratiosToEmpty({ cost, backlog }: LargeBacklogRun): Spread | undefined {
  const cpu = (run: CostRun) => run.cpuUsPerEvent + run.databaseCpuUsPerEvent
  return spreadOf(
    cost.flatMap((round) => {
      const [empty, full] = [round.get(0), round.get(backlog.events)]
      return empty && full ? [cpu(full) / cpu(empty)] : []
    }),
  )
}

export function backlogTargets(run: LargeBacklogRun): PerformanceTarget[] {
  const backlogText = `${numberText(run.backlog.events, 0)} pending on ${run.store}`
  const ratio = ratiosToEmpty(run)
  const complaints = [...new Set(run.cost.flatMap((round) => [...round.values()].flatMap((each) => each.complaints)))]
  const killed = run.starts && spreadOf(run.starts.killedMs)
  return [
    {
      what: `CPU per event for a healthy destination with ${backlogText}`,
      needed: `≤ ${COST_FACTOR} × an empty store`,
      measured: ratio ? [`${spreadText(ratio, 2)} ×`, ...complaints].join(', ') : 'not run',
      isMet: ratio && ratio.median <= COST_FACTOR && complaints.length === 0,
    },
    {
      what: `start after kill -9 with ${backlogText}`,
      needed: `≤ ${START_MS / 1_000} s`,
      measured: killed ? `${spreadText(killed, 0)} ms` : 'not run',
      isMet: killed && killed.median <= START_MS,
    },
    pagesTarget(
      `every page of the dashboard with ${backlogText}`,
      PAGE_MS,
      run.pages.filter(({ isSearch }) => !isSearch),
    ),
    pagesTarget(
      `a search through the messages with ${backlogText}`,
      SEARCH_MS,
      run.pages.filter(({ isSearch }) => isSearch),
    ),
  ]
}

function pagesTarget(what: string, limitMs: number, pages: PageTime[]): PerformanceTarget {
  const slowest = pages.map(({ ms }) => spreadOf(ms)).reduce((a, b) => ((b?.median ?? 0) > (a?.median ?? 0) ? b : a), undefined)
  const max = Math.max(...pages.flatMap(({ ms }) => ms))
  return {
    what,
    needed: `≤ ${limitMs} ms`,
    measured: slowest ? `p50 ${numberText(slowest.median, 1)} ms in the slowest, ${numberText(max, 1)} ms at most` : 'not run',
    isMet: slowest && max <= limitMs,
  }
}

/** Replaces ids, which are random, by the kind of object that they identify. */
function shortened(path: string): string {
  return decodeURIComponent(path)
    .replaceAll(/(dst|src)_[A-Za-z0-9]+/g, '$1_…')
    .replaceAll(/cursor=.*/g, 'cursor=…')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID')
    .replaceAll(/\/\d+-\d+/g, '/ID')
}
