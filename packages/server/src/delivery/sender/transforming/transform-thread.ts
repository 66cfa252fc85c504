// The program of a thread that runs transformations. It works through one slice at a time and says in shared memory which message it is
// working on, so that its owner can tell when a message blocks it.

import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { Transformation } from '../../../model/configuration.ts'
import type { WasmModule } from './quickjs.ts'
import { Sandbox, type SandboxResult } from './sandbox.ts'
import { type PackedInputs, type PackedResults, packResults, unpackInputs } from './slice-packing.ts'

export interface TransformThreadOptions {
  wasm: WasmModule
  /** Two numbers: how many messages were started since the thread began, and the index in the slice of the current one, or -1. */
  progress: Int32Array<SharedArrayBuffer>
  /** Whether the thread runs code that takes long, with a low priority. */
  isSlow: boolean
}

/** Messages of one destination, or code to be checked. A message that needs more than `mostUs` of CPU time is left to the slow thread. */
export type Slice = { mostUs: number } & ({ transformation: Transformation; inputs: PackedInputs } | { code: string })

export interface SliceDone {
  /** Of the check, or of the first messages. If there are fewer results than messages, the slice has used up its time. */
  results: PackedResults
  /** Whether a message kept the thread busy for more than BLOCKING_MS, in calls that QuickJS does not interrupt. It has a result. */
  hasBlocked: boolean
  /** Whether a message failed at a limit. */
  hasOverrun: boolean
  cpuUs: number
  memoryBytes: number
}

/** After this time the thread turns to the next slice. */
const SLICE_MS = 10
/**
 * CPU time of a message after which its destination is moved to the slow thread, although QuickJS was not asked to stop it. Parsing and writing
 * a message of 32 KB takes 10 ms, so this is more than the 5 ms after which code is stopped.
 */
const BLOCKING_MS = 25

const port = parentPort
if (port === null) throw new Error('transform-thread.ts must run as a worker thread')
const { wasm, progress, isSlow } = workerData as TransformThreadOptions
// On Linux this applies to the calling thread alone; on other systems it would apply to the whole process.
if (isSlow && process.platform === 'linux') setPriority(19)

let sandbox = await Sandbox.create(wasm)
let last: Promise<void> = Promise.resolve()

port.on('message', (slice: Slice) => {
  last = last.then(() => work(slice))
})

async function work(slice: Slice): Promise<void> {
  const before = process.threadCpuUsage()
  const done = runSlice(slice, before)
  port?.postMessage({ ...done, cpuUs: cpuMsSince(before) * 1000 }, [])
  if (sandbox.isSpent) sandbox = await Sandbox.create(wasm)
}

function runSlice(slice: Slice, before: NodeJS.CpuUsage): SliceDone {
  const results: SandboxResult[] = []
  let hasOverrun = false
  let hasBlocked = false
  const beganMs = performance.now()
  let nowMs = beganMs
  if ('code' in slice) {
    starts(0)
    results.push(sandbox.check(slice.code, slice.mostUs))
    hasOverrun = sandbox.hasOverrun
  } else {
    for (const [at, input] of unpackInputs(slice.inputs).entries()) {
      starts(at)
      const result = sandbox.run(slice.transformation, input, slice.mostUs)
      results.push(result)
      hasOverrun ||= sandbox.hasOverrun
      const startedMs = nowMs
      nowMs = performance.now()
      // The clock is cheaper to read than the CPU time, and the messages before this one took no more CPU time than time on the clock.
      if (nowMs - startedMs > BLOCKING_MS) hasBlocked ||= cpuMsSince(before) - (startedMs - beganMs) > BLOCKING_MS
      if (result.kind === 'slow' || sandbox.isSpent || nowMs - beganMs > SLICE_MS) break
    }
  }
  Atomics.store(progress, 1, -1)
  return { results: packResults(results), hasBlocked, hasOverrun, cpuUs: 0, memoryBytes: sandbox.memoryBytes }
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

function starts(at: number): void {
  Atomics.store(progress, 1, at)
  Atomics.add(progress, 0, 1)
}
