// What pages derive from the state of a delivery: how soon to refresh it, and whether it can be replayed. Pure.

/** How soon to refresh; undefined if no delivery is pending. */
export function refreshMs(deliveries: readonly { state: string; nextAttemptAt: string | null }[], nowMs: number): number | undefined {
  const pending = deliveries.filter(({ state }) => state === 'pending')
  if (pending.length === 0) return undefined
  const soonest = Math.min(...pending.map(({ nextAttemptAt }) => (nextAttemptAt === null ? nowMs : Date.parse(nextAttemptAt))))
  return soonest - nowMs > 30_000 ? 10_000 : 2_000
}

/** Returns why a delivery cannot be replayed; null if it can. */
export function replayObstacle({ state }: { state: string }, isMessageGone: boolean, isDestinationGone: boolean): string | null {
  if (state === 'pending') return 'The delivery is still pending and is sent automatically.'
  if (isMessageGone) return 'The message is no longer stored.'
  if (isDestinationGone) return 'The destination was deleted.'
  return null
}
