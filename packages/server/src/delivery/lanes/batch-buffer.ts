// New shipments that wait for others to form a batch, for at most the destination's linger time. Only counts messages and stored
// bytes: task.ts splits the shipments into batches.

import type { BatchSettings, ClaimedShipment, IsDeleted } from '../../store/store.ts'
import type { CancelTimer, SetTimer } from '../../timing/timers.ts'

export class BatchBuffer {
  readonly #setTimer: SetTimer
  readonly #close: (shipments: ClaimedShipment[]) => void
  readonly #lingered: () => void
  #shipments: ClaimedShipment[] = []
  #count = 0
  #bytes = 0
  #cancelLinger: CancelTimer | null = null

  /** `close` is called with the shipments of a batch; `lingered` is called afterwards if the linger time ended the batch. */
  constructor(setTimer: SetTimer, close: (shipments: ClaimedShipment[]) => void, lingered: () => void) {
    this.#setTimer = setTimer
    this.#close = close
    this.#lingered = lingered
  }

  add(claimed: ClaimedShipment, batch: BatchSettings): void {
    let count = 0
    for (const { indexes } of claimed.shipment.parts) count += indexes.length
    // A shipment that does not fit starts the next batch. If it were split, its rest would be a small batch of its own.
    if (this.#count + count > batch.size) this.close()
    this.#shipments.push(claimed)
    this.#count += count
    this.#bytes += claimed.bytes
    if (this.#count >= batch.size || this.#bytes >= batch.bytes) this.close()
  }

  /** Called when no more shipments are available now: the buffered ones wait for up to `lingerMs`. */
  linger(lingerMs: number): void {
    if (this.#shipments.length === 0) return
    if (lingerMs === 0) this.close()
    else {
      this.#cancelLinger ??= this.#setTimer(() => {
        this.#cancelLinger = null
        this.close()
        this.#lingered()
      }, lingerMs)
    }
  }

  close(): void {
    const shipments = this.takeAll()
    if (shipments.length > 0) this.#close(shipments)
  }

  takeAll(): ClaimedShipment[] {
    this.#cancelLinger?.()
    this.#cancelLinger = null
    const shipments = this.#shipments
    this.#shipments = []
    this.#count = 0
    this.#bytes = 0
    return shipments
  }

  hasAny(isDeleted: IsDeleted): boolean {
    for (const { bodies } of this.#shipments) {
      for (const [segment, { content }] of bodies) {
        const { sourceId, items } = content
        if (items.some((item) => item !== null && isDeleted(sourceId, segment, item))) return true
      }
    }
    return false
  }
}
