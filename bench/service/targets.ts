// The targets for speed, memory and cost, and whether this run met them. A ratio is computed within
// a round, and the median of the ratios counts, because different minutes on a shared machine are not comparable.

import { numberText, type Spread, spreadOf, spreadText } from '../client/table.ts'
import type { PerformanceTarget } from '../client/targets.ts'
import type { Backlog, BacklogKind } from './environment/backlog.ts'
import { EVENTS_PER_REQUEST } from './environment/events.ts'
import type { Latency } from './environment/latency.ts'
import type { ProgramName } from './environment/programs.ts'
import type { Round } from './environment/rounds.ts'
import { CONNECTIONS, type Load } from './environment/traffic.ts'
import type { CostRound } from './scenarios/cpu-cost.ts'
import type { DeadRound, StartTimes } from './scenarios/dead-destination.ts'
import type { DeliveryRun } from './scenarios/delivery.ts'
import type { FloodRun } from './scenarios/flood.ts'
import type { IngestRun } from './scenarios/ingest.ts'
import type { SaturatedRun } from './scenarios/saturated.ts'

export type ProgramRound<Run> = Round<ProgramName, Run>

export interface Results {
  delivery: Map<Load, ProgramRound<DeliveryRun>[]>
  ingest: Map<Load, ProgramRound<IngestRun>[]>
  idle: ProgramRound<Latency>[]
  flood: FloodRun[]
  backlogs: Backlog[]
  cost: Record<BacklogKind, CostRound[]>
  dead: DeadRound[]
  starts: StartTimes | undefined
  saturated: ProgramRound<SaturatedRun>[]
  /** Runs that ended in an error. */
  failures: string[]
}

const IDLE_LIMIT_MS = 10
const COST_FACTOR = 1.2
const MEMORY_LIMIT_BYTES = 450e6
const FLAT_FACTOR = 1.1
const UNDISTURBED_FACTOR = 1.1
const SATURATED_FACTOR = 0.5
const START_LIMIT_MS = 5_000
const SINGLE_CPU_US = 100
const DELIVERY_PEAK_MB = 400
/** In runs of the same code, the p50 of an idle service varied by 8 %. */
const IDLE_BEFORE_FACTOR = 1.1
/** The lowest throughput relative to the previous version that is acceptable for a change that is not about speed. */
const BEFORE_FACTOR = 0.97

export function targets(results: Results): PerformanceTarget[] {
  const { delivery, ingest } = results
  return [
    ...[...delivery].flatMap(([load, rounds]) => deliveryTargets(load, rounds)),
    ...beforeTargets(results),
    ...[...ingest].map(([load, rounds]) =>
      ratioTarget(
        `ingest alone, durable, deduplicated, ${loadText(load)}`,
        '≥ 0.7 × bare Fastify',
        0.7,
        rateRatios(rounds, 'bare-fastify'),
      ),
    ),
    idleTarget(results.idle),
    costTarget('stored', results.cost.stored),
    costTarget('pending', results.cost.pending),
    sizeTarget(results.backlogs),
    ...floodTargets(results.flood),
    ...deadTargets(results.dead),
    startTarget(results.starts),
    saturatedTarget(results.saturated),
  ]
}

function deliveryTargets(load: Load, rounds: ProgramRound<DeliveryRun>[]): PerformanceTarget[] {
  const { eventsPerRequest } = load
  const to = (other: ProgramName, title: string, factor: number) => deliveryTarget(other, title, factor, rounds, load)
  return [
    ...(eventsPerRequest === EVENTS_PER_REQUEST
      ? [to('limit', 'the limit', 0.7), to('graphile-worker', 'graphile-worker with its documented settings', 3)]
      : []),
    to('two-thread-limit', 'the two-thread limit', eventsPerRequest === 1 ? 0.6 : 0.8),
    to('graphile-worker-tuned', 'graphile-worker tuned', 4),
    ...(eventsPerRequest === 1 ? [singleCpuTarget(load, rounds)] : []),
    peakTarget(load, rounds),
  ]
}

function singleCpuTarget(load: Load, rounds: ProgramRound<DeliveryRun>[]): PerformanceTarget {
  const cpu = spreadOf(rounds.flatMap((round) => round.get('service')?.cpuUsPerEvent ?? []))
  return {
    what: `CPU per event, ${loadText(load)}`,
    needed: `≤ ${SINGLE_CPU_US} µs in all threads`,
    measured: cpu ? `${spreadText(cpu, 0)} µs` : 'not run',
    isMet: cpu && cpu.median <= SINGLE_CPU_US,
  }
}

