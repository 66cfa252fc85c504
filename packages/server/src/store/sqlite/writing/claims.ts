// The claims of shipments. Only one process uses the file, so claims are in memory, and a crash releases all of them. The number of a claim is a
// fencing token: after a shipment was released and claimed again, the previous holder cannot settle it.

export class Claims {
  readonly #held = new Map<number, number>()
  #last = 0
  /** The shipments that were claimed since the transaction began. They are released if it fails. */
  readonly #fresh: number[] = []

  /** Returns the number of the new claim. It ends if the current transaction is rolled back. */
  claim(id: number): number {
    this.#held.set(id, ++this.#last)
    this.#fresh.push(id)
    return this.#last
  }

  isClaimed(id: number): boolean {
    return this.#held.has(id)
  }

  isCurrent(id: number, claim: number): boolean {
    return this.#held.get(id) === claim
  }

  /** Ends the claim of the shipment, whatever its number is. */
  end(id: number): void {
    this.#held.delete(id)
  }

  /** Releases the shipment. Does nothing if it was claimed again since. */
  release(id: number, claim: number): void {
    if (this.isCurrent(id, claim)) this.#held.delete(id)
  }

  committed(): void {
    this.#fresh.length = 0
  }

  rolledBack(): void {
    for (const id of this.#fresh) this.#held.delete(id)
    this.#fresh.length = 0
  }
}
