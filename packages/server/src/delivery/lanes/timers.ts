// Where the delivery stage's timers come from. A parameter like the clock, so that a test moves schedule time and the
// timers that wait for it together, instead of waiting.

export type CancelTimer = () => void

/** Calls once, after so many milliseconds of the monotonic clock, unless cancelled before. */
export type SetTimer = (run: () => void, delayMs: number) => CancelTimer

export const systemTimer: SetTimer = (run, delayMs) => {
  const timer = setTimeout(run, delayMs)
  return () => clearTimeout(timer)
}
