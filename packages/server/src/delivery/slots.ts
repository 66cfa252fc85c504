// How many requests may be in flight in all, shared out fairly: a lane that finds none free waits its turn and gets one
// slot at a time, so that a lane with much to send does not stand in the way of one with little. Invariant: nobody waits
// while a slot is free.

export interface SlotUser {
  /** A slot has become free: take one, if there is something to send. */
  useSlot(): void
}

export class Slots {
  #free: number
  readonly #waiting = new Set<SlotUser>()
  #turn: SlotUser | null = null

  constructor(count: number) {
    this.#free = count
  }

  get free(): number {
    return this.#free
  }

  take(user: SlotUser): boolean {
    if (this.#free > 0 && (this.#waiting.size === 0 || this.#turn === user)) {
      this.#free--
      return true
    }
    this.#waiting.add(user)
    return false
  }

  give(): void {
    this.#free++
    // Whoever wants yet another slot is put at the end, where this comes by again while there are free ones.
    for (const user of this.#waiting) {
      if (this.#free === 0) return
      this.#waiting.delete(user)
      this.#turn = user
      user.useSlot()
      this.#turn = null
    }
  }

  leave(user: SlotUser): void {
    this.#waiting.delete(user)
  }
}
