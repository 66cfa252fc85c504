// Whether ingest slows a lane down: judged by requests that are watched one at a time. A receiver that answers faster than the
// main thread gets to its answer waits for one or two turns of ingest, and these are a third of the request's duration or more. A receiver that
// is slow itself takes many turns, or most of its time passes without ingest. A request during which ingest did nothing says nothing.

import type { IngestPacing } from '../../timing/ingest-pacing.ts'

type Used = IngestPacing['used']

/** Several requests decide. One in three is enough, because on a busy machine even a fast receiver sometimes answers late. */
const SLOWED_SCORE = 2
const MAX_SCORE = 6
const SLOWED_FROM = 3
/** A receiver that has not answered after this many turns is slow itself or hangs. Until it answers, the lane is not slowed down by ingest. */
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

  answered(request: object): void {
    if (request !== this.#watched) return
    this.#watched = null
    const { turns, busyMs, nowMs } = this.#pacing.used
    const usedTurns = turns - this.#before.turns
    if (usedTurns === 0) return
    const isSlowed = usedTurns <= 2 && (busyMs - this.#before.busyMs) * 3 >= nowMs - this.#before.nowMs
    this.#score = Math.min(MAX_SCORE, Math.max(0, this.#score + (isSlowed ? SLOWED_SCORE : -1)))
  }
}
