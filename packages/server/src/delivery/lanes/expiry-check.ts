// While nothing may be tried, what was tried before runs out of its window without an attempt to end it: looks for such
// deliveries now and then. What becomes of them is the lane's.

import type { ClaimedShipment, DeliveryStore, Destination } from '../../store/store.ts'

const EVERY_MS = 30_000
const AT_ONCE = 200

export class ExpiryCheck {
  readonly #store: DeliveryStore
  readonly #onChecked: (overdue: readonly ClaimedShipment[]) => void
  #atMs = 0
  /** Questions to the store that are under way. */
  #pending = 0

  /** `came` is called after every question. If the store is unavailable, which it reports itself, the list is empty. */
  constructor(store: DeliveryStore, onChecked: (overdue: readonly ClaimedShipment[]) => void) {
    this.#store = store
    this.#onChecked = onChecked
  }

  get isUnderWay(): boolean {
    return this.#pending > 0
  }

  /** What was held has a window's time for an attempt, before the next look: until then only an attempt that fails ends it. */
  postpone(nowMs: number, retryWindowMs: number): void {
    this.#atMs = nowMs + Math.max(EVERY_MS, retryWindowMs)
  }

  /** Looks, if it is time to; gives when it is again. */
  checkIfDue({ id, retryWindowMs }: Destination, nowMs: number): number {
    if (nowMs >= this.#atMs) {
      this.#atMs = nowMs + Math.min(EVERY_MS, Math.max(1_000, retryWindowMs / 4))
      this.#pending++
      this.#store.claimOverdue(id, nowMs - retryWindowMs, AT_ONCE).then(
        (overdue) => {
          if (overdue.length === AT_ONCE) this.#atMs = 0
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
