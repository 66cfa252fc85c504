// Type declarations for what the benchmark uses of packages that only bench/service installs, so that a checkout without them
// type-checks.

declare module 'graphile-worker' {
  import type { Pool } from 'pg'
  export class Logger {
    constructor(factory: () => () => void)
    info(message: string): void
  }
  interface Shared {
    pgPool: Pool
    logger: Logger
  }
  interface Preset {
    worker: { concurrentJobs: number; localQueue: { size: number }; completeJobBatchDelay: number; failJobBatchDelay: number }
  }
  export function makeWorkerUtils(options: Shared): Promise<{
    migrate(): Promise<void>
    addJobs(jobs: { identifier: string; payload: unknown }[]): Promise<unknown>
  }>
  export function run(
    options: Shared & { preset: Preset; noHandleSignals: boolean; taskList: Record<string, (payload: unknown) => Promise<void>> },
  ): Promise<unknown>
}

declare module 'bullmq' {
  interface Connection {
    host: string
    port: number
    maxRetriesPerRequest?: null
  }
  export class Queue {
    constructor(name: string, options: { connection: Connection; defaultJobOptions: { removeOnComplete: boolean } })
    waitUntilReady(): Promise<unknown>
    addBulk(jobs: { name: string; data: unknown }[]): Promise<unknown>
    getJobCounts(...states: string[]): Promise<Record<string, number>>
  }
  export class Worker {
    constructor(name: string, work: (job: { data: unknown }) => Promise<void>, options: { connection: Connection; concurrency: number })
    waitUntilReady(): Promise<unknown>
  }
}
