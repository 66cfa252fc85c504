// Two clocks for two uses. Wall time is for timestamps that people read. Schedule time is for retries, retry windows and circuit
// breakers: it starts at a value from the store and then advances with the monotonic clock, so a wall clock that jumps neither
// expires a delivery early nor delays a retry. It never starts before the last value that was used, so it does not go
// backwards across a restart.

export interface Clock {
  /** Milliseconds since 1970 according to the machine's clock, which may jump. */
  wallMs(): number
  /** Milliseconds that never go backwards and never jump. */
  scheduleMs(): number
}

/** Schedule time starts at `scheduleStartMs`: with SQLite, wall time or later; with PostgreSQL, the schedule time that all nodes share. */
export function createClock(scheduleStartMs = Date.now()): Clock {
  const offsetMs = scheduleStartMs - performance.now()
  return { wallMs: () => Date.now(), scheduleMs: () => Math.floor(offsetMs + performance.now()) }
}
