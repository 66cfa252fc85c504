// Deliveries Failed: the receiver rejected messages for good, or they could not be built, so they are not retried. If most attempts fail,
// destination-failing.ts opens an incident instead, which counts these deliveries, too.

import { type DestinationMinute, MINUTE_MS, type Minutes, many, minuteOf, minutesSetting, numberSetting, rule } from './rule.ts'

export interface Failures {
  nowMs: number
  minutes: Minutes<DestinationMinute>
  /** Why the last attempt failed, as a sentence. */
  cause?: string | null
  /** When the last `destination_failing` incident was closed. It counted the deliveries that had failed until then. */
  failingUntilMs?: number | null
}

export const deliveriesFailed = rule({
  id: 'deliveries_failed',
  event: 'Deliveries Failed',
  subject: 'destination',
  severity: () => 'warning',
  notifies: false,
  unless: ['destination_failing'],
  measure: { name: 'failed', label: 'deliveries that failed permanently in the last hour' },
  actions: (destinationId) => [{ action: 'replay', destinationId, states: ['failed'] }],
  description:
    'Deliveries failed permanently, for example because the receiver rejected the messages. They are not retried, but can be replayed.',
  sentences: [
    'Open when {openAfterCount} deliveries have failed permanently within an hour.',
    'Close when none has failed for {closeAfterMinutes} minutes.',
  ],
  settings: {
    openAfterCount: numberSetting(
      1,
      1,
      1_000_000_000,
      'Open an incident when this many deliveries have failed permanently within an hour.',
    ),
    closeAfterMinutes: minutesSetting(30, 'Close it when no delivery has failed permanently for this many minutes.', 60),
  },
  judge({ nowMs, minutes, cause = null, failingUntilMs = null }: Failures, { openAfterCount, closeAfterMinutes }) {
    const now = minuteOf(nowMs)
    const counted = failingUntilMs === null ? Number.NEGATIVE_INFINITY : minuteOf(failingUntilMs)
    let [failed, first, last] = [0, now, Number.NEGATIVE_INFINITY]
    for (const [minute, { failedForGood }] of minutes) {
      if (failedForGood === 0 || minute <= now - 60 || minute <= counted) continue
      failed += failedForGood
      first = Math.min(first, minute)
      last = Math.max(last, minute)
    }
    const verdict = now - last > closeAfterMinutes ? 'close' : failed >= openAfterCount ? 'open' : 'keep'
    return { verdict, sinceMs: first * MINUTE_MS, details: { failed, ...(cause === null ? {} : { cause }) } }
  },
  opened: (name, { failed }) =>
    `${many(failed, 'delivery', 'deliveries')} to the destination "${name}" failed permanently within the last hour. Correct the cause, and replay them.`,
  closed: (name) => `Deliveries to the destination "${name}" no longer fail permanently.`,
  link: (id) => `/deliveries?destinationId=${id}&state=failed`,
})
