// The memory, file descriptors and threads of a node's processes, from /proc. Only on Linux.

import { readdirSync, readFileSync } from 'node:fs'

export interface Usage {
  /** Resident memory, in MB. */
  memoryMb: number
  descriptors: number
  threads: number
}

/** Of one process; undefined if it has ended. */
export function usageOf(pid: number): Usage | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
    return { memoryMb: field('VmRSS') / 1_024, descriptors: readdirSync(`/proc/${pid}/fd`).length, threads: field('Threads') }
  } catch {
    return undefined
  }
}
