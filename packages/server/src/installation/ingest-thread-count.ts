// How many ingest threads a process has.

import type { Config } from '../config.ts'
import { coresForThisProcess, processCount } from './processes/process-count.ts'

type Settings = Pick<Config, 'ingestThreads' | 'processes' | 'store'>

/** Up to this many cores, the main thread, the thread that writes to the store and the sender threads use all of them. */
const FEW_CORES = 4
const CORES_PER_THREAD = 4
/** The main thread cannot decide about more requests than this many threads read. */
const MAX_AUTO_THREADS = 4

/** `problem` says why the number in the settings does not apply. */
export function ingestThreadCount(
  config: Settings,
  { cores, platform = process.platform }: { cores?: number; platform?: NodeJS.Platform } = {},
): { count: number; problem: string | null } {
  const { ingestThreads } = config
  const isShared = processCount(config, cores) > 1
  const isAble = platform === 'linux' && !isShared
  if (ingestThreads === 'auto') {
    const own = coresForThisProcess(config, cores)
    return { count: !isAble || own <= FEW_CORES ? 0 : Math.min(MAX_AUTO_THREADS, Math.floor(own / CORES_PER_THREAD)), problem: null }
  }
  if (ingestThreads === 0 || isAble) return { count: ingestThreads, problem: null }
  const problem = isShared
    ? 'SWITCHYARD_INGEST_THREADS is ignored, because SWITCHYARD_PROCESSES is above 1: each process reads its requests in its main thread'
    : `SWITCHYARD_INGEST_THREADS is ignored, because threads can share a port only on Linux, not on ${platform}: the main thread reads all requests`
  return { count: 0, problem }
}
