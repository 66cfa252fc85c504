// The CPU time per event, with 10, 1,000 or 1,000,000 messages in the store, or pending for
// a dead destination. Small stores are copied for each round, so that they stay small.

import { type Backlog, copyOf } from '../backlog.ts'
import { cpuUs } from '../process-stats.ts'
import { pause, removeFolder } from '../processes.ts'
import { startService } from '../service.ts'
import type { Traffic } from '../traffic.ts'
import { deliver } from './delivery.ts'

export interface CostRun {
  cpuUsPerEvent: number
  eventsPerSecond: number
  complaints: string[]
}

/** Above this size, copying costs more than the growth matters. */
const COPY_LIMIT = 100_000

export async function measureCost(traffic: Traffic, backlog: Backlog, events: number, warmUpEvents: number): Promise<CostRun> {
  const folder = backlog.events > COPY_LIMIT ? backlog.folder : copyOf(backlog)
  const service = await startService(folder)
  try {
    const source = await service.defaultSource()
    const healthy = async () => (await service.ledger()).find(({ destinationId }) => destinationId === backlog.healthyId)
    const running = { target: service.targetOf(source), remaining: async () => (await healthy())?.pending ?? 0 }
    const before = await healthy()
    await deliver(traffic, running, warmUpEvents)
    await untilQuiet(service.pid)
    const cpuBefore = cpuUs([service.pid])
    const { sent, endedAtMs } = await deliver(traffic, running, events)
    const cpuUsPerEvent = (cpuUs([service.pid]) - cpuBefore) / events
    const after = await healthy()
    const { missing } = await traffic.received(sent)
    const delivered = (after?.delivered ?? 0) - (before?.delivered ?? 0)
    return {
      cpuUsPerEvent,
      eventsPerSecond: events / ((endedAtMs - sent.startedAtMs) / 1_000),
      complaints: [
        ...(missing > 0 ? [`lost ${missing}`] : []),
        ...(delivered === events + warmUpEvents ? [] : [`${delivered} delivered for ${events + warmUpEvents} sent`]),
      ],
    }
  } finally {
    await service.stop()
    if (folder !== backlog.folder) removeFolder(folder)
  }
}

/** Waits until the service uses less than 3 % of a core for half a second, so that work left from the start or the warm-up does not count as the cost of an event. */
export async function untilQuiet(pid: number): Promise<void> {
  for (let tries = 0; tries < 60; tries += 1) {
    const before = cpuUs([pid])
    await pause(500)
    if (cpuUs([pid]) - before <= 15_000) return
  }
  throw new Error('the service did not become idle')
}
