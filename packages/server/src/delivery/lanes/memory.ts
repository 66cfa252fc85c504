// What all lanes together hold in memory, in bytes. What is new is only taken while there is room; what a lane has to
// claim to go on at all is let in beyond it, so that lanes which fill the memory cannot stop the others.

/** A parsed segment's objects and the work made of it, beside its bytes: few bytes in many segments take memory too. */
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

  /** Less than nothing when more is held than should be. */
  get freeBytes(): number {
    return this.#limitBytes - this.#heldBytes
  }

  tryReserve(bytes: number): boolean {
    if (bytes > this.freeBytes) return false
    this.#heldBytes += bytes
    return true
  }

  /** For what has been claimed already and must be held. */
  add(bytes: number): void {
    this.#heldBytes += bytes
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes
  }
}
