// The targets of @switchyard/node compared with the other clients, and whether this run met them. A target is checked against the
// median of the ratios of single rounds, never against a ratio of medians from different minutes on a shared machine.

import { type ClientName, PEER_NAMES } from './clients.ts'
import type { Run } from './measure.ts'
import { type Installed, type LoadTimes, MODULE_SYSTEMS } from './packages.ts'
import { numberText, type Spread, spreadOf, spreadText } from './table.ts'
import type { WorkloadName } from './workloads.ts'

export type Round = Partial<Record<ClientName, Run>>
export type Results = Partial<Record<WorkloadName, Round[]>>

export interface PerformanceTarget {
  what: string
  needed: string
  measured: string
  /** Undefined if this run did not measure it. */
  isMet: boolean | undefined
}

export const RATES = { calls: (run: Run) => run.callsPerSecond, delivery: (run: Run) => (run.deliveredMs ? 1 / run.deliveredMs : 0) }

/** How many times faster than Segment's client a client was, round by round. */
export function ratios(rounds: Round[], client: ClientName, rate: (run: Run) => number): Spread | undefined {
  const paired = rounds.flatMap((round) => {
    const [one, other] = [round[client], round.segment]
    return one && other && rate(other) > 0 ? [rate(one) / rate(other)] : []
  })
  return spreadOf(paired)
}

export function targets(results: Results, installed: Installed, loadTimes: LoadTimes | undefined): PerformanceTarget[] {
  return [
    ratioTarget('calls per second, the loop yields, default settings', results.yielding, RATES.calls, 4),
    ratioTarget('tight loop, to the last byte received', results.tight, RATES.delivery, 8),
    ratioTarget('the loop yields, default flushAt, to the last byte', results.yielding, RATES.delivery, 2),
    ratioTarget('the loop yields, flushAt 100, to the last byte', results['yielding-100'], RATES.delivery, 3),
    ...millionTargets(results.million),
    sizeTarget(installed),
    ...loadTargets(loadTimes),
  ]
}

function ratioTarget(what: string, rounds: Round[] | undefined, rate: (run: Run) => number, factor: number): PerformanceTarget {
  const ratio = rounds && ratios(rounds, 'switchyard', rate)
  const once = exactlyOnce(rounds)
  return {
    what,
    needed: `≥ ${factor} × Segment's, each once`,
    measured: ratio ? `${spreadText(ratio, 2)} ×, ${once.text}` : 'not run',
    isMet: ratio && ratio.median >= factor && once.isMet,
  }
}

function millionTargets(rounds: Round[] | undefined): PerformanceTarget[] {
  const runs = ourRuns(rounds)
  const once = exactlyOnce(rounds)
  const peak = Math.max(...runs.map((run) => run.peakRssBytes))
  const isRun = runs.length > 0
  return [
    { what: 'a million in a tight loop', needed: 'each once', measured: once.text, isMet: isRun ? once.isMet : undefined },
    {
      what: 'a million in a tight loop, peak memory',
      needed: '≤ 700 MB',
      measured: isRun ? `${numberText(peak / 1e6, 0)} MB in the worst round` : 'not run',
      isMet: isRun ? peak <= 0.7e9 : undefined,
    },
  ]
}

function sizeTarget(installed: Installed): PerformanceTarget {
  const smallest = Math.min(...PEER_NAMES.map((name) => installed[name].bytes))
  const { bytes } = installed.switchyard
  return {
    what: 'installed size with dependencies',
    needed: `< ${numberText(smallest / 1e3, 0)} kB, the smallest other`,
    measured: `${numberText(bytes / 1e3, 0)} kB`,
    isMet: bytes < smallest,
  }
}

function loadTargets(loadTimes: LoadTimes | undefined): PerformanceTarget[] {
  return MODULE_SYSTEMS.map((system) => {
    const spread = (name: ClientName): Spread | undefined => loadTimes && spreadOf(loadTimes[system][name])
    const fastest = Math.min(...PEER_NAMES.map((name) => spread(name)?.median ?? Number.NaN))
    const ours = spread('switchyard')
    return {
      what: `load time, ${system}`,
      needed: loadTimes ? `< ${numberText(fastest, 1)} ms, the fastest other` : 'below every other',
      measured: ours ? `${spreadText(ours, 1)} ms` : 'not run',
      isMet: ours && ours.median < fastest,
    }
  })
}

function ourRuns(rounds: Round[] | undefined): Run[] {
  return (rounds ?? []).flatMap((round) => round.switchyard ?? [])
}

function exactlyOnce(rounds: Round[] | undefined): { isMet: boolean; text: string } {
  const runs = ourRuns(rounds)
  const failed = runs.filter((run) => !run.isExactlyOnce).length
  const text = runs.length === 0 ? 'not run' : failed === 0 ? 'each once' : `not each once in ${failed} of ${runs.length} rounds`
  return { isMet: runs.length > 0 && failed === 0, text }
}
