// Two times, for two uses. Wall time stamps what people read. Schedule time drives retries, windows and breakers: it
// starts where the store says and then advances with the monotonic clock, so a wall clock that jumps neither expires a delivery
// early nor holds a retry back; and it starts no earlier than where it last stood, so it never runs backwards over a restart.

export interface Clock {
  /** Milliseconds since 1970, as the machine believes. */
  wallMs(): number
  /** Milliseconds that never go back and never jump. */
  scheduleMs(): number
}

/** Schedule time starts at `scheduleStartMs`: with a file that is wall time or later, with a server that of all its nodes. */
export function createClock(scheduleStartMs = Date.now()): Clock {
  const offsetMs = scheduleStartMs - performance.now()
  return { wallMs: () => Date.now(), scheduleMs: () => Math.floor(offsetMs + performance.now()) }
}
