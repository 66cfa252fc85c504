// What came last, outside of React: the last few hundred events in a ring, counts by the second, and a view of both that changes at most five
// times a second, however much comes. Held still, the view keeps its rows and counts what comes meanwhile. Pure but for its timer.

import type { LiveAccepted, LiveAttempt, LiveEvent, LiveRejected } from '../../api/live.ts'

/** Nothing was heard between the two: the stream was broken, or the tab was not looked at. */
export interface LiveGap {
  kind: 'gap'
  at: string
  fromMs: number
  toMs: number
}

export type Told = LiveAccepted | LiveRejected | LiveAttempt | LiveGap

export interface Entry {
  /** Rises by one with each. */
  seq: number
  told: Told
}

/** By the second. */
export interface Rates {
  accepted: number
  attempts: number
  /** Rejected calls, and attempts that failed. */
  failures: number
  shown: number
  leftOut: number
  /** Of those left out, some may be more of any of the first three. */
  isAtLeast: boolean
}

export interface View {
  /** Newest first. */
  rows: readonly Entry[]
  rates: Rates
  isHeld: boolean
  /** How many came since it is held, those that were left out included. */
  meanwhile: number
}

export interface Timer {
  nowMs: () => number
  /** Calls once, after so long; the answer takes it back. */
  after: (ms: number, run: () => void) => () => void
}

export const MAX_ENTRIES = 500
const RENDER_EVERY_MS = 200
const WINDOW_S = 5

interface Second {
  at: number
  accepted: number
  attempts: number
  failures: number
  shown: number
  leftOut: number
  unknown: number
}

const NO_RATES: Rates = { accepted: 0, attempts: 0, failures: 0, shown: 0, leftOut: 0, isAtLeast: false }

const systemTimer: Timer = {
  nowMs: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

export class Feed {
  readonly #timer: Timer
  readonly #listeners = new Set<() => void>()
  #entries: Entry[] = []
  #seq = 0
  #seconds: Second[] = []
  #firstSecond: number | null = null
  #isHeld = false
  #meanwhile = 0
  #view: View = { rows: [], rates: NO_RATES, isHeld: false, meanwhile: 0 }
  #shownMs = Number.NEGATIVE_INFINITY
  #due: { atMs: number; cancel: () => void } | null = null

  constructor(timer: Timer = systemTimer) {
    this.#timer = timer
  }

  /** Stable between changes, as useSyncExternalStore needs it. */
  view = (): View => this.#view

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    // What came while nobody looked, or should be taken away.
    if (this.#seconds.length > 0) this.#showIn(0)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#due?.cancel()
      this.#due = null
    }
  }

  add(events: readonly LiveEvent[]): void {
    const second = this.#second()
    for (const event of events) {
      count(second, event)
      if (this.#isHeld) this.#meanwhile += event.kind === 'dropped' ? event.count : 1
      if (event.kind !== 'dropped') this.#push(event)
    }
    this.#showIn(RENDER_EVERY_MS)
  }

  /** In wall time. */
  gap(fromMs: number, toMs: number): void {
    this.#push({ kind: 'gap', at: new Date(toMs).toISOString(), fromMs, toMs })
    this.#showIn(RENDER_EVERY_MS)
  }

  hold(): void {
    if (this.#isHeld) return
    this.#isHeld = true
    this.#meanwhile = 0
    this.#show()
  }

  resume(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#meanwhile = 0
    this.#show()
  }

  clear(): void {
    this.#entries = []
    this.#meanwhile = 0
    this.#view = { ...this.#view, rows: [] }
    this.#show()
  }

  #push(told: Told): void {
    this.#entries.push({ seq: this.#seq++, told })
    // Seldom, and not with each: moving hundreds for one is what a ring is there to avoid.
    if (this.#entries.length >= 2 * MAX_ENTRIES) this.#entries = this.#entries.slice(-MAX_ENTRIES)
  }

  #second(): Second {
    const at = Math.floor(this.#timer.nowMs() / 1_000)
    this.#firstSecond ??= at
    const last = this.#seconds.at(-1)
    if (last?.at === at) return last
    const second = { at, accepted: 0, attempts: 0, failures: 0, shown: 0, leftOut: 0, unknown: 0 }
    this.#seconds.push(second)
    this.#forget(at)
    return second
  }

  #forget(at: number): void {
    this.#seconds = this.#seconds.filter((each) => each.at >= at - WINDOW_S)
  }

  /** Over the last whole seconds. In the first second of all, of what has come. */
  #rates(): Rates {
    const at = Math.floor(this.#timer.nowMs() / 1_000)
    this.#forget(at)
    const whole = this.#firstSecond === null ? 0 : Math.min(WINDOW_S, at - this.#firstSecond)
    const seconds = whole === 0 ? this.#seconds : this.#seconds.filter((each) => each.at < at)
    if (seconds.length === 0) return NO_RATES
    const rate = (name: keyof Second): number => seconds.reduce((sum, each) => sum + each[name], 0) / Math.max(1, whole)
    return {
      accepted: rate('accepted'),
      attempts: rate('attempts'),
      failures: rate('failures'),
      shown: rate('shown'),
      leftOut: rate('leftOut'),
      isAtLeast: rate('unknown') > 0,
    }
  }

  #showIn(ms: number): void {
    if (this.#listeners.size === 0) return
    const nowMs = this.#timer.nowMs()
    const atMs = Math.max(nowMs, ms === RENDER_EVERY_MS ? this.#shownMs + ms : nowMs + ms)
    if (this.#due !== null && this.#due.atMs <= atMs) return
    this.#due?.cancel()
    this.#due = { atMs, cancel: this.#timer.after(atMs - nowMs, () => this.#show()) }
  }

  #show(): void {
    this.#due?.cancel()
    this.#due = null
    this.#shownMs = this.#timer.nowMs()
    const rows = this.#isHeld ? this.#view.rows : newestFirst(this.#entries)
    this.#view = { rows, rates: this.#rates(), isHeld: this.#isHeld, meanwhile: this.#meanwhile }
    // A rate falls also when nothing more comes.
    if (this.#seconds.length > 0) this.#showIn(1_000)
    for (const listener of this.#listeners) listener()
  }
}

function newestFirst(entries: readonly Entry[]): Entry[] {
  const rows: Entry[] = []
  for (let at = entries.length - 1; at >= 0 && rows.length < MAX_ENTRIES; at--) rows.push(entries[at] as Entry)
  return rows
}

function count(second: Second, event: LiveEvent): void {
  if (event.kind === 'dropped') {
    const { count: all, accepted = 0, rejected = 0, attempts = 0, failures = 0 } = event
    second.leftOut += all
    second.accepted += accepted
    second.attempts += attempts
    second.failures += rejected + failures
    second.unknown += Math.max(0, all - accepted - rejected - attempts)
    return
  }
  second.shown += 1
  if (event.kind === 'accepted') second.accepted += 1
  else if (event.kind === 'rejected') second.failures += 1
  else {
    second.attempts += 1
    if (!event.success) second.failures += 1
  }
}
