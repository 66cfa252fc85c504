// What a lane knows about the shipments of its destination in the store. Pure. Invariant: work that is announced while a claim is in
// progress is not forgotten when the claim returns, because the claim may not have seen it.

import type { Claim } from '../../store/store.ts'

/** The time of the next retry before a claim, restored if the claim fails. */
export type KnownRetry = number | null

export class Backlog {
  /** There may be new shipments that the last claim did not see. */
  #woken = true
  /** The last claim left new shipments. */
  #more = false
  #nextRetryAtMs: number | null = null
  /** Retries that are due until this time count as due now. */
  #hurryUntilMs = Number.NEGATIVE_INFINITY

  /** When the next retry is due; null if no retry is waiting. */
  get nextRetryAtMs(): number | null {
    return this.#nextRetryAtMs
  }

  get hasFresh(): boolean {
    return this.#woken || this.#more
  }

  hasDueRetries(nowMs: number): boolean {
    return this.#nextRetryAtMs !== null && this.#nextRetryAtMs <= this.dueBy(nowMs)
  }

  /** Retries that are due at this time or earlier may be claimed. */
  dueBy(nowMs: number): number {
    return Math.max(nowMs, this.#hurryUntilMs)
  }

  /** All retries that are due until then count as due, until `endHurry`. */
  hurry(untilMs: number): void {
    this.#hurryUntilMs = untilMs
  }

  endHurry(): void {
    this.#hurryUntilMs = Number.NEGATIVE_INFINITY
  }

  wake(): void {
    this.#woken = true
  }

  returned(attempt: number, dueAtMs: number): void {
    if (attempt === 0) this.#woken = true
    else this.#nextRetryAtMs = earlier(this.#nextRetryAtMs, dueAtMs)
  }

  claimStarted(forFresh: boolean): KnownRetry {
    const known = this.#nextRetryAtMs
    this.#nextRetryAtMs = null
    if (forFresh) this.#woken = false
    return known
  }

  claimSucceeded({ moreFresh, nextRetryAtMs }: Claim): void {
    this.#more = moreFresh
    if (nextRetryAtMs === null || nextRetryAtMs > this.#hurryUntilMs) this.endHurry()
    this.#nextRetryAtMs = earlier(this.#nextRetryAtMs, nextRetryAtMs)
  }

  claimFailed(known: KnownRetry): void {
    this.#woken = true
    this.#nextRetryAtMs = earlier(this.#nextRetryAtMs, known)
  }
}

/** The earlier of two times, either of which may be unknown. */
export function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
