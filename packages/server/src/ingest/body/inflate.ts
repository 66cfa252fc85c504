// Decompresses gzip bodies, a few at a time. A body of 500 bytes can inflate to 500 KB, and zlib allocates memory for every job that it
// is given: thousands of bodies at once would need gigabytes. Three of four turns go to bodies whose sender is known, and the
// fourth to the others, so that neither group starves the other.

import { gunzip } from 'node:zlib'

export interface InflateJob {
  body: Buffer
  maxBytes: number
  /** Whether the headers of the request contain the write key of a source. */
  isKnown: boolean
  /** Called once, unless the job is cancelled while it waits. */
  done: (error: NodeJS.ErrnoException | null, inflated: Buffer) => void
}

/** Returns a function that cancels the job while it waits. */
export type Inflate = (job: InflateJob) => () => void

/** The number of threads that Node.js uses for this by default. */
const MAX_AT_ONCE = 4
const UNKNOWN_TURN = 4

export function createInflate(): Inflate {
  const known = new Set<InflateJob>()
  const unknown = new Set<InflateJob>()
  let running = 0
  let turn = 0

  function start(job: InflateJob): void {
    running++
    gunzip(job.body, { maxOutputLength: job.maxBytes }, (error, inflated) => {
      running--
      startNext()
      job.done(error, inflated)
    })
  }

  function startNext(): void {
    const isUnknownTurn = known.size === 0 || (unknown.size > 0 && ++turn % UNKNOWN_TURN === 0)
    const waiting = isUnknownTurn ? unknown : known
    for (const job of waiting) {
      waiting.delete(job)
      return start(job)
    }
  }

  return (job) => {
    const waiting = job.isKnown ? known : unknown
    if (running < MAX_AT_ONCE) start(job)
    else waiting.add(job)
    return () => waiting.delete(job)
  }
}
