// Executes the steps of running replay jobs: one step at a time, with jobs taking turns, so that many jobs put no more load on the store than
// one. No job runs faster than its rate. All state that must survive a restart is in the store, which rejects a step from a position that the
// job has already passed. Every node has a runner, and one of them leads a job: the others check regularly whether it still does, and one of
// them takes over if not. Only the leader of a job executes its steps, so its rate is the rate of all nodes together.

import { randomUUID } from 'node:crypto'
import type { Page, ReplayJob, ReplayStore } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { backgroundTimer, type SetTimer } from '../timing/timers.ts'
import type { ArchiveFeed } from './archive-feed.ts'

export interface ReplayRunnerDeps {
  store: Pick<ReplayStore, 'list' | 'step'>
  clock: Pick<Clock, 'scheduleMs'>
  setTimer?: SetTimer
  /** Reads the archives of lakes. */
  archives?: Pick<ArchiveFeed, 'take' | 'forget'> | undefined
  /** Called with each error. The failed step is retried. */
  onError?: (error: unknown) => void
}

/** More than the store does in one step. Without a rate, the store decides the size of a step. */
const NO_LIMIT = 1_000
/**
 * The maximum number of deliveries that are released but not attempted yet, per job and destination. It is enough to keep the fastest destination
 * busy between two steps, and small enough that a paused job soon stops sending and new messages do not wait long behind it.
 */
const MAX_WAITING = 500
/** With a rate, the limit is the rate times the longest duration of an attempt, so that a destination that recovers is not flooded. */
const WAITING_SECONDS = 5
/** Fewer than a step may replay, because some are skipped. */
const ARCHIVED_PER_STEP = 250
const LIST_EVERY_MS = 10_000
/** How often to check whether another runner still leads a job. */
const CHECK_LEADER_MS = 2_000
const BLOCKED_MS = 25
const MAX_BLOCKED_MS = 1_000
const RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000
const TICK_MS = 25
const WINDOW_MS = 1_000

interface Running {
  id: string
  /** Set if the job has messages of an archive: as of the last step. */
  archived: ReplayJob | null
  /** The position after the last step of this runner. */
  position: number
  ratePerSecond: number | null
  pace: Pace | null
  nextAtMs: number
  blockedMs: number
  retryMs: number
  /** How long to wait after the archive could not be read. */
  problemMs: number
}

export class ReplayRunner {
  readonly #store: ReplayRunnerDeps['store']
  readonly #clock: ReplayRunnerDeps['clock']
  readonly #setTimer: SetTimer
  readonly #archives: ReplayRunnerDeps['archives']
  readonly #onError: (error: unknown) => void
  readonly #jobs = new Map<string, Running>()
  readonly #name = randomUUID()
  #listAtMs = 0
  #stopped = true
  #working: Promise<void> | null = null
  #again = false
  #cancelTimer: (() => void) | null = null

  constructor({ store, clock, setTimer = backgroundTimer, archives, onError = () => {} }: ReplayRunnerDeps) {
    this.#archives = archives
    this.#store = store
    this.#clock = clock
    this.#setTimer = setTimer
    this.#onError = onError
  }

  start(): void {
    this.#stopped = false
    this.wake()
  }

  /** Must be called when a job was created or changed. */
  wake(): void {
    this.#listAtMs = 0
    this.#pump()
  }

