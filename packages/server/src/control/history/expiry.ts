// When pending deliveries expire: at the end of the retry window, which begins with the first attempt.

import type { ControlParts } from '../routes/route.ts'
import { dueMs } from '../routes/times.ts'

/**
 * Returns a function for one request. It converts the schedule time of a first attempt at a destination to the wall time at which the delivery
 * expires. The result is
 * null if there was no attempt, and while nothing expires because the destination is disabled, paused or held.
 */
export function expiryOf({ store, clock, delivery }: Pick<ControlParts, 'store' | 'clock' | 'delivery'>) {
  const windows = new Map<string, number | null>()
  function windowOf(destinationId: string): number | null {
    const destination = store.configuration().destinations.get(destinationId)
    if (destination === undefined || !destination.enabled || destination.paused) return null
    return delivery.health(destinationId)?.held == null ? destination.retryWindowMs : null
  }
  return (destinationId: string, firstAttemptAtMs: number | null): number | null => {
    if (firstAttemptAtMs === null) return null
    if (!windows.has(destinationId)) windows.set(destinationId, windowOf(destinationId))
    const windowMs = windows.get(destinationId) ?? null
    return windowMs === null ? null : dueMs(clock, firstAttemptAtMs + windowMs)
  }
}
