// The deliveries of a replay job, from where a part of it stands, a page at a time. A page is small where little may be owed,
// and grows while nothing is found. Reads only; what becomes of what was found is the step's to say.

import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import type { ReplayDoc } from '../../replays/replay-job-row.ts'
import type { FinalStateName, ReplaySkipReason } from '../../store.ts'
import { afterRowId } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'
import { writeText } from '../session/texts.ts'
import type { ReplayCandidate } from './replay-judge.ts'
import { finalsOf, resolveNamed } from './replay-origins.ts'
import { type JobRow, rowRange } from './replay-rows.ts'

/** Where a part stands: which of the job's states, from which row (or which of the names), from which place in it. */
export interface Place {
  state: number
  next: string
  place: number
}

export interface Look {
  /** Undefined: a row of something else, passed over. */
  what: ReplayCandidate | ReplaySkipReason | undefined
  /** Bytes that were read for it. */
  bytes: number
  /** Where the part stands when this is done. */
  after: Place
}

export interface WalkPage {
  looks: Look[]
  /** Where the part stands when all of them are done; null: at its end. */
  after: Place | null
}

export interface Walk {
  page(from: Place, limit: number): Promise<WalkPage>
}

type Matching = Exclude<ReplayDoc['selection'], { deliveryIds: unknown }>

/** Destination '0': the deliveries that are named. */
export function walkOf(ask: Ask, job: JobRow, { selection }: ReplayDoc, destination: string): Walk {
  return 'deliveryIds' in selection ? new NamedWalk(ask, selection.deliveryIds) : new MatchingWalk(ask, job, selection, destination)
}

class MatchingWalk implements Walk {
  readonly #ask: Ask
  readonly #selection: Matching
  readonly #destination: string
  readonly #first: string
  readonly #last: string

  constructor(ask: Ask, job: JobRow, selection: Matching, destination: string) {
    this.#ask = ask
    this.#selection = selection
    this.#destination = destination
    const { first, last } = rowRange(selection.fromMs, selection.toMs, job.bound)
    this.#first = first
    this.#last = last
  }

  async page(from: Place, limit: number): Promise<WalkPage> {
    const { states, reason } = this.#selection
    const state = states[from.state]
    if (state === undefined) return { looks: [], after: null }
    // What was delivered has no reason.
    if (state === 'delivered' && reason !== null) return { looks: [], after: this.#nextState(from) }
    const rows = state === 'delivered' ? await this.#delivered(from, limit) : await this.#failures(from, state, limit)
    if (rows.length < limit) return { looks: rows.flat(), after: this.#nextState(from) }
    const looks = rows.flat()
    return { looks, after: looks.at(-1)?.after ?? from }
  }

  #nextState({ state }: Place): Place | null {
    return state + 1 < this.#selection.states.length ? { state: state + 1, next: this.#first, place: 0 } : null
  }

  async #failures(from: Place, state: FinalStateName, limit: number): Promise<Look[][]> {
    const { rows } = await this.#ask<{ id: string; origin: string; idx: number; segment: string; reason: string | null }>(FAILURES, [
      this.#destination,
      state,
      from.next,
      this.#last,
      limit,
    ])
    const wanted = this.#selection.reason === null ? null : writeText(this.#selection.reason)
    return rows.map(({ id, origin, idx: index, segment, reason }) => [
      {
        what:
          wanted === null || reason === wanted
            ? { destination: this.#destination, segment, origin, index, state, named: false }
            : undefined,
        bytes: 0,
        after: { state: from.state, next: afterRowId(id), place: 0 },
      },
    ])
  }

  /** An attempt may have delivered many: then each of them is a look of its own. */
  async #delivered(from: Place, limit: number): Promise<Look[][]> {
    const { rows } = await this.#ask<{ id: string; origin: string; segment: string; doc: string | null }>(DELIVERED, [
      this.#destination,
      from.next,
      this.#last,
      limit,
    ])
    return rows.map(({ id, origin, segment, doc }): Look[] => {
      const after = { state: from.state, next: afterRowId(id), place: 0 }
      const f = doc === null ? [] : (JSON.parse(doc) as AttemptDoc).f
      const indexes = f.flatMap(([state, , of]) => (state === 'delivered' ? of : []))
      const done = id === from.next ? from.place : 0
      if (done >= indexes.length) return [{ what: undefined, bytes: 0, after }]
      return indexes.slice(done).map(
        (index, at): Look => ({
          what: { destination: this.#destination, segment, origin, index, state: 'delivered', named: false },
          bytes: 0,
          after: done + at + 1 < indexes.length ? { state: from.state, next: id, place: done + at + 1 } : after,
        }),
      )
    })
  }
}

class NamedWalk implements Walk {
  readonly #ask: Ask
  readonly #deliveryIds: readonly string[]

  constructor(ask: Ask, deliveryIds: readonly string[]) {
    this.#ask = ask
    this.#deliveryIds = deliveryIds
  }

  async page(from: Place, limit: number): Promise<WalkPage> {
    const start = Number(from.next)
    const names = this.#deliveryIds.slice(start, start + limit)
    const found = await resolveNamed(this.#ask, names)
    const finals = await finalsOf(this.#ask, [...new Set(found.flatMap((delivery) => delivery?.origin ?? []))])
    const looks = found.map((delivery, at): Look => {
      const own = delivery && finals.get(delivery.origin)
      const state = delivery && own?.states.get(delivery.index)
      const bytes = own?.bytes ?? 0
      // Read once for all deliveries of the same origin.
      if (own) own.bytes = 0
      return {
        what: delivery === undefined ? 'not_found' : state === undefined ? 'still_pending' : { ...delivery, state, named: true },
        bytes,
        after: { state: from.state, next: String(start + at + 1), place: 0 },
      }
    })
    return { looks, after: start + names.length < this.#deliveryIds.length ? { ...from, next: String(start + names.length) } : null }
  }
}

const FAILURES = {
  name: 'replay_failures',
  text: `SELECT id, origin, idx, segment, reason FROM failures
         WHERE destination = $1 AND state = $2 AND id >= $3 AND id <= $4 ORDER BY id LIMIT $5`,
}

const DELIVERED = {
  name: 'replay_delivered',
  text: `SELECT id, origin, segment, CASE WHEN delivered > 0 THEN doc END AS doc FROM attempts
         WHERE destination = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4`,
}
