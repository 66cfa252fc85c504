// Makes the steps of running replay jobs: one at a time, jobs in turn, so that many of them ask no more of the store than
// one; none faster than its rate. Everything that must survive is in the store, which refuses a step from a place that a job
// has left. Every node has a runner, and one of them leads a job: the others ask now and then whether it still does, and
// one of them leads when it does not. The pace is the leader's own, so it is that of all nodes together.

import { randomUUID } from 'node:crypto'
import type { Page, ReplayJob, ReplayStore } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'

export interface ReplayRunnerDeps {
  store: Pick<ReplayStore, 'list' | 'step'>
  clock: Pick<Clock, 'scheduleMs'>
  /** Calls once after so many milliseconds, unless the function that it gives back was called before. */
  setTimer?: (run: () => void, delayMs: number) => () => void
  /** What failed is tried again. */
  trouble?: (error: unknown) => void
}

export interface ReplayRunner {
  start(): void
  /** A job was created or changed. */
  wake(): void
  /** After the step under way. */
  stop(): Promise<void>
}

/** More than the store does in one step: uncapped, it decides. */
const NO_LIMIT = 1_000
/**
 * Released and not yet attempted, per job and destination: enough to keep the fastest destination busy from one look to the
 * next, few enough that a paused job soon sends no more, and new messages do not wait long behind it.
 */
const MAX_WAITING = 500
/** With a rate, what an attempt can last times the rate, so that a destination that comes back is not flooded. */
const WAITING_SECONDS = 5
const LOOK_EVERY_MS = 10_000
/** How soon it is asked again for a job that another runner leads. */
const LED_MS = 2_000
const BLOCKED_MS = 25
const MAX_BLOCKED_MS = 1_000
const TROUBLE_MS = 1_000
const MAX_TROUBLE_MS = 60_000
const TICK_MS = 25
const WINDOW_MS = 1_000

interface Running {
  id: string
  /** As of its last step here. */
  position: number
  ratePerSecond: number | null
  pace: Pace | null
  nextAtMs: number
  blockedMs: number
  troubleMs: number
}

export function createReplayRunner(deps: ReplayRunnerDeps): ReplayRunner {
  return new Runner(deps)
}

class Runner implements ReplayRunner {
  readonly #store: ReplayRunnerDeps['store']
  readonly #clock: ReplayRunnerDeps['clock']
  readonly #setTimer: NonNullable<ReplayRunnerDeps['setTimer']>
  readonly #trouble: (error: unknown) => void
  readonly #jobs = new Map<string, Running>()
  readonly #name = randomUUID()
  #lookAtMs = 0
  #stopped = true
  #working: Promise<void> | null = null
  #again = false
  #cancelTimer: (() => void) | null = null

  constructor({ store, clock, setTimer = systemTimer, trouble = () => {} }: ReplayRunnerDeps) {
    this.#store = store
    this.#clock = clock
    this.#setTimer = setTimer
    this.#trouble = trouble
  }

  start(): void {
    this.#stopped = false
    this.wake()
  }

  wake(): void {
    this.#lookAtMs = 0
    this.#pump()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelTimer?.()
    this.#cancelTimer = null
    await this.#working
    this.#jobs.clear()
  }

