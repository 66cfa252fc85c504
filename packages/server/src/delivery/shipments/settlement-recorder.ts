// Has the store record what happened, and does not let go of it early: what was sent and is not recorded would be sent
// again. A store that is away is asked again for as long as it takes; one that refuses is asked a few times, and the
// deliveries are then given back after a long while, since sending twice is better than never and once in a while better
// than in a loop. What is no longer held by this process is nothing to it any more: whoever holds it records what it does.

import { ClaimLost, type DeliveryStore, type Settlement, StoreUnavailable } from '../../store/store.ts'
import type { CancelTimer, SetTimer } from '../lanes/timers.ts'

const FIRST_RETRY_MS = 250
const MAX_RETRY_MS = 30_000
const MAX_REJECTIONS = 3
/** The longest wait between two attempts, here too. */
export const RELEASE_REJECTED_MS = 600_000

export class SettlementRecorder {
  readonly #store: DeliveryStore
  readonly #setTimer: SetTimer
  readonly #onError: (error: unknown) => void
  readonly #onReleased: () => void
  readonly #waiting = new Map<() => void, CancelTimer>()
  #stopsWaiting = false

  /** `released`: what had been refused is claimable again. */
  constructor(store: DeliveryStore, setTimer: SetTimer, onError: (error: unknown) => void, onReleased: () => void) {
    this.#store = store
    this.#setTimer = setTimer
    this.#onError = onError
    this.#onReleased = onReleased
  }

  /** `over(true)` once it is durable; `over(false)` when it has been given up, and the store still has it as it was. */
  record(settlement: Settlement, onEnd: (recorded: boolean) => void): void {
    this.#try(settlement, onEnd, 1)
  }

  /** Ends the waiting: everything is tried once more, now, and given up if that fails. */
  stopWaiting(): void {
    this.#stopsWaiting = true
    for (const [run, cancel] of this.#waiting) {
      cancel()
      run()
    }
  }

  #try(settlement: Settlement, onEnd: (recorded: boolean) => void, nth: number): void {
    this.#store.settle(settlement).then(
      () => onEnd(true),
      (error: unknown) => this.#failed(settlement, onEnd, nth, error),
    )
  }

  #failed(settlement: Settlement, onEnd: (recorded: boolean) => void, nth: number, error: unknown): void {
    if (error instanceof ClaimLost) {
      this.#onError(error)
      onEnd(false)
      return
    }
    const rejected = !(error instanceof StoreUnavailable) && nth >= MAX_REJECTIONS
    if (nth === 1 || rejected || this.#stopsWaiting) this.#onError(error)
    if (rejected || this.#stopsWaiting) {
      onEnd(false)
      this.#later(RELEASE_REJECTED_MS, () => {
        this.#store.release([...settlement.done, ...settlement.kept.map(({ shipment }) => shipment)])
        this.#onReleased()
      })
    } else this.#later(Math.min(FIRST_RETRY_MS * 2 ** (nth - 1), MAX_RETRY_MS), () => this.#try(settlement, onEnd, nth + 1))
  }

  #later(delayMs: number, act: () => void): void {
    const run = (): void => {
      this.#waiting.delete(run)
      act()
    }
    if (this.#stopsWaiting) run()
    else this.#waiting.set(run, this.#setTimer(run, delayMs))
  }
}
