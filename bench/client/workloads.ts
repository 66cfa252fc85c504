// The workloads: how many calls, how they are made, and with which deadlines. The README explains these
// numbers.

import { CLIENT_NAMES, type ClientName } from './clients.ts'

export const WORKLOAD_NAMES = ['yielding', 'yielding-100', 'tight', 'million'] as const
export type WorkloadName = (typeof WORKLOAD_NAMES)[number]

export interface Workload {
  name: WorkloadName
  title: string
  calls: number
  flushAt?: number
  yieldEvery: number
  clients: readonly ClientName[]
  rounds: number
  nodeOptions: string[]
}

/**
 * Not a round 100,000 but the next multiple of 300, and so of every client's batch size (15, 20, 100). With a remainder,
 * Segment's client holds the last few messages for its flushInterval of 10 s even in closeAndFlush(), and a time "to the
 * last byte" would compare that wait with our work: measured, 18.5 s instead of 6.5 s.
 */
const MANY = 100_200
const QUICK = 30_000
const YIELD_EVERY = 50

export function workloads({ rounds, isQuick, isAll }: { rounds: number; isQuick: boolean; isAll: boolean }): Workload[] {
  const calls = isQuick ? QUICK : MANY
  const million = isQuick ? 10 * QUICK : 1_000_000
  const common = { clients: CLIENT_NAMES, rounds, nodeOptions: [] }
  const n = (value: number): string => value.toLocaleString('en')
  return [
    { ...common, name: 'yielding', title: `${n(calls)} calls, the loop yields, default settings`, calls, yieldEvery: YIELD_EVERY },
    {
      ...common,
      name: 'yielding-100',
      title: `${n(calls)} calls, the loop yields, flushAt 100`,
      calls,
      yieldEvery: YIELD_EVERY,
      flushAt: 100,
    },
    { ...common, name: 'tight', title: `${n(calls)} calls in a tight loop, default settings`, calls, yieldEvery: 0 },
    {
      name: 'million',
      title: `${n(million)} calls in a tight loop, default settings`,
      calls: million,
      yieldEvery: 0,
      // Takes minutes and more memory than many machines have, so the peers run it only with --all.
      clients: isAll ? CLIENT_NAMES : ['switchyard'],
      rounds: isAll ? 1 : Math.min(3, rounds),
      // The same heap limit for every client, whatever V8 would choose for the machine's memory.
      nodeOptions: ['--max-old-space-size=4096'],
    },
  ]
}

export const DEADLINES = { stallMs: 60_000, totalMs: 180_000 }

/** The two clients that every ratio needs get time to finish; another client that is still making calls by then is shown with its partial result. */
export function loopLimitMs(client: ClientName): number {
  return client === 'switchyard' || client === 'segment' ? 60_000 : 15_000
}
