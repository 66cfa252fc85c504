// The bytes that all lanes hold in memory together. New shipments are only accepted while there is room. A lane that needs a claim to
// make progress may exceed the limit, so that lanes that fill the memory cannot stop the others.

/** The overhead of a shipment's objects, in addition to its bytes: many small segments take memory too. */
const SHIPMENT_BYTES = 2_048

export function chargeOf(segmentBytes: number): number {
  return segmentBytes + SHIPMENT_BYTES
}

export class Memory {
  readonly #limitBytes: number
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Negative if more is held than the limit. */
  get freeBytes(): number {
    return this.#limitBytes - this.#heldBytes
  }

  get isHalfFree(): boolean {
    return this.#heldBytes * 2 < this.#limitBytes
  }

  tryReserve(bytes: number): boolean {
    if (bytes > this.freeBytes) return false
    this.#heldBytes += bytes
    return true
  }

  /** Adds shipments that have been claimed already, even beyond the limit. */
  add(bytes: number): void {
    this.#heldBytes += bytes
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes
  }
}
