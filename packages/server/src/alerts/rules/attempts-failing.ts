// Attempts Failing: a noticeable share of the attempts to deliver to a destination fails, although most succeed. Only failures that are retried
// count: for other failures, deliveries-failed.ts opens an incident.

import {
  type DestinationMinute,
  expiryDetails,
  grouped,
  MINUTE_MS,
  type Minutes,
  minuteOf,
  numberSetting,
  PENDING,
  pendingText,
  retriedText,
  rule,
} from './rule.ts'

export interface AttemptOutcomes {
  nowMs: number
  minutes: Minutes<DestinationMinute>
  isActive: boolean
  pendingNow: number
  /** Why the last attempt failed, as a sentence. */
  cause?: string | null
  /** When the first pending delivery expires if no attempt succeeds; null if none was attempted, or nothing expires. */
  nextExpiryAtMs?: number | null
}

const PERIOD_MINUTES = 15
/** The share of the last minutes with attempts must be as high, so that a destination that has recovered is not listed. */
const LATEST_MINUTES = 3

export const attemptsFailing = rule({
  id: 'attempts_failing',
  event: 'Attempts Failing',
  subject: 'destination',
  severity: () => 'warning',
  notifies: false,
  unless: ['destination_failing'],
  measure: PENDING,
  actions: (id) => [{ action: 'retry', destinationId: id, states: [] }],
  description: 'Many, but not most, of the attempts to deliver to a destination fail and are retried.',
  sentences: [
    `Open when at least {failurePercent} % of the attempts of the last ${PERIOD_MINUTES} minutes failed and are retried, and there were at least {leastAttempts} attempts.`,
    `Close when the share is lower.`,
  ],
  settings: {
    failurePercent: numberSetting(20, 1, 100, 'Open an incident only if at least this percentage of the attempts failed.'),
    leastAttempts: numberSetting(20, 1, 1_000_000_000, 'Open an incident only if there were at least this many attempts.'),
  },
  judge(
    { nowMs, minutes, isActive, pendingNow: pending, cause = null, nextExpiryAtMs = null }: AttemptOutcomes,
    { failurePercent, leastAttempts },
  ) {
    const now = minuteOf(nowMs)
    let [failed, attempts, first] = [0, 0, now]
    for (const [minute, counts] of minutes) {
      if (minute <= now - PERIOD_MINUTES) continue
      failed += retried(counts)
      attempts += counts.failed + counts.delivered
      if (retried(counts) > 0) first = Math.min(first, minute)
    }
    const latest = [...minutes]
      .filter(([, { delivered, failed }]) => delivered + failed > 0)
      .sort(([a], [b]) => b - a)
      .slice(0, LATEST_MINUTES)
    const latestFailed = latest.reduce((sum, [, counts]) => sum + retried(counts), 0)
    const latestAttempts = latest.reduce((sum, [, counts]) => sum + counts.failed + counts.delivered, 0)
    const isStill = latestFailed > 0 && latestFailed * 100 >= failurePercent * latestAttempts
    const isMet = isActive && isStill && failed * 100 >= failurePercent * attempts
    const verdict = !isMet ? 'close' : attempts >= leastAttempts ? 'open' : 'keep'
    const details = { failed, attempts, pending, ...expiryDetails(nowMs, nextExpiryAtMs), ...(cause === null ? {} : { cause }) }
    return { verdict, sinceMs: first * MINUTE_MS, details }
  },
  opened: (name, { failed, attempts, pending, ...expiry }) =>
    `${grouped(failed)} of ${grouped(attempts)} attempts to deliver to the destination "${name}" failed in the last ${PERIOD_MINUTES} minutes. ${retriedText(pending, expiry)}`,
  closed: (name, { pending }) => `Most attempts to deliver to the destination "${name}" succeed again; ${pendingText(pending)}`,
  link: (id) => `/destinations/${id}`,
})

function retried({ failed, failedForGood }: DestinationMinute): number {
  return Math.max(0, failed - failedForGood)
}
