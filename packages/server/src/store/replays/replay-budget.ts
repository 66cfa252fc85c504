// What one step of a replay job may still do, and what it has done so far. A step is a short transaction that others wait
// for, whatever the job's deliveries are like.

import type { ReplaySkipReason, RowId } from '../store.ts'

export const REPLAYED_PER_STEP = 250
export const LOOKS_PER_STEP = 500
/** After a crash, a shipment that was under way is sent again as a whole. */
export const MESSAGES_PER_SHIPMENT = 100
/** Of bodies, read where messages may have been purged, and of attempts, read for deliveries that are named. */
const BYTES_PER_STEP = 1024 * 1024

/** A delivery of the job that can be owed again, and the newest of its message's deliveries, which is the one that is repeated. */
export interface Repeatable<Id extends RowId> {
  destination: Id
  segment: Id
  index: number
  newest: Id
}

export class ReplayBudget<Id extends RowId> {
  replayed = 0
  looks = LOOKS_PER_STEP
  bytes = BYTES_PER_STEP
  /** Of the destination whose turn it is. */
  room = 0
  readonly limit: number
  readonly skipped = new Map<ReplaySkipReason, number>()
  /** To be owed, by destination and segment. */
  readonly owed = new Map<string, { destination: Id; segment: Id; entries: { index: number; replayOf: string }[] }>()
  readonly #queued = new Set<string>()

  constructor(limit: number) {
    this.limit = Math.min(limit, REPLAYED_PER_STEP)
  }

  get isSpent(): boolean {
    return this.looks <= 0 || this.bytes <= 0 || this.replayed >= this.limit
  }

  skip(reason: ReplaySkipReason): void {
    this.skipped.set(reason, (this.skipped.get(reason) ?? 0) + 1)
  }

  /** Whether this step owes the message to the destination already. */
  hasQueued({ destination, segment, index }: Omit<Repeatable<Id>, 'newest'>): boolean {
    return this.#queued.has(`${destination} ${segment} ${index}`)
  }

  /** False: there is no room for it now. */
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
