// Ends heads of ordered keys behind which too many messages wait, while the destination itself works: its key goes on with the next message. Asks the
// store once a second as long as it has a head. With `onFailure: hold`, keys go on collecting.

import type { CrowdedHead, DeliveryStore, Destination } from '../../store/store.ts'

const EVERY_MS = 1_000
/** Each can have 500 KB. */
const AT_ONCE = 20

export class CrowdedCheck {
  readonly #store: Pick<DeliveryStore, 'claimCrowded'>
  readonly #onChecked: (heads: readonly CrowdedHead[]) => void
  #atMs = 0
  #pending = 0

  /** `onChecked` is called after every check. If the store is unavailable, which the store reports itself, the list is empty. */
  constructor(store: Pick<DeliveryStore, 'claimCrowded'>, onChecked: (heads: readonly CrowdedHead[]) => void) {
    this.#store = store
    this.#onChecked = onChecked
  }

  get isUnderWay(): boolean {
    return this.#pending > 0
  }

  /** Starts a check if one is due. Returns the time of the next check. */
  checkIfDue({ id, order }: Destination, nowMs: number): number {
    if (nowMs < this.#atMs || order == null) return this.#atMs
    this.#atMs = nowMs + EVERY_MS
    this.#pending++
    this.#store.claimCrowded(id, order.maxWaiting, AT_ONCE).then(
      (heads) => {
        if (heads.length === AT_ONCE) this.#atMs = 0
        this.#ended(heads)
      },
      () => this.#ended([]),
    )
    return this.#atMs
  }

  #ended(heads: readonly CrowdedHead[]): void {
    this.#pending--
    this.#onChecked(heads)
  }
}
