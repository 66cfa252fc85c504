// Destination Failing, and Destination Recovered: for some minutes, most delivery attempts failed.

import {
  type DestinationMinute,
  type Details,
  expiryDetails,
  expiryText,
  grouped,
  KEEP,
  MINUTE_MS,
  type Minutes,
  many,
  minuteOf,
  minutesSetting,
  numberSetting,
  PENDING,
  pendingText,
  retriedText,
  retryNow,
  rule,
  span,
} from './rule.ts'

export interface DestinationOutcomes {
  nowMs: number
  minutes: Minutes<DestinationMinute>
  /** Whether attempts are made: the destination is enabled and not paused. */
  isActive: boolean
  pendingNow: number
  /** Why the last attempt failed, if this node made it: as a code, and as a sentence. */
  reason: string | null
  cause?: string | null
  /** When the first pending delivery expires if no attempt succeeds; null if none was attempted, or nothing expires. */
  nextExpiryAtMs?: number | null
}

/** Fewer failures than this may be one message with a problem of its own. */
const LEAST_FAILURES = 3

export const destinationFailing = rule({
  id: 'destination_failing',
  event: 'Destination Failing',
  closedEvent: 'Destination Recovered',
  subject: 'destination',
  severity: () => 'critical',
  measure: PENDING,
  actions: (id, { pending, failedPermanently }) => [
    ...(pending === 0 ? [] : [retryNow(id)]),
    ...(Number(failedPermanently ?? 0) === 0 ? [] : [{ action: 'replay', destinationId: id, states: ['failed'] } as const]),
  ],
  sentences: [
    'Open when most attempts have failed for {openAfterMinutes} minutes. A minute counts as failing if at least {failurePercent} % of its attempts failed.',
    'Close when most attempts have succeeded for {closeAfterMinutes} minutes.',
  ],
  description: 'For several minutes, most delivery attempts to a destination have failed.',
  settings: {
    openAfterMinutes: minutesSetting(5, 'Open an incident when most attempts have failed for this many minutes.', 60),
    closeAfterMinutes: minutesSetting(2, 'Close it when most attempts have succeeded for this many minutes.', 60),
    failurePercent: numberSetting(50, 1, 100, 'A minute counts as failing if at least this percentage of its attempts failed.'),
  },
  judge(
    { nowMs, minutes, isActive, pendingNow: pending, reason, cause = null, nextExpiryAtMs = null }: DestinationOutcomes,
    { openAfterMinutes, closeAfterMinutes, failurePercent },
  ) {
    const waiting = { pending, ...expiryDetails(nowMs, nextExpiryAtMs) }
    if (!isActive) return { verdict: 'close', sinceMs: nowMs, details: { failed: 0, delivered: 0, pending, reason: 'not_active' } }
    const isFailing = ({ delivered, failed }: DestinationMinute): boolean =>
      failed > 0 && failed * 100 >= failurePercent * (failed + delivered)
    const counted = [...minutes].filter(([, { delivered, failed }]) => delivered + failed > 0).sort(([a], [b]) => b - a)
    const [latest] = counted
    // Without an attempt there is nothing to judge by: a retry may be minutes away.
    if (latest === undefined)
      return pending === 0
        ? { verdict: 'close', sinceMs: nowMs, details: { failed: 0, delivered: 0, pending, reason: 'nothing_pending' } }
        : { ...KEEP, details: waiting }
    const state = isFailing(latest[1])
    const end = counted.findIndex(([, minute]) => isFailing(minute) !== state)
    const run = end === -1 ? counted : counted.slice(0, end)
    const sum = { failed: 0, delivered: 0, failedPermanently: 0 }
    for (const [, { failed, delivered, failedForGood }] of run) {
      sum.failed += failed
      sum.delivered += delivered
      sum.failedPermanently += failedForGood
    }
    const first = (run.at(-1) as (typeof run)[number])[0]
    const ageMinutes = minuteOf(nowMs) - first
    const details = { ...sum, ...waiting, reason: state ? reason : null, ...(state && cause !== null ? { cause } : {}) }
    const sinceMs = first * MINUTE_MS
    if (state) {
      const isMeant = sum.failed >= LEAST_FAILURES
      const isOpen = isMeant && ageMinutes >= openAfterMinutes
      return { verdict: isOpen ? 'open' : 'keep', sinceMs, details: isMeant ? details : waiting, isStarting: isMeant && !isOpen }
    }
    if (ageMinutes >= closeAfterMinutes) return { verdict: 'close', sinceMs, details: { pending, reason: null } }
    // Until the incident is closed, its message keeps the counts of the attempts that failed.
    return { verdict: 'keep', sinceMs, details: waiting }
  },
  // The cause is shown beside the message, and alerts repeat it, so the code is only needed without it.
  opened: (name, { failed, delivered, pending, reason, cause, failedPermanently, forMs, ...expiry }) =>
    `The destination "${name}" has been failing for ${span(forMs)}: ${grouped(failed)} of ${grouped(Number(failed) + Number(delivered))} delivery attempts failed` +
    `${reason == null || cause != null ? '' : `, the last one with ${String(reason)}`}. ${fateText(pending, failedPermanently, expiry)}`,
  closed: (name, { forMs, pending, reason, failedPermanently }) => {
    const before =
      `It had been failing for ${span(forMs)}.` +
      (Number(failedPermanently ?? 0) === 0 ? '' : ' The deliveries that failed permanently in that time can be replayed.')
    if (reason === 'not_active') return `The destination "${name}" was paused or disabled. ${before} ${pendingText(pending)}`
    if (reason === 'nothing_pending') return `No deliveries to the destination "${name}" are pending any more. ${before}`
    return `The destination "${name}" has recovered. ${before} ${pendingText(pending)}`
  },
  link: (id) => `/destinations/${id}`,
})

/** What becomes of the deliveries whose attempts failed. Incidents of earlier versions do not have the number of those that failed permanently. */
function fateText(pending: unknown, failedPermanently: unknown, expiry: Details): string {
  const permanent = Number(failedPermanently ?? 0)
  if (permanent === 0) return retriedText(pending, expiry)
  const lost = `${many(permanent, 'delivery', 'deliveries')} failed permanently and will not be retried: correct the cause, and replay ${permanent === 1 ? 'it' : 'them'}.`
  return Number(pending) === 0 ? lost : `${lost} Other failed attempts are retried; ${pendingText(pending)}${expiryText(expiry)}`
}
