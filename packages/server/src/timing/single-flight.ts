// Runs work at most once at a time: a call during a run waits for that run.

export type SingleFlight<Args extends readonly unknown[], T> = ((...args: Args) => Promise<T>) & {
  /** The run in progress, if any. */
  running: Promise<T> | null
}

export function singleFlight<Args extends readonly unknown[], T>(work: (...args: Args) => Promise<T>): SingleFlight<Args, T> {
  const run: SingleFlight<Args, T> = Object.assign(
    (...args: Args): Promise<T> => {
      run.running ??= work(...args).finally(() => {
        run.running = null
      })
      return run.running
    },
    { running: null },
  )
  return run
}