  #pump(): void {
    if (this.#stopped) return
    if (this.#working !== null) {
      this.#again = true
      return
    }
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#working = this.#work().then(
      () => this.#rest(false),
      (error: unknown) => {
        this.#lookAtMs = 0
        this.#trouble(error)
        this.#rest(true)
      },
    )
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      this.#again = false
      if (this.#clock.scheduleMs() >= this.#lookAtMs) await this.#look()
      const nowMs = this.#clock.scheduleMs()
      const due = [...this.#jobs.values()].filter(({ nextAtMs }) => nextAtMs <= nowMs)
      for (const running of due) {
        if (this.#stopped) return
        try {
          await this.#step(running)
          running.troubleMs = TROUBLE_MS
        } catch (error) {
          // The others go on. If the step was made and only its answer lost, the next one is refused, and a look tells.
          running.nextAtMs = this.#clock.scheduleMs() + running.troubleMs
          running.troubleMs = Math.min(MAX_TROUBLE_MS, running.troubleMs * 2)
          this.#trouble(error)
        }
      }
      if (due.length === 0 && !this.#again) return
    }
  }

  #rest(failed: boolean): void {
    this.#working = null
    if (this.#stopped) return
    if (this.#again && !failed) {
      this.#pump()
      return
    }
    const nextAtMs = Math.min(this.#lookAtMs, ...[...this.#jobs.values()].map((running) => running.nextAtMs))
    this.#cancelTimer = this.#setTimer(() => this.#pump(), failed ? TROUBLE_MS : Math.max(0, nextAtMs - this.#clock.scheduleMs()))
  }

  /** What runs now. Those that are known keep their place and their pace. */
  async #look(): Promise<void> {
    this.#lookAtMs = this.#clock.scheduleMs() + LOOK_EVERY_MS
    const seen = new Set<string>()
    let cursor: string | null = null
    do {
      const page: Page<ReplayJob> = await this.#store.list({ state: 'running' }, { limit: 100, cursor })
      for (const { id, position, ratePerSecond } of page.data) {
        seen.add(id)
        const known = this.#jobs.get(id)
        if (known?.ratePerSecond === ratePerSecond) continue
        const nextAtMs = this.#clock.scheduleMs()
        const pace = ratePerSecond === null ? null : new Pace(ratePerSecond, nextAtMs, known?.pace ?? null)
        this.#jobs.set(id, {
          id,
          position: known?.position ?? position,
          ratePerSecond,
          pace,
          nextAtMs,
          blockedMs: BLOCKED_MS,
          troubleMs: TROUBLE_MS,
        })
      }
      cursor = page.next
    } while (cursor !== null)
    for (const id of this.#jobs.keys()) if (!seen.has(id)) this.#jobs.delete(id)
  }

  async #step(running: Running): Promise<void> {
    const { id, position, ratePerSecond, pace } = running
    const startedMs = this.#clock.scheduleMs()
    const limit = pace === null ? NO_LIMIT : pace.allowed(startedMs)
    if (pace !== null && limit < 1) {
      running.nextAtMs = pace.nextAtMs(startedMs)
      return
    }
    const maxWaiting = ratePerSecond === null ? MAX_WAITING : Math.min(MAX_WAITING, ratePerSecond * WAITING_SECONDS)
    const result = await this.#store.step({ id, position, limit, maxWaiting, runner: this.#name })
    if (!result.ok && result.reason === 'led') {
      running.nextAtMs = this.#clock.scheduleMs() + LED_MS
      return
    }
    // Not at this place any more: another has led it, and does not now. Where it stands is looked up.
    if (!result.ok && result.reason === 'moved') this.#lookAtMs = 0
    if (!result.ok || result.job.state !== 'running') {
      this.#jobs.delete(id)
      return
    }
    const nowMs = this.#clock.scheduleMs()
    running.position = result.job.position
    // Changed where another node's runner was told.
    if (result.job.ratePerSecond !== ratePerSecond) this.#lookAtMs = 0
    pace?.took(result.replayed, nowMs)
    running.blockedMs = result.blocked && result.replayed === 0 ? Math.min(MAX_BLOCKED_MS, running.blockedMs * 2) : BLOCKED_MS
    // As long a rest as the step was work: others commit too.
    const restMs = result.blocked ? running.blockedMs : nowMs - startedMs
    running.nextAtMs = Math.max(nowMs + restMs, pace === null ? 0 : pace.nextAtMs(nowMs))
  }
}

/** Never more in any second than the rate, and spread over it. */
class Pace {
  readonly #rate: number
  readonly #most: number
  /** May be released now, if the window allows: grows with time. */
  #credit = 1
  #asOfMs: number
  /** What the last second released. */
  #released: { atMs: number; count: number }[] = []

  constructor(ratePerSecond: number, nowMs: number, before: Pace | null) {
    this.#rate = ratePerSecond
    this.#most = Math.max(1, Math.ceil((ratePerSecond * 2 * TICK_MS) / 1_000))
    this.#asOfMs = nowMs
    if (before === null) return
    this.#released = before.#released
    this.#credit = Math.min(before.#credit, this.#most)
  }

  allowed(nowMs: number): number {
    this.#credit = Math.min(this.#most, this.#credit + (Math.max(0, nowMs - this.#asOfMs) * this.#rate) / 1_000)
    this.#asOfMs = nowMs
    this.#released = this.#released.filter(({ atMs }) => atMs > nowMs - WINDOW_MS)
    return Math.min(Math.floor(this.#credit), this.#rate - this.#released.reduce((sum, { count }) => sum + count, 0))
  }

  took(count: number, atMs: number): void {
    if (count === 0) return
    this.#credit -= count
    this.#released.push({ atMs, count })
  }

  nextAtMs(nowMs: number): number {
    if (this.allowed(nowMs) >= 1) return nowMs
    const forCreditMs = Math.ceil(((1 - this.#credit) * 1_000) / this.#rate)
    const [oldest] = this.#released
    const isFull = Math.floor(this.#credit) >= 1 && oldest !== undefined
    return nowMs + Math.max(TICK_MS, isFull ? oldest.atMs + WINDOW_MS - nowMs : forCreditMs)
  }
}

function systemTimer(run: () => void, delayMs: number): () => void {
  const timer = setTimeout(run, delayMs).unref()
  return () => clearTimeout(timer)
}
