// Divides the limit of a destination's requests in flight among the senders that share it. Each gets an equal share. A sender that was told a lower
// limit may have more in flight for a while, so the units that it had before are counted until they have ended, or a later one shows that it keeps to
// the lower limit; only then another gets what has become free. Invariant: as long as the limit does not change, all senders together never have more
// in flight than it allows. Pure: no clock, no threads.

export interface SharesDeps<S> {
  /** Tells a sender how many units it may have in flight. It takes effect before the units that are given to it later. */
  tell: (sender: S, limit: number) => void
  /** Takes back the units that wait in a sender, which gets no more. Those in flight are finished. */
  recall: (sender: S) => void
}

interface Part {
  /** The number of units that it was given and that have not ended: in flight, or waiting. */
  units: number
  /** How many of them it was given before its last lower limit. Only these can be in flight beyond `told`. */
  earlier: number
  /** What it gets when the others have made room. */
  share: number
  /** The limit that it was told; below 0 before the first time. */
  told: number
  /** The most that it can have in flight now, because of earlier limits: `told`, or up to `earlier` if that is more. */
  most: number
  /** Grows with every lower limit. A unit that was given later and has begun shows that the sender keeps to it. */
  epoch: number
  isLeaving: boolean
}

export class LimitShares<S> {
  readonly #deps: SharesDeps<S>
  #limit: number
  readonly #parts = new Map<S, Part>()
  /** Whether every sender has its share, and none is leaving. */
  #isSettled = true

  constructor(limit: number, deps: SharesDeps<S>) {
    this.#limit = limit
    this.#deps = deps
  }

  /** All senders, including those that are leaving. */
  get senders(): readonly S[] {
    return [...this.#parts.keys()]
  }

  setLimit(limit: number): void {
    if (limit === this.#limit) return
    this.#limit = limit
    this.#divide()
  }

  /** `units`: how many it has already. */
  add(sender: S, units = 0): void {
    const known = this.#parts.get(sender)
    this.#parts.delete(sender)
    const most = Math.min(units, this.#limit)
    const part = known ?? { units, earlier: units, share: 0, told: -1, most, epoch: 0, isLeaving: false }
    part.isLeaving = false
    this.#parts.set(sender, part)
    this.#divide()
  }

  /** The sender gets no more units. Returns whether it has none left, and is gone. */
  leave(sender: S): boolean {
    const part = this.#parts.get(sender)
    if (part === undefined || part.isLeaving) return false
    part.isLeaving = true
    part.share = 0
    if (part.units === 0) this.#parts.delete(sender)
    else {
      this.#deps.recall(sender)
      // Those in flight are finished. The others can have what it does not use.
      this.#tell(sender, part, 0)
    }
    this.#divide()
    return part.units === 0
  }

  /** Whether it may be given units. */
  mayTake(sender: S): boolean {
    return (this.#parts.get(sender)?.share ?? 0) > 0
  }

  /** The one with the fewest units. If there are several, the first, whose connections are then reused. */
  get next(): S | undefined {
    let best: S | undefined
    let fewest = Number.POSITIVE_INFINITY
    for (const [sender, { share, units }] of this.#parts) {
      if (share === 0 || units >= fewest) continue
      best = sender
      fewest = units
    }
    return best
  }

  /** Counts a unit. Returns what ended() has to be told. */
  started(sender: S): number {
    const part = this.#parts.get(sender) as Part
    part.units++
    return part.epoch
  }

  /** A unit has ended. `hasBegun`: whether its request was started. Returns whether the sender was leaving, and is gone. */
  ended(sender: S, epoch: number, hasBegun: boolean): boolean {
    const part = this.#parts.get(sender)
    if (part === undefined) return false
    part.units--
    if (epoch !== part.epoch) part.earlier--
    // The sender starts a unit only if fewer are in flight than it was told.
    const most = hasBegun && epoch === part.epoch ? part.told : part.most
    part.most = Math.max(part.told, Math.min(most, part.earlier))
    const isGone = part.isLeaving && part.units === 0
    if (isGone) this.#parts.delete(sender)
    if (!this.#isSettled) this.#divide()
    return isGone
  }

  #divide(): void {
    const active = [...this.#parts].filter(([, { isLeaving }]) => !isLeaving)
    for (const [at, [sender, part]] of active.entries()) {
      const had = part.share
      part.share = Math.floor((this.#limit + active.length - 1 - at) / active.length)
      if (part.share < part.told) this.#tell(sender, part, part.share)
      // With a limit below the number of senders, the last ones get no share. Units must not wait in them.
      if (part.share === 0 && had > 0 && part.units > 0) this.#deps.recall(sender)
    }
    for (const [sender, part] of active) {
      const room = this.#limit - this.#reserved + part.most
      const told = Math.max(part.told, 0, Math.min(part.share, room))
      if (told > part.told) this.#tell(sender, part, told)
    }
    this.#isSettled = active.length === this.#parts.size && active.every(([, { told, share }]) => told === share)
  }

  #tell(sender: S, part: Part, limit: number): void {
    if (limit < part.told) {
      part.epoch++
      part.earlier = part.units
    }
    part.told = limit
    part.most = Math.max(limit, Math.min(part.most, part.earlier))
    this.#deps.tell(sender, limit)
  }

  /** How many units may be in flight, with the limits that were told. */
  get #reserved(): number {
    let sum = 0
    for (const { most } of this.#parts.values()) sum += most
    return sum
  }
}