function peakTarget(load: Load, rounds: ProgramRound<DeliveryRun>[]): PerformanceTarget {
  const peak = spreadOf(rounds.flatMap((round) => round.get('service')?.peakRssBytes ?? []).map((bytes) => bytes / 1e6))
  return {
    what: `peak memory, ${loadText(load)}`,
    needed: `≤ ${DELIVERY_PEAK_MB} MB`,
    measured: peak ? `${spreadText(peak, 0)} MB` : 'not run',
    isMet: peak && peak.median <= DELIVERY_PEAK_MB,
  }
}

/** Only if another checkout was measured too. */
function beforeTargets({ delivery, ingest, idle }: Results): PerformanceTarget[] {
  const compared = [
    ...[...delivery].map(([load, rounds]) => [deliveryOf(load), rateRatios(rounds, 'before')] as const),
    ...[...ingest].map(([load, rounds]) => [`ingest alone, ${loadText(load)}`, rateRatios(rounds, 'before')] as const),
  ]
  const p50 = (kind: 'ackedMs' | 'sentMs') => roundRatios(idle, 'service', 'before', (run) => run[kind].p50)
  const idling = p50('ackedMs')
  return [
    ...compared.flatMap(([what, ratios]) =>
      ratios === undefined ? [] : [ratioTarget(what, `≥ ${BEFORE_FACTOR} × before`, BEFORE_FACTOR, ratios)],
    ),
    ...(idling === undefined
      ? []
      : [
          {
            what: 'acknowledged to received, idle, p50',
            needed: `≤ ${IDLE_BEFORE_FACTOR} × before`,
            measured: `${spreadText(idling, 2)} ×; sent to received ${spreadText(p50('sentMs'), 2)} ×`,
            isMet: idling.median <= IDLE_BEFORE_FACTOR,
          },
        ]),
  ]
}

/** Events per second of the service divided by those of another program, round by round. */
export function rateRatios<Run extends { eventsPerSecond: number }>(
  rounds: ProgramRound<Run>[],
  other: ProgramName,
  one: ProgramName = 'service',
): Spread | undefined {
  return roundRatios(rounds, one, other, (run) => run.eventsPerSecond)
}

/** CPU time of a program and its database divided by that of another, round by round. Other work affects it little. */
export function cpuRatios(rounds: ProgramRound<DeliveryRun>[], other: ProgramName, one: ProgramName): Spread | undefined {
  return roundRatios(rounds, one, other, (run) => run.cpuUsPerEvent + run.databaseCpuUsPerEvent)
}

function roundRatios<Run>(
  rounds: ProgramRound<Run>[],
  one: ProgramName,
  other: ProgramName,
  value: (run: Run) => number,
): Spread | undefined {
  return spreadOf(
    rounds.flatMap((round) => {
      const [mine, theirs] = [round.get(one), round.get(other)]
      return mine && theirs ? [value(mine) / value(theirs)] : []
    }),
  )
}

/** The cost of a round divided by the cost of the same round with the smallest backlog. */
export function costRatios(rounds: CostRound[], size: number): Spread | undefined {
  return spreadOf(
    rounds.flatMap((round) => {
      const [base, run] = [round.get(Math.min(...round.keys())), round.get(size)]
      return base && run ? [run.cpuUsPerEvent / base.cpuUsPerEvent] : []
    }),
  )
}

/** From sent to received. The time from the acknowledgement is so short, sometimes negative, that a ratio would be meaningless. */
export function deadRatios(rounds: DeadRound[], percentile: 'p50' | 'p99'): Spread | undefined {
  return spreadOf(rounds.map((round) => round.with.sentMs[percentile] / round.without.sentMs[percentile]))
}

function deliveryTarget(
  other: ProgramName,
  title: string,
  factor: number,
  rounds: ProgramRound<DeliveryRun>[],
  load: Load,
): PerformanceTarget {
  const what = `${deliveryOf(load)}, against ${title}`
  return ratioTarget(what, `≥ ${factor} × ${title}, nothing lost`, factor, rateRatios(rounds, other), complaintsOf(rounds))
}

function deliveryOf(load: Load): string {
  return `in → durable → POST out → outcome durable, ${loadText(load)}`
}

export function loadText({ eventsPerRequest, connections }: Load): string {
  const size = `${numberText(eventsPerRequest, 0)} per request`
  return connections === CONNECTIONS ? size : `${size}, ${connections} connections`
}

function ratioTarget(
  what: string,
  needed: string,
  factor: number,
  ratio: Spread | undefined,
  complaints: string[] = [],
): PerformanceTarget {
  const measured = ratio ? [`${spreadText(ratio, 2)} ×`, ...complaints].join(', ') : 'not run'
  return { what, needed, measured, isMet: ratio && ratio.median >= factor && complaints.length === 0 }
}

function complaintsOf<Run extends { complaints: string[] }>(rounds: ProgramRound<Run>[]): string[] {
  return [...new Set(rounds.flatMap((round) => round.get('service')?.complaints ?? []))]
}

