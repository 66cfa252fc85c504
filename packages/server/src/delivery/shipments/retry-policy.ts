// Decides when a delivery is retried, and combines the outcomes of its URLs. Pure functions: time and randomness are arguments. No
// attempt is ever scheduled beyond the retry window. The lane does the waiting, the storing and the slowing of a whole destination.

import type { RetryPolicy } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'

export interface RetryState {
  /** Attempts made so far, at least 1. */
  attempt: number
  firstAttemptAtMs: number
  nowMs: number
  windowMs: number
  policy: RetryPolicy
  retryAfterMs: number | null
  /** At least 0, less than 1. */
  random: () => number
}

export type NextRetry = { kind: 'retry'; atMs: number } | { kind: 'expired' }

export function nextRetry({ attempt, firstAttemptAtMs, nowMs, windowMs, policy, retryAfterMs, random }: RetryState): NextRetry {
  const stepMs = backoffMs(policy, attempt)
  const leastMs = stepMs / 2
  const endMs = firstAttemptAtMs + windowMs
  // Half of the backoff is fixed and half is random. A fully random backoff would spread retries best, but could retry at once.
  const waitMs = Math.max(leastMs + random() * leastMs, retryAfterMs ?? 0)
  const atMs = Math.ceil(nowMs + waitMs)
  if (atMs <= endMs) return { kind: 'retry', atMs }
  // A receiver that recovers in the last minutes of the window still gets the message.
  return endMs - nowMs >= leastMs ? { kind: 'retry', atMs: endMs } : { kind: 'expired' }
}

/** The longest wait after `attempt` attempts; the shortest is half of it. */
export function backoffMs({ initialMs, factor, maxMs }: RetryPolicy, attempt: number): number {
  // In whole milliseconds, because sums of large times and small fractions are not exact.
  return Math.min(Math.round(initialMs * factor ** (attempt - 1)), maxMs)
}

export interface UrlOutcome {
  url: string
  outcome: Pick<Outcome, 'verdict' | 'reason' | 'retryAfterMs'>
}

export type Combined =
  | { kind: 'delivered' }
  | { kind: 'retry'; urls: string[]; retryAfterMs: number | null; reason: string }
  | { kind: 'failed'; reason: string }

/**
 * A success at any URL means delivered. Otherwise the URLs with temporary failures are retried. If there are none, the delivery failed, with
 * the reason of the first URL. The longest Retry-After counts, because all URLs are retried together.
 */
export function combine(outcomes: readonly UrlOutcome[]): Combined {
  const [first] = outcomes
  if (first === undefined) throw new RangeError('combine needs the outcome of one URL at least.')
  if (outcomes.some(({ outcome }) => outcome.verdict === 'success')) return { kind: 'delivered' }
  const temporary = outcomes.filter(({ outcome }) => outcome.verdict === 'temporary')
  const [retried] = temporary
  if (retried === undefined) return { kind: 'failed', reason: reasonOf(first) }
  let retryAfterMs: number | null = null
  for (const { outcome } of temporary) {
    if (outcome.retryAfterMs !== null) retryAfterMs = Math.max(retryAfterMs ?? 0, outcome.retryAfterMs)
  }
  return { kind: 'retry', urls: temporary.map(({ url }) => url), retryAfterMs, reason: reasonOf(retried) }
}

function reasonOf({ outcome }: UrlOutcome): string {
  return outcome.reason ?? 'unknown'
}
