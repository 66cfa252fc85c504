// Has the store record what happened, and does not let go of it early: what was sent and is not recorded would be sent
// again. A store that is away is asked again for as long as it takes; one that refuses is asked a few times, and the
// deliveries are then given back after a long while, since sending twice is better than never and once in a while better
// than in a loop. What is no longer held by this process is nothing to it any more: whoever holds it records what it does.

import { ClaimLost, type DeliveryStore, type Settlement, StoreUnavailable } from '../../store/store.ts'
import type { CancelTimer, SetTimer } from '../lanes/timers.ts'

const FIRST_AGAIN_MS = 250
const MAX_AGAIN_MS = 30_000
const REFUSALS = 3
/** The longest wait between two attempts, here too. */
export const RELEASE_REFUSED_MS = 600_000

export class Recorder {
  readonly #store: DeliveryStore
  readonly #setTimer: SetTimer
  readonly #trouble: (error: unknown) => void
  readonly #released: () => void
  readonly #waiting = new Map<() => void, CancelTimer>()
  #hurried = false

  /** `released`: what had been refused is claimable again. */
  constructor(store: DeliveryStore, setTimer: SetTimer, trouble: (error: unknown) => void, released: () => void) {
    this.#store = store
    this.#setTimer = setTimer
    this.#trouble = trouble
    this.#released = released
  }

  /** `over(true)` once it is durable; `over(false)` when it has been given up, and the store still has it as it was. */
  record(settlement: Settlement, over: (recorded: boolean) => void): void {
    this.#try(settlement, over, 1)
  }

  /** Ends the waiting: everything is tried once more, now, and given up if that fails. */
  hurry(): void {
    this.#hurried = true
    for (const [run, cancel] of this.#waiting) {
      cancel()
      run()
    }
  }

  #try(settlement: Settlement, over: (recorded: boolean) => void, nth: number): void {
    this.#store.settle(settlement).then(
      () => over(true),
      (error: unknown) => this.#failed(settlement, over, nth, error),
    )
  }

  #failed(settlement: Settlement, over: (recorded: boolean) => void, nth: number, error: unknown): void {
    if (error instanceof ClaimLost) {
      this.#trouble(error)
      over(false)
      return
    }
    const refused = !(error instanceof StoreUnavailable) && nth >= REFUSALS
    if (nth === 1 || refused || this.#hurried) this.#trouble(error)
    if (refused || this.#hurried) {
      over(false)
      this.#later(RELEASE_REFUSED_MS, () => {
        this.#store.release([...settlement.done, ...settlement.kept.map(({ shipment }) => shipment)])
        this.#released()
      })
    } else this.#later(Math.min(FIRST_AGAIN_MS * 2 ** (nth - 1), MAX_AGAIN_MS), () => this.#try(settlement, over, nth + 1))
  }

  #later(delayMs: number, act: () => void): void {
    const run = (): void => {
      this.#waiting.delete(run)
      act()
    }
    if (this.#hurried) run()
    else this.#waiting.set(run, this.#setTimer(run, delayMs))
  }
}
