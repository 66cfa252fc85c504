// The way of the messages of a period, as a funnel: what arrived and what became of it, first counted in messages and then in deliveries,
// because one message may go to several destinations. Pure.

import type { Point } from '../../components/charts/periods.ts'

export interface Step {
  name: string
  count: number
  /** Lost on the way to the next step, or still waiting. */
  left: readonly { name: string; count: number }[]
}

export interface FunnelSteps {
  messages: readonly Step[]
  deliveries: readonly Step[]
}

/** `pendingNow` is the number of pending deliveries, for a period that ends now. Without it, the largest number of the last point is used. */
export function funnelOf(points: readonly Point[], pendingNow?: number): FunnelSteps {
  const sum = (of: (point: Point) => number | undefined): number => points.reduce((total, point) => total + (of(point) ?? 0), 0)
  const accepted = sum((point) => point.accepted)
  const duplicates = sum((point) => point.duplicates)
  const suppressed = sum((point) => point.suppressed)
  const quarantined = sum((point) => point.quarantined)
  const rejected = sum(({ rejected: byCode = {} }) => Object.values(byCode).reduce((all, count) => all + count, 0))
  const delivered = sum((point) => point.delivered)
  const failed = sum((point) => point.failed)
  const expired = sum((point) => point.expired)
  const cancelled = sum((point) => point.cancelled)
  // What is pending at the end: earlier backlogs are over.
  const waiting = pendingNow ?? points.at(-1)?.pending ?? 0
  return {
    messages: [
      {
        name: 'Received',
        count: accepted + duplicates + rejected + suppressed,
        left: [
          { name: 'rejected', count: rejected },
          { name: 'duplicates', count: duplicates },
          { name: 'suppressed', count: suppressed },
        ],
      },
      { name: 'Accepted', count: accepted, left: [{ name: 'quarantined', count: quarantined }] },
    ],
    deliveries: [
      { name: 'Routed', count: sum((point) => point.owed), left: [] },
      {
        name: 'Delivered',
        count: delivered,
        left: [
          { name: 'failed', count: failed },
          { name: 'expired', count: expired },
          { name: 'cancelled', count: cancelled },
          { name: 'waiting', count: waiting },
        ],
      },
    ],
  }
}
