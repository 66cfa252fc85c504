// Deliveries of a task that will be retried, and which of them are retried together. Pure.

import type { Progress, Shipment } from '../../store/store.ts'
import type { Member } from './member.ts'

/** Deliveries that will be retried together. */
export interface PendingRetry {
  shipment: Shipment
  members: Member[]
  isBatch: boolean
  progress: Progress
  reason: string
  startedAtMs: number
}

/** Retries are combined if their windows began within this time, and within this share of the window. */
const COMBINE_MS = 1_000
const COMBINE_SHARE = 0.01

/**
 * Combines retries. A batch stays a unit of its own. Single messages with the same progress are combined if their windows began at
 * nearly the same time. The combined window begins with the latest of their attempts, so no message's window becomes shorter, and none
 * becomes longer by more than a hundredth.
 */
export function combineRetries(retries: readonly PendingRetry[], windowMs: number): PendingRetry[] {
  const combineMs = Math.min(COMBINE_MS, windowMs * COMBINE_SHARE)
  const combinedRetries: PendingRetry[] = []
  const singles = new Map<string, { retry: PendingRetry; fromMs: number }>()
  for (const retry of [...retries].sort((a, b) => a.startedAtMs - b.startedAtMs)) {
    const key = `${retry.shipment.id} ${retry.progress?.join(' ') ?? ''}`
    const same = retry.isBatch ? undefined : singles.get(key)
    // If the shipment was attempted before, its window began then and is the same for all its messages.
    if (same && (retry.shipment.firstAttemptAtMs !== null || retry.startedAtMs - same.fromMs <= combineMs)) {
      same.retry.members.push(...retry.members)
      same.retry.startedAtMs = retry.startedAtMs
      continue
    }
    const first = { ...retry, members: [...retry.members] }
    combinedRetries.push(first)
    if (!retry.isBatch) singles.set(key, { retry: first, fromMs: retry.startedAtMs })
  }
  return combinedRetries
}