function idleTarget(rounds: ProgramRound<Latency>[]): PerformanceTarget {
  const of = (percentile: 'p50' | 'p99') => spreadOf(rounds.flatMap((round) => round.get('service')?.ackedMs[percentile] ?? []))
  const p50 = of('p50')
  return {
    what: 'acknowledged to received, idle, p50',
    needed: `≤ ${IDLE_LIMIT_MS} ms`,
    measured: p50 ? `${spreadText(p50, 2)} ms, p99 ${spreadText(of('p99'), 2)} ms` : 'not run',
    isMet: p50 && p50.median <= IDLE_LIMIT_MS,
  }
}

function costTarget(kind: BacklogKind, rounds: CostRound[]): PerformanceTarget {
  const sizes = [...(rounds[0]?.keys() ?? [])].sort((a, b) => a - b)
  const medians = sizes.flatMap((size) => costRatios(rounds, size)?.median ?? [])
  const factor = Math.max(...medians) / Math.min(...medians)
  const complaints = [...new Set(rounds.flatMap((round) => [...round.values()].flatMap((run) => run.complaints)))]
  const isRun = medians.length > 1
  return {
    what: `CPU per event at ${sizes.map((size) => numberText(size, 0)).join(', ') || '10, 1,000, 1,000,000'} ${kind}`,
    needed: `within ${COST_FACTOR} × of each other`,
    measured: isRun ? [`${numberText(factor, 2)} ×`, ...complaints].join(', ') : 'not run',
    isMet: isRun ? factor <= COST_FACTOR && complaints.length === 0 : undefined,
  }
}

function sizeTarget(backlogs: Backlog[]): PerformanceTarget {
  const largest = backlogs.filter(({ kind }) => kind === 'pending').sort((a, b) => b.events - a.events)[0]
  const factor = largest && largest.storeBytes / largest.dataBytes
  return {
    what: `the store with ${largest ? numberText(largest.events, 0) : 'a million'} deliveries pending`,
    needed: 'no larger than the data',
    measured: factor === undefined ? 'not run' : `${numberText(factor, 2)} × the bytes sent`,
    isMet: factor === undefined ? undefined : factor <= 1,
  }
}

function floodTargets(runs: FloodRun[]): PerformanceTarget[] {
  const peak = Math.max(...runs.map((run) => Math.max(run.peakFirstHalfBytes, run.peakSecondHalfBytes)))
  const growth = Math.max(...runs.map((run) => run.peakSecondHalfBytes / run.peakFirstHalfBytes))
  const complaints = [...new Set(runs.flatMap((run) => run.complaints))]
  const isRun = runs.length > 0
  const seconds = runs[0]?.seconds ?? 30
  return [
    {
      what: `memory in ${seconds} s of flood with a dead destination`,
      needed: `≤ ${numberText(MEMORY_LIMIT_BYTES / 1e6, 0)} MB`,
      measured: isRun ? [`${numberText(peak / 1e6, 0)} MB at most`, ...complaints].join(', ') : 'not run',
      isMet: isRun ? peak <= MEMORY_LIMIT_BYTES && complaints.length === 0 : undefined,
    },
    {
      what: 'the same, second half against first',
      needed: `flat: ≤ ${FLAT_FACTOR} ×`,
      measured: isRun ? `${numberText(growth, 2)} × in the worse case` : 'not run',
      isMet: isRun ? growth <= FLAT_FACTOR : undefined,
    },
  ]
}

function deadTargets(rounds: DeadRound[]): PerformanceTarget[] {
  return (['p50', 'p99'] as const).map((percentile) => {
    const ratio = deadRatios(rounds, percentile)
    return {
      what: `a healthy destination's ${percentile} beside a dead one with a million pending`,
      needed: 'within 10 % of before',
      measured: ratio ? `${spreadText(ratio, 2)} ×` : 'not run',
      isMet: ratio && ratio.median <= UNDISTURBED_FACTOR,
    }
  })
}

function startTarget(starts: StartTimes | undefined): PerformanceTarget {
  const worst = starts && spreadOf([...starts.stoppedMs, ...starts.killedMs])
  return {
    what: 'start with a million pending, also after kill -9',
    needed: `seconds: ≤ ${START_LIMIT_MS / 1_000} s`,
    measured: worst ? `${spreadText(worst, 0)} ms` : 'not run',
    isMet: worst && worst.max <= START_LIMIT_MS,
  }
}

function saturatedTarget(rounds: ProgramRound<SaturatedRun>[]): PerformanceTarget {
  const ratio = spreadOf(rounds.flatMap((round) => round.get('service')?.ratio ?? []))
  const needed = `≥ ${SATURATED_FACTOR} × what it gets without ingest`
  return ratioTarget('deliveries to a healthy destination while ingest is saturated', needed, SATURATED_FACTOR, ratio, complaintsOf(rounds))
}
