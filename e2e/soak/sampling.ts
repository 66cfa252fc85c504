// Measures a system for hours: what its first node uses, the size of the store, and how long accepting and delivering take. The first node is
// never killed, so that growth would show.

import { statSync } from 'node:fs'
import { percentile } from '../cluster/latency.ts'
import { type System, type SystemOptions, startSystem } from '../faults/system/system.ts'
import { childrenOf } from '../system/child-processes.ts'
import { usageOf } from './processes.ts'

/** One line of the table: medians and percentiles since the line before. */
export interface Sample {
  minutes: number
  acknowledged: number
  pending: number
  memoryMb: number
  hostsMb: number
  descriptors: number
  threads: number
  storeMb: number
  /** The duration of a call in ms, without retries. */
  acceptMs: [median: number, p99: number]
  /** From the first call to the arrival at a webhook in ms, with retries. */
  deliverMs: [median: number, p99: number]
  faults: number
}

const LOOK_EVERY_MS = 5_000

export interface Sampled extends AsyncDisposable {
  system: System
  take(minutes: number, faults: number): Promise<Sample>
}

export async function startSampled(options: SystemOptions): Promise<Sampled> {
  const sentMs = new Map<string, number>()
  const system = await startSystem({ ...options, onSent: (id) => void sentMs.set(id, performance.now()) })
  let delays: number[] = []
  const [first] = system.destinations
  if (first) {
    first.tally.onAccepted = (id, atMs) => {
      const since = sentMs.get(id)
      if (since !== undefined) delays.push(atMs - since)
      sentMs.delete(id)
    }
  }
  let looks: { memoryMb: number; hostsMb: number; descriptors: number; threads: number }[] = []
  const look = (): void => {
    const { pid } = system.node(1).service
    const usage = usageOf(pid)
    if (usage === undefined) return
    const hostsMb = childrenOf(pid).reduce((sum, child) => sum + (usageOf(child)?.memoryMb ?? 0), 0)
    looks.push({ ...usage, hostsMb })
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  let seenCalls = 0
  return {
    system,
    async take(minutes, faults) {
      look()
      const calls = system.traffic.calls.slice(seenCalls).filter(({ status }) => status === 200)
      seenCalls = system.traffic.calls.length
      const { data } = await system.api<{ data: { pending: number }[] }>('/ledger')
      const of = (field: keyof (typeof looks)[number]): number =>
        percentile(
          looks.map((one) => one[field]),
          0.5,
        ) || 0
      const spread = (values: number[]): [number, number] => [percentile(values, 0.5) || 0, percentile(values, 0.99) || 0]
      const sample: Sample = {
        minutes,
        acknowledged: system.traffic.acknowledged.size,
        pending: data.reduce((sum, { pending }) => sum + pending, 0),
        memoryMb: of('memoryMb'),
        hostsMb: of('hostsMb'),
        descriptors: of('descriptors'),
        threads: of('threads'),
        storeMb: await storeMb(system),
        acceptMs: spread(calls.map(({ ms }) => ms)),
        deliverMs: spread(delays),
        faults,
      }
      looks = []
      delays = []
      return sample
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await system[Symbol.asyncDispose]()
    },
  }
}

async function storeMb(system: System): Promise<number> {
  const { cluster } = system
  if (cluster !== undefined) {
    const [row] = await cluster.query<{ bytes: string }>('SELECT pg_database_size(current_database())::text AS bytes')
    return Number(row?.bytes) / 2 ** 20
  }
  const { file } = system.node(1).service
  return [file, `${file}-wal`].reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0) / 2 ** 20
}
