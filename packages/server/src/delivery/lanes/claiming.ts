// A lane's claims at the store: how many new shipments and retries to claim, and when. Invariants: one claim at a time; a lane claims no
// more than it has room for, and no kind of work that is already waiting in memory, except that it claims a few new shipments ahead while
// there is plenty of memory; a claim that failed is made again a second later.

import type { ClaimedShipment, DeliveryStore } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { Backlog } from '../recording/backlog.ts'
import type { HeldShipments } from '../recording/held-shipments.ts'
import type { Memory } from '../recording/memory.ts'
import type { SendQueue } from './queues/send-queue.ts'

export interface ClaimingDeps {
  store: Pick<DeliveryStore, 'claim'>
  memory: Pick<Memory, 'freeBytes' | 'isHalfFree'>
  clock: Pick<Clock, 'scheduleMs'>
  destinationId: string
  backlog: Backlog
  queue: Pick<SendQueue, 'hasFresh' | 'hasRetries'>
  held: Pick<HeldShipments, 'bytes' | 'roomBytes' | 'charge'>
  /** Called with the claimed shipments, which `holding` has already charged to memory. `probe` is the value given to claimIfNeeded. */
  claimed: (shipments: readonly ClaimedShipment[], probe: boolean) => void
  /** Called when the store is unavailable. The store reports the reason itself. */
  failed: () => void
}

/** The most that one claim reads: small enough not to delay the claims of other lanes, and so that retries leave room for new shipments. */
const CLAIM_BYTES = 256 * 1024
/** What a lane may claim even if other lanes have filled the memory. */
const RESERVED_BYTES = 64 * 1024
/** A lane that holds less claims ahead, because a claim may wait for large commits, and the receiver would get nothing meanwhile. */
const AHEAD_BYTES = 1536 * 1024
const CLAIM_FRESH = 256
const CLAIM_RETRIES = 64
const CLAIM_RETRY_MS = 1_000

export class Claiming {
  readonly #deps: ClaimingDeps
  #underWay = false
  #notBeforeMs = 0

  constructor(deps: ClaimingDeps) {
    this.#deps = deps
  }

  get isUnderWay(): boolean {
    return this.#underWay
  }

  /** After a failed claim, the earliest time of the next one; in the past if no claim failed. */
  get notBeforeMs(): number {
    return this.#notBeforeMs
  }

  /**
   * Claims if the store may have work that is not in memory, and there is room. `probe`: claims one shipment at most. `fresh`: whether it claims new
   * shipments too.
   */
  claimIfNeeded(nowMs: number, probe: boolean, fresh = true): void {
    if (this.#underWay || nowMs < this.#notBeforeMs) return
    const { store, destinationId, backlog, queue } = this.#deps
    const maxRetries = !backlog.hasDueRetries(nowMs) || queue.hasRetries ? 0 : probe ? 1 : CLAIM_RETRIES
    // A retry is the better probe: a first attempt would start a retry window.
    const freshWait = fresh && backlog.hasFresh && (!queue.hasFresh || this.#mayClaimAhead(probe)) && !(probe && maxRetries > 0)
    const maxFresh = !freshWait ? 0 : probe ? 1 : CLAIM_FRESH
    if (maxRetries + maxFresh === 0) return
    const maxBytes = this.#roomBytes()
    // When a held shipment ends, the lane calls this again.
    if (maxBytes < 0) return
    const known = backlog.claimStarted(maxFresh > 0)
    this.#underWay = true
    store.claim({ destinationId, nowMs: backlog.dueBy(nowMs), maxFresh, maxRetries, maxBytes }).then(
      (claim) => {
        this.#underWay = false
        backlog.claimSucceeded(claim)
        this.#deps.held.charge(claim.shipments)
        this.#deps.claimed(claim.shipments, probe)
      },
      () => {
        this.#underWay = false
        backlog.claimFailed(known)
        this.#notBeforeMs = this.#deps.clock.scheduleMs() + CLAIM_RETRY_MS
        this.#deps.failed()
      },
    )
  }

  #mayClaimAhead(probe: boolean): boolean {
    const { memory, held } = this.#deps
    return !probe && held.bytes < AHEAD_BYTES && memory.isHalfFree
  }

  #roomBytes(): number {
    const { memory, held } = this.#deps
    return Math.min(CLAIM_BYTES, held.roomBytes, Math.max(memory.freeBytes, RESERVED_BYTES - held.bytes))
  }
}
