// Destination Held, and Destination Released: deliveries are held back, because the destination does not fit the installed version of its integration.

import { KEEP, PENDING, pendingText, rule, span } from './rule.ts'

export interface DestinationHold {
  nowMs: number
  /** Whether attempts would be made: the destination is enabled and not paused. */
  isActive: boolean
  /** Null if its deliveries are not held. The problem is null while the node still finds out whether there is one. */
  hold: { problem: string | null } | null
  pendingNow: number
}

export const destinationHeld = rule({
  id: 'destination_held',
  event: 'Destination Held',
  closedEvent: 'Destination Released',
  subject: 'destination',
  severity: () => 'critical',
  measure: PENDING,
  sentences: ['Open when the destination does not fit the installed version of its integration. Close when it fits again.'],
  description:
    'Deliveries to an integration are held back, because the destination does not fit the installed version of the integration, for example after an upgrade.',
  settings: {},
  judge({ nowMs, isActive, hold, pendingNow: pending }: DestinationHold) {
    if (!isActive || hold === null)
      return { verdict: 'close', sinceMs: nowMs, details: { problem: null, pending, reason: isActive ? null : 'not_active' } }
    return hold.problem === null ? KEEP : { verdict: 'open', sinceMs: nowMs, details: { problem: hold.problem, pending, reason: null } }
  },
  opened: (name, { problem, pending }) =>
    `Deliveries to the destination "${name}" are held, because it does not fit the installed version of its integration: ${String(problem)} They are sent when it fits again; ${pendingText(pending)}`,
  closed: (name, { forMs, pending, reason }) =>
    reason === 'not_active'
      ? `The destination "${name}" was paused or disabled. Its deliveries had been held for ${span(forMs)}. ${pendingText(pending)}`
      : `The destination "${name}" fits its integration again. Its deliveries had been held for ${span(forMs)}, and are sent now. ${pendingText(pending)}`,
  link: (id) => `/destinations/${id}`,
})
