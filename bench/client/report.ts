// The report of one run as Markdown: machine, versions, a table per workload, the targets, and what is not measured.

import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { CLIENT_NAMES, CLIENTS, type ClientName } from './clients.ts'
import type { Run } from './measure.ts'
import { type Installed, type LoadTimes, type ModuleSystem } from './packages.ts'
import { numberText, spreadOf, spreadText, tableText } from './table.ts'
import { type PerformanceTarget, RATES, type Round, ratios } from './targets.ts'
import type { Workload } from './workloads.ts'

export function machineText(): string {
  const facts = [
    ['Date', new Date().toISOString().slice(0, 10)],
    ['Processor', `${cpus()[0]?.model.trim() ?? 'unknown'}, ${availableParallelism()} cores`],
    ['Memory', `${numberText(totalmem() / 2 ** 30, 1)} GiB`],
    ['System', `${process.platform} ${process.arch}, load average ${loadavg()[0]?.toFixed(1) ?? '?'} before the run`],
    ['Node.js', process.version],
  ]
  return facts.map(([name, value]) => `- ${name}: ${value}`).join('\n')
}

export function packagesText(installed: Installed, loadTimes: LoadTimes | undefined): string {
  const rows = CLIENT_NAMES.map((name) => {
    const { version, bytes, files, packages } = installed[name]
    const load = (system: ModuleSystem): string => spreadText(loadTimes && spreadOf(loadTimes[system][name]), 1)
    const size = [numberText(bytes / 1e3, 0), numberText(files, 0), String(packages)]
    return [CLIENTS[name].packageName, version].concat(size, load('import'), load('require'))
  })
  return tableText(['Package', 'Version', 'Installed kB', 'Files', 'Packages', 'import ms', 'require ms'], rows)
}

export function workloadText({ clients, calls }: Workload, rounds: Round[]): string {
  const speed = ['Calls/s', '× Segment', 'To last byte, s', '× faster', 'CPU s']
  const columns = ['Client', 'Rounds', ...speed, 'Peak MB', 'Bytes/message', 'Sockets', 'Received']
  const rows = clients.map((name) => workloadRow(name, calls, rounds))
  return tableText(columns, rows, (column) => column === 0 || column === columns.length - 1)
}

/**
 * A star marks times of a client that did not deliver the whole workload: they cover only what it delivered. A client that
 * died before its first report has zeros, which are not shown.
 */
function workloadRow(name: ClientName, calls: number, rounds: Round[]): string[] {
  const runs = rounds.flatMap((round) => round[name] ?? [])
  const mark = runs.some((run) => run.received.distinct < calls) ? ' *' : ''
  const of = (value: (run: Run) => number | undefined, digits: number): string =>
    spreadText(spreadOf(runs.flatMap((run) => value(run) ?? [])), digits)
  return [
    CLIENTS[name].packageName,
    String(runs.length),
    of((run) => run.callsPerSecond || undefined, 0),
    spreadText(ratios(rounds, name, RATES.calls), 2),
    of((run) => (run.deliveredMs === undefined ? undefined : run.deliveredMs / 1_000), 2) + mark,
    spreadText(ratios(rounds, name, RATES.delivery), 2) + mark,
    of((run) => run.cpuMs / 1_000 || undefined, 1) + mark,
    of((run) => run.peakRssBytes / 1e6 || undefined, 0),
    numberText(spreadOf(runs.map((run) => run.received.bodyBytes / Math.max(1, run.received.distinct)))?.median ?? 0, 0),
    of((run) => run.received.peakSockets, 0),
    receivedText(runs, calls),
  ]
}

function receivedText(runs: Run[], calls: number): string {
  const range = (value: (run: Run) => number): string => spreadText(spreadOf(runs.map(value)), 0)
  const facts = [
    runs.every((run) => run.isExactlyOnce && run.callsMade === calls) && 'each once',
    runs.some((run) => run.callsMade > 0 && run.callsMade < calls) && `made ${range((run) => run.callsMade)} calls in the time it had`,
    runs.some((run) => run.lost > 0) && `lost ${range((run) => run.lost)}`,
    runs.some((run) => run.received.duplicates > 0) && `duplicated ${range((run) => run.received.duplicates)}`,
    ...new Set(runs.filter((run) => run.ending !== 'ended').map((run) => run.ending)),
    ...new Set(runs.flatMap((run) => run.error ?? [])),
  ]
  return facts.filter(Boolean).join(', ')
}

export function targetsText(targets: PerformanceTarget[]): string {
  const rows = targets.map(({ what, needed, measured, isMet }) => [isMet === undefined ? '–' : isMet ? '✔' : '✘', what, needed, measured])
  return tableText(['', 'Target', 'Needed', 'Measured'], rows, () => true)
}

export const NOT_MEASURED = `- A network: all traffic is on 127.0.0.1, without latency, loss, TLS or a proxy.
- A receiver that is slow, refuses or fails. The counting server answers 200 at once; retries happen only to a client that
  times out by itself.
- Other Node.js versions, other runtimes, other event sizes, other call types than \`track\`.
- The peers with settings tuned for this work. They run at their defaults, which for some means dropping what exceeds their
  queue; a time next to "lost" or "made … calls" (*) is for the part that arrived.
- The last partial batch: the number of calls is a multiple of every client's batch size, because Segment's client holds a
  remainder for its flushInterval of 10 s, which would count in our favour.
- An idle machine. Clients alternate within a round so that noise affects all of them; trust ratios and spreads, not seconds.`
