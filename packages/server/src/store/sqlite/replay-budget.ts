// What one step of a replay job may still do, and what it has done so far. A step is a few milliseconds of a commit that
// others wait for, whatever the job's deliveries are like.

import type { FinalStateName, ReplaySkipReason } from '../store.ts'

export const REPLAYED_PER_STEP = 250
export const LOOKS_PER_STEP = 500
/** Of bodies, read where messages may have been purged, and of attempts, read for deliveries that are named. */
const BYTES_PER_STEP = 1024 * 1024

export class ReplayBudget {
  replayed = 0
  looks = LOOKS_PER_STEP
  bytes = BYTES_PER_STEP
  /** Of the destination whose turn it is. */
  room = 0
  readonly limit: number
  readonly job: number
  /** Of the job: what it made has a higher number. */
  readonly bound: number
  readonly skipped = new Map<ReplaySkipReason, number>()
  /** To be owed, by destination and segment. */
  readonly owed = new Map<string, { destination: number; segment: number; entries: { index: number; replayOf: string }[] }>()
  readonly queued = new Set<string>()
  mayBePurged: boolean | undefined
  readonly bodies = new Map<number, { has(index: number): boolean }>()
  readonly finals = new Map<number, ReadonlyMap<number, FinalStateName>>()

  constructor({ num, bound }: { num: number; bound: number }, limit: number) {
    this.job = num
    this.bound = bound
    this.limit = Math.min(limit, REPLAYED_PER_STEP)
  }

  get isSpent(): boolean {
    return this.looks <= 0 || this.bytes <= 0 || this.replayed >= this.limit
  }

  skip(reason: ReplaySkipReason): void {
    this.skipped.set(reason, (this.skipped.get(reason) ?? 0) + 1)
  }
}
