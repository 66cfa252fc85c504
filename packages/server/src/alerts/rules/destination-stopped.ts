// Destination Stopped: somebody paused or disabled a destination, and deliveries wait until it is resumed or enabled.

import { many, PENDING, rule } from './rule.ts'

export interface StoppedDestination {
  nowMs: number
  /** Null if deliveries are made. */
  stopped: 'paused' | 'disabled' | null
  pendingNow: number
  oldestPendingAtMs: number | null
}

export const destinationStopped = rule({
  id: 'destination_stopped',
  event: 'Destination Stopped',
  subject: 'destination',
  severity: () => 'notice',
  notifies: false,
  measure: PENDING,
  actions: (destinationId, { stopped }) => (stopped === 'paused' ? [{ action: 'resume', destinationId, states: [] }] : []),
  description: 'A destination is paused or disabled, and deliveries to it are pending.',
  sentences: ['Open when a destination is paused or disabled while deliveries to it are pending. Close when it is not.'],
  settings: {},
  judge({ nowMs, stopped, pendingNow: pending, oldestPendingAtMs }: StoppedDestination) {
    const verdict = stopped !== null && pending > 0 ? 'open' : 'close'
    return { verdict, sinceMs: oldestPendingAtMs ?? nowMs, details: { stopped, pending } }
  },
  opened: (_name, { stopped, pending }) =>
    stopped === 'paused'
      ? `Paused: ${many(pending, 'delivery', 'deliveries')} pending. Resume the destination to send them.`
      : `Disabled: ${many(pending, 'delivery', 'deliveries')} pending. Enable the destination to send them; new messages skip it.`,
  closed: (name) => `No deliveries wait any more because the destination "${name}" is paused or disabled.`,
  link: (id) => `/destinations/${id}`,
})
