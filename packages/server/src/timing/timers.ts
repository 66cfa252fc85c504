// Timers as a parameter, like the clock, so that a test can advance schedule time and its timers
// together instead of waiting.

export type CancelTimer = () => void

/** Calls `run` once, after `delayMs` milliseconds of the monotonic clock, unless cancelled before. */
export type SetTimer = (run: () => void, delayMs: number) => CancelTimer

export const systemTimer: SetTimer = (run, delayMs) => {
  const timer = setTimeout(run, delayMs)
  return () => clearTimeout(timer)
}

/** Does not keep the process alive. */
export const backgroundTimer: SetTimer = (run, delayMs) => {
  const timer = setTimeout(run, delayMs).unref()
  return () => clearTimeout(timer)
}
