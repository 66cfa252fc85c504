// Records settlements in the store and retries them, because a message whose outcome is not recorded would be sent again. While the store
// is unavailable, it retries without limit. If the store rejects a settlement, it retries a few times and then releases the shipments
// after a long delay: sending twice is better than never, and the delay prevents a loop. A settlement of shipments that this process no
// longer holds is dropped: the new holder records its own outcomes.

import { ClaimLost, type DeliveryStore, type Settlement, StoreUnavailable } from '../../store/store.ts'
import type { CancelTimer, SetTimer } from '../../timing/timers.ts'
import type { StoreState } from './store-state.ts'

const FIRST_RETRY_MS = 250
const MAX_RETRY_MS = 30_000
const MAX_REJECTIONS = 3
/** As long as the longest wait between two delivery attempts. */
export const RELEASE_REJECTED_MS = 600_000

export interface RecorderDeps {
  store: Pick<DeliveryStore, 'settle' | 'release'>
  setTimer: SetTimer
  storeState: Pick<StoreState, 'settlementsFailed'>
  onError: (error: unknown) => void
  /** Called when shipments whose settlement was rejected can be claimed again. */
  onReleased: () => void
}

interface Recording {
  settlement: Settlement
  onEnd: (recorded: boolean) => void
  /** The number of the try, from 1. */
  nth: number
  /** Whether a try failed because the store is unavailable. */
  hasFailed: boolean
}

export class SettlementRecorder {
  readonly #deps: RecorderDeps
  readonly #waiting = new Map<() => void, CancelTimer>()
  #stopsWaiting = false

  constructor(deps: RecorderDeps) {
    this.#deps = deps
  }

  /** Calls `onEnd(true)` once the settlement is durable, or `onEnd(false)` when it was abandoned and the store is unchanged. */
  record(settlement: Settlement, onEnd: (recorded: boolean) => void): void {
    this.#try({ settlement, onEnd, nth: 1, hasFailed: false })
  }

  /** Stops waiting: retries everything once, immediately, and abandons what fails. */
  stopWaiting(): void {
    this.#stopsWaiting = true
    for (const [run, cancel] of this.#waiting) {
      cancel()
      run()
    }
  }

  #try(recording: Recording): void {
    this.#deps.store.settle(recording.settlement).then(
      () => this.#end(recording, true),
      (error: unknown) => this.#failed(recording, error),
    )
  }

  #end({ onEnd, hasFailed }: Recording, recorded: boolean): void {
    if (hasFailed) this.#deps.storeState.settlementsFailed(-1)
    onEnd(recorded)
  }

  #failed(recording: Recording, error: unknown): void {
    if (error instanceof ClaimLost) {
      this.#deps.onError(error)
      this.#end(recording, false)
      return
    }
    const { settlement, nth } = recording
    const isUnavailable = error instanceof StoreUnavailable
    const rejected = !isUnavailable && nth >= MAX_REJECTIONS
    if (nth === 1 || rejected || this.#stopsWaiting) this.#deps.onError(error)
    if (rejected || this.#stopsWaiting) {
      this.#end(recording, false)
      this.#later(RELEASE_REJECTED_MS, () => {
        this.#deps.store.release([...settlement.done, ...settlement.kept.map(({ shipment }) => shipment)])
        this.#deps.onReleased()
      })
      return
    }
    if (isUnavailable && !recording.hasFailed) {
      recording.hasFailed = true
      this.#deps.storeState.settlementsFailed(1)
    }
    recording.nth++
    this.#later(Math.min(FIRST_RETRY_MS * 2 ** (nth - 1), MAX_RETRY_MS), () => this.#try(recording))
  }

  #later(delayMs: number, act: () => void): void {
    const run = (): void => {
      this.#waiting.delete(run)
      act()
    }
    if (this.#stopsWaiting) run()
    else this.#waiting.set(run, this.#deps.setTimer(run, delayMs))
  }
}
