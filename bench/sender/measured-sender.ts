// The service's sender thread, which also reports its CPU time.

import { workerData } from 'node:worker_threads'
import type { ThreadOptions } from '../../packages/server/src/delivery/link/thread-channel.ts'
import { answerCpu } from './cpu-channel.ts'

export interface MeasuredOptions extends ThreadOptions {
  /** See cpu-channel.ts. */
  thread: string
  /** The program of a sender thread, of this checkout or another one. */
  program: string
}

const { thread, program } = workerData as MeasuredOptions
await import(program)
answerCpu(thread)
