// How long rows are kept, and the run that drops older ones. The adapters drop the rows: see their retention.ts.

import { runInSteps } from '../../timing/run-in-steps.ts'
import { singleFlight } from '../../timing/single-flight.ts'

const DAY_MS = 86_400_000
/** More than a year, so that the same time of last year can be looked up. */
const AUDIT_MS = 400 * DAY_MS
const STAT_HOURS_MS = 90 * DAY_MS

/** Rows that are older than these times are dropped. */
export interface RetentionLines {
  /** For messages and everything about them, the ids of users in deletion requests that have ended, and counts per minute. By whole days. */
  messagesMs: number
  /** For the audit log, and for replay jobs that are over, because they too show who did what. */
  auditMs: number
  /** For counts per hour. */
  statHoursMs: number
  /** For messages in quarantine; null if they are kept for ever. */
  quarantinedMs: number | null
}

/** Everything is kept at least as long as the messages, however long that is. */
export function retentionLines(nowMs: number, retentionDays: number, quarantineDays: number | null): RetentionLines {
  const messagesMs = Math.floor(nowMs / DAY_MS) * DAY_MS - retentionDays * DAY_MS
  return {
    messagesMs,
    auditMs: Math.min(messagesMs, nowMs - AUDIT_MS),
    statHoursMs: Math.min(messagesMs, nowMs - STAT_HOURS_MS),
    quarantinedMs: quarantineDays === null ? null : nowMs - quarantineDays * DAY_MS,
  }
}

/** The drop functions of an adapter. A function that returns a number drops some rows per call, and returns how many. */
export interface Droppers {
  quarantined(beforeMs: number): Promise<number>
  messages(beforeMs: number): Promise<unknown>
  audit(beforeMs: number): Promise<number>
  replayJobs(beforeMs: number): Promise<number>
  /** Replaces the users of deletions that have ended with pseudonyms. */
  endDeletions(beforeMs: number): Promise<unknown>
  /** Packs counts of hours that are over. */
  packed(nowMs: number): Promise<number>
  stats(minutesBeforeMs: number, hoursBeforeMs: number): Promise<number>
}

export interface RetentionOptions {
  retentionDays: number
  quarantineDays: number | null
  drop: Droppers
  isClosed: () => boolean
}

/** Drops what is older than its retention time. Only one run at a time: a call during a run waits for that run. */
export function retentionRuns({ retentionDays, quarantineDays, drop, isClosed }: RetentionOptions) {
  return singleFlight(async (nowMs: number): Promise<void> => {
    const { quarantinedMs, messagesMs, auditMs, statHoursMs } = retentionLines(nowMs, retentionDays, quarantineDays)
    if (quarantinedMs !== null) await runInSteps(() => drop.quarantined(quarantinedMs), isClosed)
    await drop.messages(messagesMs)
    await runInSteps(() => drop.audit(auditMs), isClosed)
    await runInSteps(() => drop.replayJobs(auditMs), isClosed)
    await drop.endDeletions(messagesMs)
    await runInSteps(() => drop.packed(nowMs), isClosed)
    await runInSteps(() => drop.stats(messagesMs, statHoursMs), isClosed)
  })
}
