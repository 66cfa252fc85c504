// Decides when the outcomes of works that are still in progress are recorded, so that when a process is killed, at most 100 messages, all of
// the last second, have an outcome that is not in the store. A shorter work, which is the usual case, is recorded once, by the lane.
// Invariant: a work has at most one settlement in progress, because each builds on the previous one.

import type { CancelTimer, SetTimer } from '../lanes/timers.ts'
import type { Work } from './work.ts'

/** A work of no more messages than this is not recorded for its number of outcomes while it is the only one. */
const SMALL_WORK = 100
/** Half of what is promised. The other half is for outcomes that arrive while the store commits. */
const RECORD_AT = 50
const RECORD_AFTER_MS = 500

export class Progress {
  readonly #setTimer: SetTimer
  readonly #record: (work: Work) => void
  /** Under way, with the number of outcomes that came here and are not recorded: a work that ends meanwhile has more. */
  readonly #works = new Map<Work, number>()
  readonly #recording = new Set<Work>()
  /** Outcomes of those that are not recorded. */
  #count = 0
  #cancelTimer: CancelTimer | null = null

  /** `record` takes the work's settlement at once; ended() is called when that has ended. */
  constructor(setTimer: SetTimer, record: (work: Work) => void) {
    this.#setTimer = setTimer
    this.#record = record
  }

  isRecording(work: Work): boolean {
    return this.#recording.has(work)
  }

  /** This many more deliveries of the work have an outcome, and the work goes on. */
  came(work: Work, count: number): void {
    this.#works.set(work, (this.#works.get(work) ?? 0) + count)
    this.#count += count
    this.look()
  }

  /** The work is over, or its outcomes are being recorded. */
  forget(work: Work): void {
    this.#count -= this.#works.get(work) ?? 0
    this.#works.delete(work)
  }

  ended(work: Work): void {
    this.#recording.delete(work)
  }

  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = null
  }

  look(): void {
    if (this.#works.size === 0) return
    if (this.#count >= RECORD_AT && !this.#isOneSmall) this.#recordAll()
    this.#cancelTimer ??= this.#setTimer(() => {
      this.#cancelTimer = null
      this.#recordAll()
      this.look()
    }, RECORD_AFTER_MS)
  }

  get #isOneSmall(): boolean {
    if (this.#works.size > 1) return false
    for (const { size } of this.#works.keys()) return size <= SMALL_WORK
    return true
  }

  #recordAll(): void {
    for (const work of this.#works.keys()) {
      if (this.#recording.has(work)) continue
      this.forget(work)
      this.#recording.add(work)
      this.#record(work)
    }
  }
}
