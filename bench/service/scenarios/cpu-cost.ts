// The CPU time per event, with 10, 1,000 or 1,000,000 messages in the store, or pending for
// a dead destination. Small stores are copied for each round, so that they stay small.

import { type Backlog, copyOf, type StorePlace } from '../environment/backlog.ts'
import { nowMs } from '../environment/http-message.ts'
import { cpuUs, peakRssBytes } from '../environment/process-stats.ts'
import { pause, removeFolder } from '../environment/processes.ts'
import type { Round } from '../environment/rounds.ts'
import type { Traffic } from '../environment/traffic.ts'
import { deliver } from './delivery.ts'

export interface CostRun {
  cpuUsPerEvent: number
  databaseCpuUsPerEvent: number
  eventsPerSecond: number
  peakRssBytes: number
  complaints: string[]
}

/** By the size of the backlog. */
export type CostRound = Round<number, CostRun>

/** Above this size, copying costs more than the growth matters. */
const COPY_LIMIT = 100_000

export async function measureCost(traffic: Traffic, backlog: Backlog, events: number, warmUpEvents: number): Promise<CostRun> {
  if (backlog.events > COPY_LIMIT) return measureCostAt(traffic, backlog.place, backlog.healthyId, events, warmUpEvents)
  const copy = copyOf(backlog)
  try {
    return await measureCostAt(traffic, copy, backlog.healthyId, events, warmUpEvents)
  } finally {
    removeFolder(copy.folder)
  }
}

export async function measureCostAt(
  traffic: Traffic,
  place: StorePlace,
  healthyId: string,
  events: number,
  warmUpEvents: number,
): Promise<CostRun> {
  const service = await place.start()
  try {
    const source = await service.defaultSource()
    const healthy = async () => (await service.ledger()).find(({ destinationId }) => destinationId === healthyId)
    const running = { target: service.targetOf(source), remaining: async () => (await healthy())?.pending ?? 0 }
    const deliveredBefore = (await healthy())?.delivered ?? 0
    await deliver(traffic, running, warmUpEvents)
    await untilQuiet(() => [service.pid])
    const cpu = () => [cpuUs([service.pid]), cpuUs(place.databasePids())] as const
    const before = cpu()
    const { sent, endedAtMs } = await deliver(traffic, running, events)
    const [cpuUsPerEvent, databaseCpuUsPerEvent] = cpu().map((us, at) => (us - (before[at] ?? 0)) / events) as [number, number]
    const after = await healthy()
    const { missing } = await traffic.received(sent)
    const delivered = (after?.delivered ?? 0) - deliveredBefore
    return {
      cpuUsPerEvent,
      databaseCpuUsPerEvent,
      eventsPerSecond: events / ((endedAtMs - sent.startedAtMs) / 1_000),
      peakRssBytes: peakRssBytes(service.pid),
      complaints: [
        ...(missing > 0 ? [`lost ${missing}`] : []),
        ...(delivered === events + warmUpEvents ? [] : [`${delivered} delivered for ${events + warmUpEvents} sent`]),
      ],
    }
  } finally {
    await service.stop()
  }
}

/** Waits until these processes use less than 3 % of a core for half a second, so that work left from the start or the warm-up does not count as the cost of an event. */
export async function untilQuiet(pids: () => number[], limitMs = 30_000): Promise<void> {
  const limit = nowMs() + limitMs
  while (nowMs() < limit) {
    const before = cpuUs(pids())
    await pause(500)
    if (cpuUs(pids()) - before <= 15_000) return
  }
  throw new Error(`the program did not become idle within ${limitMs / 1_000} s`)
}
