// The owner's side of one thread that runs transformations. The thread is started for the first slice. It is killed if one message keeps it
// busy for too long, which happens only in loops of QuickJS itself: those do not stop at the limit of the message.

import { Worker } from 'node:worker_threads'
import { THREAD_LIMITS, type WasmModule } from './quickjs.ts'
import type { Slice, SliceDone, TransformThreadOptions } from './transform-thread.ts'

/**
 * How the work on a slice ended: with results, or with the end of the thread while it worked on the message at an index. The index is -1 if the
 * thread ended before the first message, and null if the slice had not got its turn, so that its messages have nothing to do with it.
 */
export type SliceEnd = SliceDone | { lostAt: number | null; wasBlocked: boolean }

/** How often the progress of the thread is checked. */
const CHECK_MS = 50
/** A thread that makes no progress is replaced after this time, even if it uses no CPU time: it should never happen. */
const MAX_SILENCE_MS = 30_000
/** A thread without work is ended after this time, to free its memory. */
const IDLE_MS = 60_000

interface Work {
  slice: Slice
  /** The CPU time after which a message counts as blocking the thread. */
  blockedMs: number
  done: (end: SliceEnd) => void
}

/** What was last seen of the message that the thread works on. */
interface Sighting {
  started: number
  sinceMs: number
  /** CPU time of the thread when it was seen first. */
  cpuMs: number | null
}

export class WatchedThread {
  readonly #wasm: () => WasmModule
  readonly #isSlow: boolean
  readonly #work: Work[] = []
  readonly #progress = new Int32Array(new SharedArrayBuffer(8))
  #worker: Worker | null = null
  #checks: NodeJS.Timeout | null = null
  #idle: NodeJS.Timeout | null = null
  #seen: Sighting | null = null
  #memoryBytes = 0

  constructor(wasm: () => WasmModule, isSlow: boolean) {
    this.#wasm = wasm
    this.#isSlow = isSlow
  }

  /** The number of slices that the thread has and has not finished. */
  get pending(): number {
    return this.#work.length
  }

  /** Memory of the sandbox, as the thread last reported it. */
  get memoryBytes(): number {
    return this.#memoryBytes
  }

  start(slice: Slice, blockedMs: number, done: (end: SliceEnd) => void): void {
    if (this.#idle !== null) clearTimeout(this.#idle)
    this.#idle = null
    this.#work.push({ slice, blockedMs, done })
    this.#worker ??= this.#open()
    this.#worker.postMessage(slice, [])
    this.#checks ??= setInterval(() => void this.#check(), CHECK_MS)
  }

  async close(): Promise<void> {
    await this.#end(false)
  }

  #open(): Worker {
    this.#progress.fill(0)
    Atomics.store(this.#progress, 1, -1)
    this.#seen = null
    const options: TransformThreadOptions = { wasm: this.#wasm(), progress: this.#progress, isSlow: this.#isSlow }
    const worker = new Worker(new URL('./transform-thread.ts', import.meta.url), {
      workerData: options,
      name: this.#isSlow ? 'transform-slow' : 'transform',
      resourceLimits: THREAD_LIMITS,
      env: {},
    })
    // A thread without work must not keep the process alive; with work, the checks do.
    worker.unref()
    worker.on('message', (done: SliceDone) => {
      // A thread that is being ended may still report. Its slice was reported as lost, and the first one now belongs to another thread.
      if (this.#worker !== worker) return
      const first = this.#work.shift()
      this.#memoryBytes = done.memoryBytes
      if (this.#work.length === 0) this.#rest()
      first?.done(done)
    })
    // An exit event follows.
    worker.on('error', () => {})
    worker.on('exit', () => {
      if (this.#worker === worker) void this.#end(false)
    })
    return worker
  }

  #rest(): void {
    if (this.#checks !== null) clearInterval(this.#checks)
    this.#checks = null
    this.#idle = setTimeout(() => void this.#end(false), IDLE_MS)
    this.#idle.unref()
  }

  /** Ends the thread. What it had not finished is reported, the first slice with the message that was being worked on. */
  async #end(wasBlocked: boolean): Promise<void> {
    const worker = this.#worker
    const at = Atomics.load(this.#progress, 1)
    this.#worker = null
    this.#memoryBytes = 0
    const lost = this.#work.splice(0)
    this.#rest()
    if (this.#idle !== null) clearTimeout(this.#idle)
    for (const [number, { done }] of lost.entries()) done({ lostAt: number === 0 ? at : null, wasBlocked: wasBlocked && number === 0 })
    await worker?.terminate()
  }

  async #check(): Promise<void> {
    const worker = this.#worker
    const work = this.#work[0]
    const started = Atomics.load(this.#progress, 0)
    if (worker === null || work === undefined) return
    const nowMs = performance.now()
    if (this.#seen === null || this.#seen.started !== started) this.#seen = { started, sinceMs: nowMs, cpuMs: null }
    const seen = this.#seen
    if (nowMs - seen.sinceMs > MAX_SILENCE_MS) return void this.#end(false)
    if (Atomics.load(this.#progress, 1) < 0) return
    // Node.js 24.0 to 24.5 cannot tell the CPU time of another thread. There, the time on the clock must do.
    const usage = 'cpuUsage' in worker ? await worker.cpuUsage().catch(() => null) : { user: nowMs * 1000, system: 0 }
    // By now it may be another message.
    if (usage === null || this.#seen !== seen || this.#worker !== worker || Atomics.load(this.#progress, 0) !== started) return
    const cpuMs = (usage.user + usage.system) / 1000
    seen.cpuMs ??= cpuMs
    if (cpuMs - seen.cpuMs > work.blockedMs) void this.#end(true)
  }
}
