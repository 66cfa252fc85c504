// Runs transformations in two threads: a fast one for messages that take up to 5 ms of CPU time each, as nearly all do, and a slow one with a
// low priority for the others. In both, destinations take turns. A destination whose message takes longer is moved to the slow thread with all
// that it has waiting, so it delays the others once, by at most two slices. There, code that keeps running into its limits waits in between
// (overrun-debt.ts). Threads are started when they are needed, and what waits is bounded.

import type { Transformation } from '../../../model/configuration.ts'
import { OverrunDebt } from './overrun-debt.ts'
import { compileQuickJs, type WasmModule } from './quickjs.ts'
import { DEFAULT_LIMITS, type SandboxResult, tooSlow } from './sandbox.ts'
import { packInputs, unpackResults } from './slice-packing.ts'
import type { CodeProblem, Transformer, TransformInput, TransformResult } from './transformer.ts'
import { type SliceEnd, WatchedThread } from './watched-thread.ts'

/** The most CPU time that a message may take in the fast thread. */
const FAST_US = 5_000
/** A thread that one message keeps busy for this much longer than it may is killed. */
const BLOCKED_MS = 100
/** What a thread is given at a time: enough that the hop between threads costs little, and so little that others soon get their turn. */
const SLICE_MESSAGES = 64
const SLICE_BYTES = 512 * 1024
/** Slices that the fast thread has at a time, so that it need not wait for the next one. */
const AHEAD = 2
/** How much text may wait. Lanes hold back what a destination does not get rid of, so this is a last resort. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
/** How long a destination stays in the slow thread after a slow message, and after a message for which a thread had to be killed. */
const SLOW_MS = 60_000
const BLOCKING_MS = 3_600_000
/** A message is given up if this many threads ended while they worked on it, although nobody killed them. */
const MAX_LOSSES = 2
/** A job is given up if this many threads ended before they worked on one of its messages: threads cannot be started now. */
const MAX_FAILED_STARTS = 3
/** The name under which checks are scheduled, like messages of a destination. */
const CHECKS = '(checks)'

type JobResult = Exclude<SandboxResult, { kind: 'slow' }>

/** A call of run() or check(). */
interface Job {
  destinationId: string
  transformation: Transformation
  /** Empty for a check. */
  inputs: readonly TransformInput[]
  /** The number of results: one per message, and one for a check. */
  count: number
  /** The results so far, in order. */
  results: JobResult[]
  /** The result of a later message, if it is known. */
  known: Map<number, JobResult>
  /** How many threads ended while they worked on a message, by index. */
  losses: Map<number, number>
  failedStarts: number
  bytes: number
  done: (results: readonly JobResult[]) => void
}

/** A destination that was slow lately. */
interface SlowDestination {
  code: string
  untilMs: number
  jobs: Job[]
  debt: OverrunDebt
}

export class ThreadTransformer implements Transformer {
  #wasm: WasmModule | null = null
  readonly #fast = new WatchedThread(() => this.#compiled(), false)
  readonly #slow = new WatchedThread(() => this.#compiled(), true)
  /** By destination, in the order in which they get their turn. */
  readonly #fastJobs = new Map<string, Job[]>()
  /** In the same order. */
  readonly #slowDestinations = new Map<string, SlowDestination>()
  readonly #open = new Set<Job>()
  #bytes = 0
  #isClosed = false
  #pause: NodeJS.Timeout | undefined

  run(
    destinationId: string,
    transformation: Transformation,
    inputs: readonly TransformInput[],
    done: (results: readonly TransformResult[]) => void,
  ): () => void {
    const job = this.#start(destinationId, transformation, inputs, inputs.length, done as Job['done'])
    return () => this.#cancel(job)
  }

