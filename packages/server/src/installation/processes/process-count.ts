// How many processes `serve` runs, and how many cores each of them may use. Both follow from the settings alone, so the supervisor and
// every process come to the same result.

import { availableParallelism } from 'node:os'
import { type Config, MAX_PROCESSES } from '../../config.ts'

type Settings = Pick<Config, 'processes' | 'store'>

/** `auto` is one process per core with PostgreSQL, and one process with SQLite. */
export function processCount({ processes, store }: Settings, cores = availableParallelism()): number {
  if (store.kind === 'sqlite') return 1
  return processes === 'auto' ? Math.min(cores, MAX_PROCESSES) : processes
}

/** The cores of the machine divided by the number of processes, at least 1. For defaults such as the number of threads of a process. */
export function coresForThisProcess(config: Settings, cores = availableParallelism()): number {
  return Math.max(1, Math.floor(cores / processCount(config, cores)))
}
