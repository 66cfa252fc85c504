// Limits how many requests, each with its own socket, may be in flight in all, and shares them fairly: a lane that finds too few free
// slots waits in line and gets the slots of one delivery at a time, so that a lane with much to send does not block one
// with little. Invariant: nobody waits while as many slots are free as the first in line needs.

export interface SlotUser {
  /** Slots have become free: takes them, if there is something to send. */
  pump(): void
}

export class Slots {
  readonly #count: number
  #free: number
  #trailing = 0
  /** The lanes in line, first come first, with the number of slots that each needs. */
  readonly #waiting = new Map<SlotUser, number>()
  #turn: SlotUser | null = null

  constructor(count: number) {
    this.#count = count
    this.#free = count
  }

  get free(): number {
    return this.#free
  }

  get isHalfFree(): boolean {
    return this.#free * 2 >= this.#count
  }

  /** Takes one slot for each URL of a delivery: all of them or none. */
  take(user: SlotUser, needed: number): boolean {
    if (this.#fits(needed) && (this.#waiting.size === 0 || this.#turn === user)) {
      this.#free -= needed
      return true
    }
    this.#waiting.set(user, needed)
    return false
  }

  /**
   * Whether this many slots may trail: their message is delivered already, and the lane goes on without waiting for them. At most
   * half of all slots may trail, so that hanging URLs of destinations that answer at another URL leave room for other destinations.
   */
  trail(count: number): boolean {
    if (this.#trailing + count > this.#count / 2) return false
    this.#trailing += count
    return true
  }

  /** `trailing`: whether the released slots were trailing. */
  release(count: number, trailing: boolean): void {
    if (trailing) this.#trailing -= count
    this.#free += count
    this.#serve()
  }

  cancelWait(user: SlotUser): void {
    this.#waiting.delete(user)
    this.#serve()
  }

  #serve(): void {
    // A lane that wants more goes to the end of the line, which this loop reaches again if slots are left.
    for (const [user, needed] of this.#waiting) {
      if (!this.#fits(needed)) return
      this.#waiting.delete(user)
      this.#turn = user
      user.pump()
      this.#turn = null
    }
  }

  /** A delivery that needs more slots than exist is sent when all slots are free. */
  #fits(needed: number): boolean {
    return needed <= this.#free || this.#free === this.#count
  }
}
