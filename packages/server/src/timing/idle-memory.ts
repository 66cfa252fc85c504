// Returns memory to the system when a thread has become idle. V8 collects garbage when the heap grows, so the heap of a thread that has nothing
// to do stays as large as its start or its last load made it.

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const CHECK_EVERY_MS = 1_000
/** A thread is idle if it used less than this share of the time between two checks, several times in a row. */
const IDLE_SHARE = 0.01
const IDLE_CHECKS = 2
/** A collection stops the thread, so it runs only if the heap has grown by this much. */
const WORTH_BYTES = 8_000_000
/** Between two collections, so that a thread with little work is not stopped again and again. */
const PAUSE_CHECKS = 60

export interface ThreadMemory {
  /** The share of the time since the previous call in which the thread was busy. */
  busyShare: () => number
  heapBytes: () => number
  collect: () => void
}

/** Returns the check, which must be called every second. */
export function createIdleCheck({ busyShare, heapBytes, collect }: ThreadMemory): () => void {
  let idleChecks = 0
  let pause = 0
  let leftBytes = 0
  return () => {
    pause -= 1
    idleChecks = busyShare() < IDLE_SHARE ? idleChecks + 1 : 0
    if (idleChecks < IDLE_CHECKS || pause > 0 || heapBytes() < leftBytes + WORTH_BYTES) return
    collect()
    leftBytes = heapBytes()
    pause = PAUSE_CHECKS
    idleChecks = 0
  }
}

/** For the calling thread, until it ends. Does not keep it alive. */
export function releaseMemoryWhenIdle(): void {
  let before = performance.eventLoopUtilization()
  const busyShare = (): number => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization
  }
  setInterval(createIdleCheck({ busyShare, heapBytes, collect: collectGarbage }), CHECK_EVERY_MS).unref()
}

/** The memory that the heap of this thread has taken from the system. */
export function heapBytes(): number {
  return getHeapStatistics().total_physical_size
}

/**
 * Collects all garbage, and returns free memory to the system. V8 has no other interface for this than the function that it adds to new contexts
 * while the flag is set. The flag is reset at once, because threads that start with other flags cannot use the compile cache of this one.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('globalThis.gc') as ((options: object) => void) | undefined
  setFlagsFromString('--no-expose-gc')
  // Undefined if another thread has reset the flag in the meantime.
  collect?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
