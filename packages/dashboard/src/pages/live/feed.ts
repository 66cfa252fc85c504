// The state of the live list, outside of React: the last 500 events, counts per second, and a view of both that changes at most five times a
// second, however many events arrive. While paused, the view keeps its rows and counts new events. Pure, except for its timer.

import type { LiveAccepted, LiveAttempt, LiveEvent, LiveRejected } from '../../api/live.ts'

/** A time in which the page was not connected, because the connection was lost or the tab was hidden. */
export interface LiveGap {
  kind: 'gap'
  at: string
  fromMs: number
  toMs: number
}

export type LiveItem = LiveAccepted | LiveRejected | LiveAttempt | LiveGap

export interface Entry {
  /** Increases by one with each entry. */
  seq: number
  item: LiveItem
}

/** Events per second. */
export interface Rates {
  accepted: number
  attempts: number
  /** Rejected calls and failed attempts. */
  failures: number
  shown: number
  notShown: number
  /** Whether accepted, attempts and failures are lower bounds: the kind of some events that are not shown is unknown. */
  isLowerBound: boolean
}

export interface View {
  /** Newest first. */
  rows: readonly Entry[]
  rates: Rates
  isPaused: boolean
  /** The number of events since it was paused, including those that are not shown. */
  newCount: number
}

export interface Timer {
  nowMs: () => number
  /** Calls `run` once after a delay. Returns a function that cancels it. */
  after: (ms: number, run: () => void) => () => void
}

export const MAX_ENTRIES = 500
const RENDER_EVERY_MS = 200
const WINDOW_S = 5

type Second = Record<'at' | 'accepted' | 'attempts' | 'failures' | 'shown' | 'notShown' | 'unknown', number>

const NO_RATES: Rates = { accepted: 0, attempts: 0, failures: 0, shown: 0, notShown: 0, isLowerBound: false }

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
  #isPaused = false
  #newCount = 0
  #view: View = { rows: [], rates: NO_RATES, isPaused: false, newCount: 0 }
  #shownMs = Number.NEGATIVE_INFINITY
  #due: { atMs: number; cancel: () => void } | null = null

  constructor(timer: Timer = systemTimer) {
    this.#timer = timer
  }

  /** Returns the same object until something changes, as useSyncExternalStore requires. */
  view = (): View => this.#view

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    // Show what arrived while there was no listener, or update the rates.
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
      if (this.#isPaused) this.#newCount += event.kind === 'dropped' ? event.count : 1
      if (event.kind !== 'dropped') this.#push(event)
    }
    this.#showIn(RENDER_EVERY_MS)
  }

  /** Times are in milliseconds since 1970. */
  gap(fromMs: number, toMs: number): void {
    this.#push({ kind: 'gap', at: new Date(toMs).toISOString(), fromMs, toMs })
    this.#showIn(RENDER_EVERY_MS)
  }

  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#newCount = 0
    this.#show()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#newCount = 0
    this.#show()
  }

  clear(): void {
    this.#entries = []
    this.#newCount = 0
    this.#view = { ...this.#view, rows: [] }
    this.#show()
  }

  #push(item: LiveItem): void {
    this.#entries.push({ seq: this.#seq++, item })
    // Trimmed only when it has doubled, because copying hundreds of entries for each new one would be slow.
    if (this.#entries.length >= 2 * MAX_ENTRIES) this.#entries = this.#entries.slice(-MAX_ENTRIES)
  }

  #second(): Second {
    const at = Math.floor(this.#timer.nowMs() / 1_000)
    this.#firstSecond ??= at
    const last = this.#seconds.at(-1)
    if (last?.at === at) return last
    const second = { at, accepted: 0, attempts: 0, failures: 0, shown: 0, notShown: 0, unknown: 0 }
    this.#seconds.push(second)
    this.#forget(at)
    return second
  }

  #forget(at: number): void {
    this.#seconds = this.#seconds.filter((each) => each.at >= at - WINDOW_S)
  }

  /** The average over the last complete seconds; in the very first second, what has arrived so far. */
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
      notShown: rate('notShown'),
      isLowerBound: rate('unknown') > 0,
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
    const rows = this.#isPaused ? this.#view.rows : newestFirst(this.#entries)
    this.#view = { rows, rates: this.#rates(), isPaused: this.#isPaused, newCount: this.#newCount }
    // Rates fall even if no more events arrive.
    if (this.#seconds.length > 0) this.#showIn(1_000)
    for (const listener of this.#listeners) listener()
  }
}

/** By the time that a row shows. Events of several processes arrive a little out of order. Of those at the same time, the last arrival is first. */
function newestFirst(entries: readonly Entry[]): Entry[] {
  return entries
    .slice(-MAX_ENTRIES)
    .map((entry) => ({ entry, atMs: timeOf(entry.item) }))
    .sort((one, other) => other.atMs - one.atMs || other.entry.seq - one.entry.seq)
    .map(({ entry }) => entry)
}

/** When it happened: for an attempt, when its outcome was known. */
export function timeOf(item: LiveItem): number {
  return Date.parse(item.at) + (item.kind === 'attempt' ? (item.totalMs ?? 0) : 0)
}

function count(second: Second, event: LiveEvent): void {
  if (event.kind === 'dropped') {
    const { count: all, accepted = 0, rejected = 0, attempts = 0, failures = 0 } = event
    second.notShown += all
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
