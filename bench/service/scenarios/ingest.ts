// Ingest only: events per second from the first byte sent to the last answer, without a destination.

import { cpuUs } from '../environment/process-stats.ts'
import { createFolder, removeFolder } from '../environment/processes.ts'
import type { Program } from '../environment/programs.ts'
import { createTraffic, type Load, requireAll } from '../environment/traffic.ts'

export interface IngestRun {
  events: number
  eventsPerSecond: number
  cpuUsPerEvent: number
}

export async function measureIngest(program: Program, events: number, warmUpEvents: number, load?: Load): Promise<IngestRun> {
  const folder = createFolder()
  const traffic = await createTraffic()
  try {
    const running = await program.start({ folder })
    try {
      await traffic.burst(running.target, warmUpEvents, load)
      const cpuBefore = cpuUs([running.pid])
      const { startedAtMs, lastAnswerAtMs } = requireAll(await traffic.burst(running.target, events, load))
      return {
        events,
        eventsPerSecond: events / ((lastAnswerAtMs - startedAtMs) / 1_000),
        cpuUsPerEvent: (cpuUs([running.pid]) - cpuBefore) / events,
      }
    } finally {
      await running.stop()
    }
  } finally {
    await traffic.close()
    removeFolder(folder)
  }
}
