// How long everything is kept, and the run that drops what is older. How rows go is the adapters' knowledge: see their retention.ts.

import { inSteps } from '../../timing/in-steps.ts'

const DAY_MS = 86_400_000
/** More than a year, so that what was done at the same time last year can be looked at. */
const AUDIT_MS = 400 * DAY_MS
const STAT_HOURS_MS = 90 * DAY_MS

/** What is from before these times goes. */
export interface RetentionLines {
  /** Messages and everything about them, users named in deletions that have ended, and counts by the minute: whole days. */
  messagesMs: number
  /** The audit log, and replay jobs that are over: they say who sent what again. */
  auditMs: number
  /** Counts by the hour. */
  statHoursMs: number
}

/** Nothing goes before the messages do, however long they are kept. */
export function retentionLines(nowMs: number, retentionDays: number): RetentionLines {
  const messagesMs = Math.floor(nowMs / DAY_MS) * DAY_MS - retentionDays * DAY_MS
  return {
    messagesMs,
    auditMs: Math.min(messagesMs, nowMs - AUDIT_MS),
    statHoursMs: Math.min(messagesMs, nowMs - STAT_HOURS_MS),
  }
}

/** What an adapter can drop. Those that answer with a number drop some rows per call, and say how many. */
export interface Droppers {
  messages(beforeMs: number): Promise<unknown>
  audit(beforeMs: number): Promise<number>
  replayJobs(beforeMs: number): Promise<number>
  /** Replaces the users of deletions that have ended with pseudonyms. */
  endDeletions(beforeMs: number): Promise<unknown>
  stats(minutesBeforeMs: number, hoursBeforeMs: number): Promise<number>
}

export interface RetentionOptions {
  retentionDays: number
  drop: Droppers
  isClosed: () => boolean
}

export class RetentionRuns {
  readonly #options: RetentionOptions
  #running: Promise<void> | null = null

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  /** One run at a time; a call during one waits for it. */
  run(nowMs: number): Promise<void> {
    this.#running ??= this.#drop(nowMs).finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** The run that is under way, if any. */
  get running(): Promise<void> | null {
    return this.#running
  }

  async #drop(nowMs: number): Promise<void> {
    const { retentionDays, drop, isClosed } = this.#options
    const { messagesMs, auditMs, statHoursMs } = retentionLines(nowMs, retentionDays)
    await drop.messages(messagesMs)
    await inSteps(() => drop.audit(auditMs), isClosed)
    await inSteps(() => drop.replayJobs(auditMs), isClosed)
    await drop.endDeletions(messagesMs)
    await inSteps(() => drop.stats(messagesMs, statHoursMs), isClosed)
  }
}
