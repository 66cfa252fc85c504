// Measures how much of the machine other work used. On a shared machine this decides how reliable a number is, and it does not
// affect all programs equally: a program with many processes loses less to other work than one with few.

import { availableParallelism } from 'node:os'
import { busyUs, cpuUs, descendantsOf } from './process-stats.ts'
import { pause } from './processes.ts'

/** Call the returned function after the run. It returns the fraction of all cores that other work used meanwhile. */
export function startNoiseMeter(): () => number {
  const startedAt = performance.now()
  const before = othersUs()
  return () => {
    const availableUs = (performance.now() - startedAt) * 1_000 * availableParallelism()
    // The kernel's two counters are not read at the same instant.
    return Math.min(1, Math.max(0, (othersUs() - before) / availableUs))
  }
}

/** Waits for a second in which other work uses less than this fraction, up to a timeout. */
export async function untilCalm(share: number, limitMs: number): Promise<void> {
  const limit = performance.now() + limitMs
  while (performance.now() < limit) {
    const stop = startNoiseMeter()
    await pause(1_000)
    if (stop() < share) return
  }
}

function othersUs(): number {
  return busyUs() - cpuUs([process.pid, ...descendantsOf(process.pid)])
}
