// Deliveries Delayed: the oldest pending delivery has waited for some time, although the destination is active.

import { expiryDetails, expiryText, HOUR_MS, MINUTE_MS, many, numberSetting, PENDING, retryNow, rule, span } from './rule.ts'

export interface Waiting {
  nowMs: number
  isActive: boolean
  pendingNow: number
  oldestPendingAtMs: number | null
  /** Why the last attempt failed, as a sentence. */
  cause?: string | null
  /** When the first pending delivery expires if no attempt succeeds; null if none was attempted, or nothing expires. */
  nextExpiryAtMs?: number | null
}

export const deliveriesDelayed = rule({
  id: 'deliveries_delayed',
  event: 'Deliveries Delayed',
  subject: 'destination',
  severity: ({ oldestMs }) => (Number(oldestMs) > HOUR_MS ? 'critical' : 'warning'),
  notifies: false,
  unless: ['destination_failing', 'destination_held', 'backlog_growing', 'attempts_failing'],
  measure: PENDING,
  actions: (id) => [retryNow(id)],
  description: 'Deliveries have been pending for some time, for example because a few messages are retried again and again.',
  sentences: [
    'Open when more than {leastPending} deliveries are pending, and the oldest has waited for {openAfterMinutes} minutes.',
    'Close when the oldest has waited for less.',
  ],
  settings: {
    openAfterMinutes: numberSetting(5, 1, 1_440, 'Open an incident when the oldest delivery has waited for this many minutes.'),
    leastPending: numberSetting(0, 0, 1_000_000_000, 'Open an incident only if more deliveries than this are pending.'),
  },
  judge(
    { nowMs, isActive, pendingNow: pending, oldestPendingAtMs, cause = null, nextExpiryAtMs = null }: Waiting,
    { openAfterMinutes, leastPending },
  ) {
    const oldestMs = oldestPendingAtMs === null ? 0 : Math.max(0, nowMs - oldestPendingAtMs)
    const isMet = isActive && pending > leastPending && oldestMs >= openAfterMinutes * MINUTE_MS
    const details = { pending, oldestMs, ...expiryDetails(nowMs, nextExpiryAtMs), ...(cause === null ? {} : { cause }) }
    return { verdict: isMet ? 'open' : 'close', sinceMs: oldestPendingAtMs ?? nowMs, details }
  },
  opened: (name, { pending, oldestMs, ...expiry }) =>
    `${many(pending, 'delivery', 'deliveries')} to the destination "${name}" ${Number(pending) === 1 ? 'is' : 'are'} pending, the oldest for ${span(oldestMs)}.${expiryText(expiry)}`,
  closed: (name) => `Deliveries to the destination "${name}" are no longer delayed.`,
  link: (id) => `/deliveries?destinationId=${id}&state=pending`,
})
