// While a destination may not be sent to, the retry window of deliveries can end without another attempt. Periodically claims such
// deliveries from the store; the lane ends them as expired.

import type { ClaimedShipment, DeliveryStore, Destination } from '../../store/store.ts'

const EVERY_MS = 30_000
/** Each can have 500 KB. */
const AT_ONCE = 50
/** With dead letters, the messages of all of them are read and written. */
const LETTERS_AT_ONCE = 20

export class ExpiryCheck {
  readonly #store: DeliveryStore
  readonly #onChecked: (overdue: readonly ClaimedShipment[]) => void
  #atMs = 0
  /** Calls to the store that have not returned. */
  #pending = 0

  /** `onChecked` is called after every check. If the store is unavailable, which the store reports itself, the list is empty. */
  constructor(store: DeliveryStore, onChecked: (overdue: readonly ClaimedShipment[]) => void) {
    this.#store = store
    this.#onChecked = onChecked
  }

  get isUnderWay(): boolean {
    return this.#pending > 0
  }

  /** Postpones the next check by one retry window, so that deliveries held until now get an attempt first. Until then only a failed attempt ends them. */
  postpone(nowMs: number, retryWindowMs: number): void {
    this.#atMs = nowMs + Math.max(EVERY_MS, retryWindowMs)
  }

  /** Starts a check if one is due. Returns the time of the next check. */
  checkIfDue({ id, retryWindowMs, deadLetter }: Destination, nowMs: number): number {
    if (nowMs >= this.#atMs) {
      const limit = deadLetter === null ? AT_ONCE : LETTERS_AT_ONCE
      this.#atMs = nowMs + Math.min(EVERY_MS, Math.max(1_000, retryWindowMs / 4))
      this.#pending++
      this.#store.claimOverdue(id, nowMs - retryWindowMs, limit).then(
        (overdue) => {
          if (overdue.length === limit) this.#atMs = 0
          this.#ended(overdue)
        },
        () => this.#ended([]),
      )
    }
    return this.#atMs
  }

  #ended(overdue: readonly ClaimedShipment[]): void {
    this.#pending--
    this.#onChecked(overdue)
  }
}
