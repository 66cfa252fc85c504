// Deliveries Expired: deliveries were given up, because they could not be made within the retry window.

import { type DestinationMinute, MINUTE_MS, type Minutes, many, minuteOf, minutesSetting, numberSetting, rule } from './rule.ts'

export interface Expiries {
  nowMs: number
  minutes: Minutes<DestinationMinute>
  /** Why the last attempt failed, as a sentence. */
  cause?: string | null
}

export const deliveriesExpired = rule({
  id: 'deliveries_expired',
  event: 'Deliveries Expired',
  subject: 'destination',
  severity: () => 'warning',
  measure: { name: 'expired', label: 'expired deliveries in the last hour' },
  actions: (destinationId) => [{ action: 'replay', destinationId, states: ['expired'] }],
  sentences: [
    'Open when {openAfterCount} deliveries have expired within an hour.',
    'Close when none has expired for {closeAfterMinutes} minutes.',
  ],
  description: 'Deliveries were given up at the end of the retry window. They can be replayed.',
  settings: {
    openAfterCount: numberSetting(1, 1, 1_000_000_000, 'Open an incident when this many deliveries have expired within an hour.'),
    closeAfterMinutes: minutesSetting(30, 'Close it when no delivery has expired for this many minutes.', 180),
  },
  judge({ nowMs, minutes, cause = null }: Expiries, { openAfterCount, closeAfterMinutes }) {
    const now = minuteOf(nowMs)
    let [expired, first, last] = [0, now, Number.NEGATIVE_INFINITY]
    for (const [minute, counts] of minutes) {
      if (counts.expired === 0 || minute <= now - 60) continue
      expired += counts.expired
      first = Math.min(first, minute)
      last = Math.max(last, minute)
    }
    const verdict = now - last > closeAfterMinutes ? 'close' : expired >= openAfterCount ? 'open' : 'keep'
    return { verdict, sinceMs: first * MINUTE_MS, details: { expired, ...(cause === null ? {} : { cause }) } }
  },
  opened: (name, { expired }) =>
    `${many(expired, 'delivery', 'deliveries')} to the destination "${name}" expired within the last hour and will not be retried. Replay them once the destination works.`,
  closed: (name) => `Deliveries to the destination "${name}" are no longer expiring.`,
  link: (id) => `/deliveries?destinationId=${id}&state=expired`,
})