  /** Loads the code without calling its function, and resolves to what is wrong with it. Rejects if threads cannot be started now. */
  check(code: string): Promise<CodeProblem | null> {
    return new Promise((resolve, reject) => {
      this.#start(CHECKS, { code, ...DEFAULT_LIMITS }, [], 1, ([result]) => {
        if (result?.kind === 'checked') resolve(result.problem)
        else if (result?.kind === 'failed') resolve({ line: null, column: null, message: result.error })
        else reject(new Error(result?.kind === 'unavailable' ? result.error : 'the check has no result'))
      })
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#pause)
    this.#fastJobs.clear()
    this.#slowDestinations.clear()
    for (const job of this.#open) this.#giveUp(job, 'the service is stopping')
    await Promise.all([this.#fast.close(), this.#slow.close()])
  }

  /** Memory of both sandboxes, as they last reported it. */
  get memoryBytes(): number {
    return this.#fast.memoryBytes + this.#slow.memoryBytes
  }

  #start(destinationId: string, transformation: Transformation, inputs: readonly TransformInput[], count: number, done: Job['done']): Job {
    const bytes = inputs.reduce((sum, { text }) => sum + text.length, 0)
    const state = { results: [], known: new Map(), losses: new Map(), failedStarts: 0 }
    const job: Job = { destinationId, transformation, inputs, count, ...state, bytes, done }
    this.#open.add(job)
    this.#bytes += bytes
    queueMicrotask(() => {
      if (this.#isClosed) this.#giveUp(job, 'the service is stopping')
      else if (this.#bytes > MAX_WAITING_BYTES) this.#giveUp(job, 'too many messages are waiting for transformations')
      else if (this.#open.has(job)) this.#place(job)
    })
    return job
  }

  /** What a thread is working on ends at its limits. The rest must not wait: after a change, new code would have to wait for code that loops. */
  #cancel(job: Job): void {
    if (!this.#close(job)) return
    for (const jobs of [this.#fastJobs.get(job.destinationId), this.#slowDestinations.get(job.destinationId)?.jobs]) {
      const at = jobs?.indexOf(job) ?? -1
      if (at >= 0) jobs?.splice(at, 1)
    }
  }

  // ── Order of work ──

  #place(job: Job): void {
    if (job.results.length === job.count) return this.#finish(job)
    const slow = this.#slowDestinations.get(job.destinationId)
    if (slow !== undefined && slow.jobs.length === 0 && (slow.untilMs < performance.now() || slow.code !== job.transformation.code)) {
      this.#slowDestinations.delete(job.destinationId)
      this.#placeFast(job)
    } else if (slow === undefined) this.#placeFast(job)
    else slow.jobs.push(job)
    this.#pump()
  }

  #placeFast(job: Job): void {
    const jobs = this.#fastJobs.get(job.destinationId)
    if (jobs === undefined) this.#fastJobs.set(job.destinationId, [job])
    else jobs.push(job)
  }

  #pump(): void {
    for (const [id, jobs] of this.#fastJobs) {
      if (this.#fast.pending >= AHEAD) break
      const job = jobs.shift()
      this.#fastJobs.delete(id)
      // Behind all others. The loop comes to it again.
      if (jobs.length > 0) this.#fastJobs.set(id, jobs)
      if (job !== undefined) this.#send(job, this.#fast, FAST_US)
    }
    if (this.#slow.pending === 0) this.#pumpSlow()
  }

  #pumpSlow(): void {
    const nowMs = performance.now()
    let earliestMs = Number.POSITIVE_INFINITY
    for (const [id, slow] of this.#slowDestinations) {
      const job = slow.jobs[0]
      if (job === undefined) continue
      const { readyMs } = slow.debt
      earliestMs = Math.min(earliestMs, readyMs)
      if (readyMs > nowMs) continue
      slow.jobs.shift()
      this.#slowDestinations.delete(id)
      this.#slowDestinations.set(id, slow)
      return this.#send(job, this.#slow, Number.POSITIVE_INFINITY)
    }
    clearTimeout(this.#pause)
    if (earliestMs < Number.POSITIVE_INFINITY) this.#pause = setTimeout(() => this.#pump(), earliestMs - nowMs)
  }

  #send(job: Job, thread: WatchedThread, mostUs: number): void {
    const { transformation, inputs, results, known } = job
    const first = results.length
    const mayMs = Math.min(mostUs / 1000, transformation.timeoutMs)
    const slice: TransformInput[] = []
    for (let at = first, bytes = 0; at < inputs.length && slice.length < SLICE_MESSAGES && bytes < SLICE_BYTES && !known.has(at); at++) {
      const input = inputs[at] as TransformInput
      slice.push(input)
      bytes += input.text.length
    }
    const work = inputs.length === 0 ? { mostUs, code: transformation.code } : { mostUs, transformation, inputs: packInputs(slice) }
    thread.start(work, mayMs + BLOCKED_MS, (end) => this.#ended(job, thread === this.#slow, end))
  }

  // ── Results ──

  #ended(job: Job, isSlow: boolean, end: SliceEnd): void {
    if ('lostAt' in end) this.#lost(job, isSlow, end)
    else {
      for (const result of unpackResults(end.results)) {
        if (result.kind === 'slow') this.#slowDown(job, SLOW_MS)
        else job.results.push(result)
      }
      if (end.hasBlocked) this.#slowDown(job, SLOW_MS)
      if (end.hasOverrun) this.#slowDown(job, SLOW_MS, end.cpuUs / 1000)
    }
    for (let next = job.known.get(job.results.length); next !== undefined; next = job.known.get(job.results.length)) job.results.push(next)
    if (this.#open.has(job)) this.#place(job)
    this.#pump()
  }

  /** The thread ended. The results of the slice are lost, so its messages are run again, except for one that is known to be the cause. */
  #lost(job: Job, isSlow: boolean, { lostAt, wasBlocked }: Extract<SliceEnd, { lostAt: unknown }>): void {
    if (lostAt === null) return
    if (lostAt < 0) {
      job.failedStarts++
      if (job.failedStarts === MAX_FAILED_STARTS) this.#giveUp(job, 'the thread for transformations cannot be started')
      return
    }
    const index = job.results.length + lostAt
    const { timeoutMs } = job.transformation
    this.#slowDown(job, BLOCKING_MS, wasBlocked ? Math.min(isSlow ? timeoutMs : FAST_US / 1000, timeoutMs) + BLOCKED_MS : 0)
    if (!isSlow) return
    const losses = (job.losses.get(index) ?? 0) + 1
    job.losses.set(index, losses)
    if (wasBlocked) job.known.set(index, { kind: 'failed', error: tooSlow(timeoutMs), logs: null })
    else if (losses === MAX_LOSSES) job.known.set(index, { kind: 'failed', error: 'crashed the sandbox', logs: null })
  }

  /** Moves the destination to the slow thread, with what it has waiting. `wastedMs`: CPU time of messages that ran into their limits. */
  #slowDown({ destinationId, transformation }: Job, forMs: number, wastedMs = 0): void {
    const nowMs = performance.now()
    const { code } = transformation
    const known = this.#slowDestinations.get(destinationId)
    const slow = known ?? { code, untilMs: 0, jobs: [], debt: new OverrunDebt(nowMs) }
    slow.code = code
    slow.untilMs = Math.max(slow.untilMs, nowMs + forMs)
    slow.debt.add(wastedMs, nowMs)
    slow.jobs.push(...(this.#fastJobs.get(destinationId) ?? []))
    this.#fastJobs.delete(destinationId)
    if (known !== undefined) return
    for (const [id, { jobs, untilMs }] of this.#slowDestinations) {
      if (jobs.length === 0 && untilMs < nowMs) this.#slowDestinations.delete(id)
    }
    this.#slowDestinations.set(destinationId, slow)
  }

  #giveUp(job: Job, error: string): void {
    while (job.results.length < job.count) job.results.push(job.known.get(job.results.length) ?? { kind: 'unavailable', error })
    this.#finish(job)
  }

  #finish(job: Job): void {
    if (this.#close(job)) job.done(job.results)
  }

  /** Returns false if it was finished or cancelled before. */
  #close(job: Job): boolean {
    if (!this.#open.delete(job)) return false
    this.#bytes -= job.bytes
    return true
  }

  #compiled(): WasmModule {
    this.#wasm ??= compileQuickJs()
    return this.#wasm
  }
}
