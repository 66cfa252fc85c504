// How much of the machine went to work that is not the benchmark's. On a shared machine that decides how far a number can
// be trusted, and it does not meet all alike: a program of many processes loses less to a neighbour than one of few.

import { availableParallelism } from 'node:os'
import { busyUs, cpuUs, descendantsOf } from './process-stats.ts'
import { pause } from './processes.ts'

/** Call the result when the run is over: the share of all cores that others used meanwhile. */
export function startNoiseMeter(): () => number {
  const startedAt = performance.now()
  const before = othersUs()
  return () => {
    const availableUs = (performance.now() - startedAt) * 1_000 * availableParallelism()
    // The kernel's two counts are not taken at one instant.
    return Math.min(1, Math.max(0, (othersUs() - before) / availableUs))
  }
}

/** Waits for a second in which others use less than this share, but not for ever. */
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
