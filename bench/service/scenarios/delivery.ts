// End-to-end throughput: events per second of each program, from the first byte sent until the last event was
// received and its outcome durably written. Every run also verifies that nothing was lost.

import { nowMs } from '../http-message.ts'
import { cpuUs, peakRssBytes } from '../process-stats.ts'
import { createFolder, pause, removeFolder } from '../processes.ts'
import type { Program, RunningProgram } from '../programs.ts'
import { createTraffic, requireAll, type Traffic } from '../traffic.ts'

export interface DeliveryRun {
  events: number
  eventsPerSecond: number
  acknowledgedPerSecond: number
  cpuUsPerEvent: number
  databaseCpuUsPerEvent: number
  peakRssBytes: number
  missing: number
  duplicates: number
  /** Problems with the run; empty if the run counts. */
  complaints: string[]
}

const SETTLE_LIMIT_MS = 180_000

export async function measureDelivery(program: Pick<Program, 'start'>, events: number, warmUpEvents: number): Promise<DeliveryRun> {
  const folder = createFolder()
  const traffic = await createTraffic()
  try {
    const running = await program.start({ folder, receiverUrl: traffic.receiverUrl })
    try {
      await deliver(traffic, running, warmUpEvents)
      const cpuBefore = cpuOf(running)
      const { sent, endedAtMs } = await deliver(traffic, running, events)
      const cpu = cpuOf(running).map((us, index) => (us - (cpuBefore[index] ?? 0)) / events)
      const { missing, duplicates } = await traffic.received(sent)
      const disagreement = await running.disagreement(warmUpEvents + events)
      return {
        events,
        eventsPerSecond: events / ((endedAtMs - sent.startedAtMs) / 1_000),
        acknowledgedPerSecond: events / ((sent.lastAnswerAtMs - sent.startedAtMs) / 1_000),
        cpuUsPerEvent: cpu[0] ?? 0,
        databaseCpuUsPerEvent: cpu[1] ?? 0,
        peakRssBytes: peakRssBytes(running.pid),
        missing,
        duplicates,
        complaints: [...(missing > 0 ? [`lost ${missing}`] : []), ...(disagreement === undefined ? [] : [disagreement])],
      }
    } finally {
      await running.stop()
    }
  } finally {
    await traffic.close()
    removeFolder(folder)
  }
}

/** Sends events, and waits until all have arrived and the program has nothing pending. */
export async function deliver(
  traffic: Traffic,
  running: Pick<RunningProgram, 'target' | 'remaining'>,
  events: number,
  eventsPerRequest?: number,
) {
  const complete = traffic.expectNext(events, SETTLE_LIMIT_MS)
  const [sent, lastNewAtMs] = await Promise.all([traffic.burst(running.target, events, eventsPerRequest).then(requireAll), complete])
  const limit = nowMs() + SETTLE_LIMIT_MS
  while ((await running.remaining()) > 0) {
    if (nowMs() > limit) throw new Error('the program still has pending outcomes after all events arrived')
    await pause(10)
  }
  return { sent, lastNewAtMs, endedAtMs: Math.max(nowMs(), lastNewAtMs) }
}

function cpuOf(running: RunningProgram): number[] {
  return [cpuUs(running.pids ?? [running.pid]), cpuUs(running.databasePids())]
}
