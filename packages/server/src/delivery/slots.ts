// How many requests may be in flight in all, each of which has a socket, shared out fairly: a lane that finds too few free
// waits its turn and gets those of one delivery at a time, so that a lane with much to send does not stand in the way of one
// with little. Invariant: nobody waits while there are as many free as the first in line needs.

export interface SlotUser {
  /** Slots have become free: take them, if there is something to send. */
  useSlot(): void
}

export class Slots {
  readonly #count: number
  #free: number
  #trailing = 0
  /** With how many each needs, in the order in which they came. */
  readonly #waiting = new Map<SlotUser, number>()
  #turn: SlotUser | null = null

  constructor(count: number) {
    this.#count = count
    this.#free = count
  }

  get free(): number {
    return this.#free
  }

  /** One for each URL of a delivery: all of them or none. */
  take(user: SlotUser, needed: number): boolean {
    if (this.#fits(needed) && (this.#waiting.size === 0 || this.#turn === user)) {
      this.#free -= needed
      return true
    }
    this.#waiting.set(user, needed)
    return false
  }

  /**
   * Whether so many that were taken may trail: their delivery is made, and the lane goes on without them. Together they are no
   * more than half of all, so that URLs which hang beside one that answers leave room for other destinations.
   */
  trail(count: number): boolean {
    if (this.#trailing + count > this.#count / 2) return false
    this.#trailing += count
    return true
  }

  /** Those given back that trailed no longer do. */
  give(count: number, trailing: boolean): void {
    if (trailing) this.#trailing -= count
    this.#free += count
    this.#serve()
  }

  leave(user: SlotUser): void {
    this.#waiting.delete(user)
    this.#serve()
  }

  #serve(): void {
    // Whoever wants more is put at the end, where this comes by again while there are enough.
    for (const [user, needed] of this.#waiting) {
      if (!this.#fits(needed)) return
      this.#waiting.delete(user)
      this.#turn = user
      user.useSlot()
      this.#turn = null
    }
  }

  /** One that needs more than there are goes when nothing else does. */
  #fits(needed: number): boolean {
    return needed <= this.#free || this.#free === this.#count
  }
}
