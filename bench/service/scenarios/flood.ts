// A flood with a dead destination: sends events as fast as they are accepted, and measures the memory of the service.

import { closedPort } from '../environment/closed-port.ts'
import { rssBytes } from '../environment/process-stats.ts'
import { createFolder, nextReport, removeFolder, startScript, stop } from '../environment/processes.ts'
import type { ReceiverReport } from '../environment/receiver.ts'
import { startService } from '../environment/service.ts'
import { createTraffic } from '../environment/traffic.ts'

/** How the destination fails: it refuses connections, or accepts them and never answers. */
export type Death = 'refusing' | 'hanging'

export interface FloodRun {
  death: Death
  seconds: number
  acknowledged: number
  refusals: Record<string, number>
  peakFirstHalfBytes: number
  peakSecondHalfBytes: number
  complaints: string[]
}

const SAMPLE_MS = 100

export async function measureFlood(death: Death, seconds: number): Promise<FloodRun> {
  const folder = createFolder()
  const traffic = await createTraffic()
  const hanging = startScript('receiver.ts', ['hang'])
  try {
    const { port } = await nextReport<ReceiverReport, 'listening'>(hanging, 'listening', 20_000)
    const service = await startService(folder)
    try {
      const source = await service.defaultSource()
      await service.createDestination('dead', `http://127.0.0.1:${death === 'hanging' ? port : await closedPort()}/`, source)
      const samples: number[] = []
      const sampler = setInterval(() => samples.push(rssBytes(service.pid)), SAMPLE_MS)
      const { acknowledged, refusals } = await traffic.flood(service.targetOf(source), seconds * 1_000)
      clearInterval(sampler)
      const half = Math.floor(samples.length / 2)
      const owed = (await service.ledger()).reduce((sum, line) => sum + line.owed, 0)
      return {
        death,
        seconds,
        acknowledged,
        refusals,
        peakFirstHalfBytes: Math.max(...samples.slice(0, half)),
        peakSecondHalfBytes: Math.max(...samples.slice(half)),
        complaints: owed === acknowledged ? [] : [`${owed} owed for ${acknowledged} acknowledged`],
      }
    } finally {
      await service.stop()
    }
  } finally {
    await Promise.all([traffic.close(), stop(hanging, 'SIGKILL')])
    removeFolder(folder)
  }
}
