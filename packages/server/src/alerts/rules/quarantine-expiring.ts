// Quarantine Expiring: messages in quarantine will be deleted soon, because nobody has released them.

import { DAY_MS, many, numberSetting, rule, span } from './rule.ts'

export interface Quarantine {
  nowMs: number
  /** The oldest message in quarantine. Null if there is none, or if messages in quarantine do not expire. */
  oldest: { sourceName: string; expiresAtMs: number } | null
  /** The number of messages in quarantine. */
  quarantined: number
}

export const quarantineExpiring = rule({
  id: 'quarantine_expiring',
  event: 'Quarantine Expiring',
  subject: 'service',
  severity: () => 'warning',
  measure: { name: 'quarantined', label: 'messages in quarantine' },
  sentences: ['Open when the first message in quarantine will be deleted within {daysBefore} days. Close when none will.'],
  description:
    'Messages in quarantine will be deleted soon, because they are nearly as old as SWITCHYARD_QUARANTINE_DAYS allows. Release or delete them.',
  settings: {
    daysBefore: numberSetting(3, 1, 365, 'Open an incident when the first message expires within this many days.'),
  },
  judge({ nowMs, oldest, quarantined }: Quarantine, { daysBefore }) {
    const leftMs = oldest === null ? Number.POSITIVE_INFINITY : oldest.expiresAtMs - nowMs
    if (oldest === null || leftMs > daysBefore * DAY_MS) return { verdict: 'close', sinceMs: nowMs, details: { quarantined } }
    const details = { quarantined, sourceName: oldest.sourceName, expiresInMs: Math.max(0, leftMs) }
    return { verdict: 'open', sinceMs: Math.min(nowMs, oldest.expiresAtMs - daysBefore * DAY_MS), details }
  },
  opened: (_name, { quarantined, sourceName, expiresInMs }) =>
    `${many(quarantined, 'message is', 'messages are')} in quarantine. The oldest, from the source "${String(sourceName)}", will be deleted in ${span(expiresInMs)}. Release the messages that you want to keep, or raise SWITCHYARD_QUARANTINE_DAYS.`,
  closed: () => 'No message in quarantine will be deleted soon.',
  link: () => '/plans?tab=quarantine',
})
