// The port of the spool: queued messages kept on disk until their outcome is known. The platform opens one; where there
// is no disk there is none. Messages are numbered in the order they were kept.

/** Messages `from` to `to`, both included. */
export interface SpoolRange {
  from: number
  to: number
}

export interface SpoolOptions {
  /** A folder of its own; made if missing. Several processes may share it. */
  dir: string
  /** Most bytes kept at once. Default 64 MiB. */
  maxBytes?: number | undefined
}

/** The same, with nothing left open. */
export interface SpoolLimits {
  dir: string
  maxBytes: number
}

export interface Spool {
  /** Keeps a message and gives its number; undefined if it does not fit. Survives the process being killed from then on. */
  keep(json: string): number | undefined
  /** Their outcome is known: forget them. Also after close. */
  forget(ranges: SpoolRange[]): void
  /**
   * Gives back what processes that are gone have left, each message once, with its number here; waits on `take` before
   * going on. Resolves when all that is there now is taken; looks again now and then, until close.
   */
  recover(take: (json: string, number: number) => Promise<void>): Promise<void>
  close(): void
}
