// The limits of one step of a replay job, and what the step has done so far. A step must be a short transaction, because others wait for it.

import type { ReplaySkipReason, RowId } from '../store.ts'

export const REPLAYED_PER_STEP = 250
/** The maximum number of deliveries and rows that one step examines. */
export const ENTRIES_PER_STEP = 500
/** Small, because after a crash a shipment that was in flight is sent again as a whole. */
export const MESSAGES_PER_SHIPMENT = 100
/** The size of the bodies and attempts that one step reads. Bodies are read if messages may have been purged, attempts for deliveries that were selected by id. */
const BYTES_PER_STEP = 1024 * 1024

/** A delivery of the job that can be replayed. `newest`: the origin of the newest delivery of the same message, which is the one that is repeated. */
export interface Repeatable<Id extends RowId> {
  destination: Id
  segment: Id
  index: number
  newest: Id
}

export class ReplayBudget<Id extends RowId> {
  replayed = 0
  entries = ENTRIES_PER_STEP
  bytes = BYTES_PER_STEP
  /** How many more deliveries the current destination may get. */
  room = 0
  readonly limit: number
  readonly skipped = new Map<ReplaySkipReason, number>()
  /** The deliveries to create, by destination and segment. */
  readonly owed = new Map<string, { destination: Id; segment: Id; entries: { index: number; replayOf: string }[] }>()
  readonly #queued = new Set<string>()

  constructor(limit: number) {
    this.limit = Math.min(limit, REPLAYED_PER_STEP)
  }

  get isSpent(): boolean {
    return this.entries <= 0 || this.bytes <= 0 || this.replayed >= this.limit
  }

  skip(reason: ReplaySkipReason): void {
    this.skipped.set(reason, (this.skipped.get(reason) ?? 0) + 1)
  }

  /** Whether this step already replays the message to the destination. */
  hasQueued({ destination, segment, index }: Omit<Repeatable<Id>, 'newest'>): boolean {
    return this.#queued.has(`${destination} ${segment} ${index}`)
  }

  /** Returns false if there is no room for the delivery now. */
  owe({ destination, segment, index, newest }: Repeatable<Id>): boolean {
    if (this.room <= 0) return false
    this.room--
    this.replayed++
    this.#queued.add(`${destination} ${segment} ${index}`)
    const group = `${destination} ${segment}`
    const owed = this.owed.get(group) ?? { destination, segment, entries: [] }
    owed.entries.push({ index, replayOf: `${newest}-${index}` })
    this.owed.set(group, owed)
    return true
  }
}
