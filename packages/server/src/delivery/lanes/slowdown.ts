// Decides whether ingest slows a lane down, by measuring one of its requests at a time. If the receiver is fast, its answer waits until the
// main thread has finished one or two turns of ingest, or waits for the main thread longer than the sender had the request; and ingest takes
// at least a third of the request's duration. If the receiver is slow, a request lasts many turns, or most of its duration passes without
// ingest. A request during which ingest did nothing is ignored.

import type { IngestPacing } from '../../timing/ingest-pacing.ts'

type Used = IngestPacing['used']

/** One request is not enough to decide. It is enough if one in three is slowed, because on a busy machine even a fast receiver sometimes answers late. */
const SLOWED_SCORE = 2
const MAX_SCORE = 6
const SLOWED_FROM = 3
/** A receiver that has not answered after this many turns is slow or hangs. Until it answers, the lane does not count as slowed down by ingest. */
const MAX_WATCHED_TURNS = 20

export class Slowdown {
  readonly #pacing: Pick<IngestPacing, 'used'>
  #watched: object | null = null
  #before: Used = { turns: 0, busyMs: 0, nowMs: 0 }
  #score = 0

  constructor(pacing: Pick<IngestPacing, 'used'>) {
    this.#pacing = pacing
  }

  get isSlowed(): boolean {
    if (this.#score < SLOWED_FROM) return false
    return this.#watched === null || this.#pacing.used.turns - this.#before.turns <= MAX_WATCHED_TURNS
  }

  started(request: object): void {
    if (this.#watched !== null) return
    this.#watched = request
    this.#before = this.#pacing.used
  }

  /** `senderMs`: how long its sender had the request. */
  answered(request: object, senderMs: number): void {
    if (request !== this.#watched) return
    this.#watched = null
    const { turns, busyMs, nowMs } = this.#pacing.used
    const usedTurns = turns - this.#before.turns
    if (usedTurns === 0) return
    const durationMs = nowMs - this.#before.nowMs
    const isLate = usedTurns <= 2 || durationMs >= 2 * senderMs
    const isSlowed = isLate && (busyMs - this.#before.busyMs) * 3 >= durationMs
    this.#score = Math.min(MAX_SCORE, Math.max(0, this.#score + (isSlowed ? SLOWED_SCORE : -1)))
  }
}
