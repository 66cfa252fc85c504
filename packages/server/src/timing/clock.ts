// Two clocks for two uses. Wall time is for timestamps that people read. Schedule time is for retries, retry windows and circuit
// breakers: it continues from a value in the store and advances with the monotonic clock, so a wall clock that jumps neither
// expires a delivery early nor delays a retry. It does not go backwards across a restart.

export interface Clock {
  /** Milliseconds since 1970 according to the machine's clock, which may jump. */
  wallMs(): number
  /** Milliseconds that never go backwards. They jump only if this node was behind the others. */
  scheduleMs(): number
  /** Continues schedule time from this value if it is later. Clocks of tests need not have it. */
  advanceTo?(scheduleMs: number): void
}

/** What the store saves every few seconds. */
export interface ScheduleMark {
  scheduleMs: number
  /** The wall clock at the same moment; with PostgreSQL, that of the server. */
  wallMs: number
}

/** The most that schedule time advances while nothing runs. A jump of the wall clock cannot be distinguished from a long pause. */
export const LONGEST_PAUSE_MS = 3_600_000

/** Returns where schedule time continues. `wallMs` is the present time of the clock whose time the mark contains. */
export function scheduleStart(mark: ScheduleMark | null, wallMs: number): number {
  if (mark === null) return wallMs
  const startMs = mark.scheduleMs + Math.min(Math.max(0, wallMs - mark.wallMs), LONGEST_PAUSE_MS)
  // Older versions save schedule time, but not wall time. If one has run since, the saved wall time is out of date, and the time in
  // which it ran must not count as a pause. Its schedule time was not behind the wall clock, so the wall clock is the limit.
  return mark.scheduleMs <= wallMs ? Math.min(startMs, wallMs) : startMs
}

export function createClock(scheduleStartMs = Date.now()): Clock {
  let offsetMs = scheduleStartMs - performance.now()
  return {
    wallMs: () => Date.now(),
    scheduleMs: () => Math.floor(offsetMs + performance.now()),
    advanceTo(scheduleMs) {
      offsetMs = Math.max(offsetMs, scheduleMs - performance.now())
    },
  }
}
