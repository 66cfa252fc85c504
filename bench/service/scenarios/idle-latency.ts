// An idle service: sends single events about 50 ms apart, and measures the time from acknowledgement to arrival at the receiver.

import { type Latency, measureLatency } from '../environment/latency.ts'
import { createFolder, removeFolder } from '../environment/processes.ts'
import type { Program } from '../environment/programs.ts'
import { createTraffic } from '../environment/traffic.ts'

const PER_SECOND = 20

export async function measureIdle(program: Program, events: number): Promise<Latency> {
  const folder = createFolder()
  const traffic = await createTraffic()
  try {
    const running = await program.start({ folder, receiverUrl: traffic.receiverUrl })
    try {
      // Opens connections and lets code be compiled first, because an idle service has usually been running for a while.
      await measureLatency(traffic, running.target, 40, PER_SECOND)
      return await measureLatency(traffic, running.target, events, PER_SECOND)
    } finally {
      await running.stop()
    }
  } finally {
    await traffic.close()
    removeFolder(folder)
  }
}