  /** Waits for the step in progress. */
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
      () => this.#scheduleNext(false),
      (error: unknown) => {
        this.#listAtMs = 0
        this.#onError(error)
        this.#scheduleNext(true)
      },
    )
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      this.#again = false
      if (this.#clock.scheduleMs() >= this.#listAtMs) await this.#listJobs()
      const nowMs = this.#clock.scheduleMs()
      const due = [...this.#jobs.values()].filter(({ nextAtMs }) => nextAtMs <= nowMs)
      for (const running of due) {
        if (this.#stopped) return
        try {
          await this.#step(running)
          running.retryMs = RETRY_MS
        } catch (error) {
          // The other jobs continue. If the step was executed and only its result was lost, the next step is rejected, and the jobs are listed again.
          running.nextAtMs = this.#clock.scheduleMs() + running.retryMs
          running.retryMs = Math.min(MAX_RETRY_MS, running.retryMs * 2)
          this.#onError(error)
        }
      }
      if (due.length === 0 && !this.#again) return
    }
  }

  #scheduleNext(failed: boolean): void {
    this.#working = null
    if (this.#stopped) return
    if (this.#again && !failed) {
      this.#pump()
      return
    }
    const nextAtMs = Math.min(this.#listAtMs, ...[...this.#jobs.values()].map((running) => running.nextAtMs))
    this.#cancelTimer = this.#setTimer(() => this.#pump(), failed ? RETRY_MS : Math.max(0, nextAtMs - this.#clock.scheduleMs()))
  }

  /** Loads the running jobs. Known jobs keep their position and their pace. */
  async #listJobs(): Promise<void> {
    this.#listAtMs = this.#clock.scheduleMs() + LIST_EVERY_MS
    const seen = new Set<string>()
    let cursor: string | null = null
    do {
      const page: Page<ReplayJob> = await this.#store.list({ state: 'running' }, { limit: 100, cursor })
      for (const job of page.data) {
        const { id, position, ratePerSecond } = job
        if (job.archive !== null && this.#archives === undefined) continue
        seen.add(id)
        const known = this.#jobs.get(id)
        if (known?.ratePerSecond === ratePerSecond) continue
        const nextAtMs = this.#clock.scheduleMs()
        const pace = ratePerSecond === null ? null : new Pace(ratePerSecond, nextAtMs, known?.pace ?? null)
        this.#jobs.set(id, {
          id,
          archived: known?.archived ?? (job.archive === null ? null : job),
          position: known?.position ?? position,
          ratePerSecond,
          pace,
          nextAtMs,
          blockedMs: BLOCKED_MS,
          retryMs: RETRY_MS,
          problemMs: RETRY_MS,
        })
      }
      cursor = page.next
    } while (cursor !== null)
    for (const id of this.#jobs.keys()) if (!seen.has(id)) this.#forget(id)
  }

  #forget(id: string): void {
    this.#jobs.delete(id)
    this.#archives?.forget(id)
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
    const archive = running.archived === null ? undefined : await this.#archives?.take(running.archived, Math.min(limit, ARCHIVED_PER_STEP))
    const result = await this.#store.step({ id, position, limit, maxWaiting, runner: this.#name, archive })
    if (!result.ok && result.reason === 'led') {
      running.nextAtMs = this.#clock.scheduleMs() + CHECK_LEADER_MS
      return
    }
    // The job is at another position: another runner led it in the meantime. Its position is read again.
    if (!result.ok && result.reason === 'moved') this.#listAtMs = 0
    if (!result.ok || result.job.state !== 'running') {
      this.#forget(id)
      return
    }
    const nowMs = this.#clock.scheduleMs()
    running.position = result.job.position
    if (running.archived !== null) running.archived = result.job
    if (archive !== undefined && 'problem' in archive) {
      running.nextAtMs = nowMs + running.problemMs
      running.problemMs = Math.min(MAX_RETRY_MS, running.problemMs * 2)
      return
    }
    running.problemMs = RETRY_MS
    // The rate was changed on another node, which wakes only its own runner.
    if (result.job.ratePerSecond !== ratePerSecond) this.#listAtMs = 0
    pace?.record(result.replayed, nowMs)
    running.blockedMs = result.blocked && result.replayed === 0 ? Math.min(MAX_BLOCKED_MS, running.blockedMs * 2) : BLOCKED_MS
    // Pauses for as long as the step took, so that other transactions can commit too.
    const restMs = result.blocked ? running.blockedMs : nowMs - startedMs
    running.nextAtMs = Math.max(nowMs + restMs, pace === null ? 0 : pace.nextAtMs(nowMs))
  }
}

/** Limits the releases in any second to the rate, and spreads them evenly over the second. */
class Pace {
  readonly #rate: number
  readonly #maxCredit: number
  /** The number that may be released now, if the window allows it. It grows with time. */
  #credit = 1
  #asOfMs: number
  /** The releases of the last second. */
  #released: { atMs: number; count: number }[] = []

  constructor(ratePerSecond: number, nowMs: number, before: Pace | null) {
    this.#rate = ratePerSecond
    this.#maxCredit = Math.max(1, Math.ceil((ratePerSecond * 2 * TICK_MS) / 1_000))
    this.#asOfMs = nowMs
    if (before === null) return
    this.#released = before.#released
    this.#credit = Math.min(before.#credit, this.#maxCredit)
  }

  allowed(nowMs: number): number {
    this.#credit = Math.min(this.#maxCredit, this.#credit + (Math.max(0, nowMs - this.#asOfMs) * this.#rate) / 1_000)
    this.#asOfMs = nowMs
    this.#released = this.#released.filter(({ atMs }) => atMs > nowMs - WINDOW_MS)
    return Math.min(Math.floor(this.#credit), this.#rate - this.#released.reduce((sum, { count }) => sum + count, 0))
  }

  record(count: number, atMs: number): void {
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
