// Who holds a shipment. One process serves the file, so a claim lives in memory and a crash gives everything back by
// itself; the number still fences: what was released and taken again cannot be settled by the one before.

export class Claims {
  readonly #held = new Map<number, number>()
  #last = 0
  /** Taken since the transaction began, to be given back if it fails. */
  readonly #fresh: number[] = []

  /** Within a transaction that creates the shipment. */
  take(id: number): number {
    this.#held.set(id, ++this.#last)
    this.#fresh.push(id)
    return this.#last
  }

  holds(id: number): boolean {
    return this.#held.has(id)
  }

  isCurrent(id: number, claim: number): boolean {
    return this.#held.get(id) === claim
  }

  /** Whoever holds it. */
  end(id: number): void {
    this.#held.delete(id)
  }

  /** Given back by its holder; nothing when another holds it by now. */
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
