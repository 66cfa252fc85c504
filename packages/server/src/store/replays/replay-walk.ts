// The deliveries of a replay job, from where a part of it stands, a page at a time. A page is small where little may be owed, and grows
// while nothing is found. Reads only; what becomes of what was found is the step's to say.

import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import type { FinalStateName, RowId } from '../port/model.ts'
import type { ReplaySkipReason } from '../port/replays.ts'
import { endsOf } from './replay-ends.ts'
import { type ReplayDoc, type ReplayJobRow, replayDoc, rowRange } from './replay-job-row.ts'
import type { ReplayCandidate } from './replay-judge.ts'
import type { Place, ReplayRows } from './replay-rows.ts'

export interface Look<Id extends RowId> {
  /** Undefined: a row of something else, passed over. */
  what: ReplayCandidate<Id> | ReplaySkipReason | undefined
  /** Bytes that were read for it. */
  bytes: number
  /** Where the part stands when this is done. */
  after: Place<Id>
}

export interface WalkPage<Id extends RowId> {
  /** At most as many as were asked for. */
  looks: Look<Id>[]
  /** Where the part stands when all of them are done; null: at its end. */
  after: Place<Id> | null
}

export interface Walk<Id extends RowId> {
  page(from: Place<Id>, limit: number): Promise<WalkPage<Id>>
}

type Matching = Exclude<ReplayDoc['selection'], { deliveryIds: unknown }>

export function walkOf<Id extends RowId>(rows: ReplayRows<Id>, job: ReplayJobRow<Id>, destination: Id | null): Walk<Id> {
  const { selection } = replayDoc(job)
  return 'deliveryIds' in selection
    ? { page: (from, limit) => namedPage(rows, selection.deliveryIds, from, limit) }
    : new MatchingWalk(rows, job, selection, destination as Id)
}

class MatchingWalk<Id extends RowId> implements Walk<Id> {
  readonly #rows: ReplayRows<Id>
  readonly #selection: Matching
  readonly #destination: Id
  readonly #first: Id
  readonly #last: Id

  constructor(rows: ReplayRows<Id>, job: ReplayJobRow<Id>, selection: Matching, destination: Id) {
    this.#rows = rows
    this.#selection = selection
    this.#destination = destination
    const { first, last } = rowRange(rows.order, selection, job.bound)
    this.#first = first
    this.#last = last
  }

  async page(from: Place<Id>, limit: number): Promise<WalkPage<Id>> {
    const { states, reason } = this.#selection
    const state = states[from.state]
    if (state === undefined) return { looks: [], after: null }
    // What was delivered has no reason.
    if (state === 'delivered' && reason !== null) return { looks: [], after: this.#nextState(from) }
    const { looks, isEnd } = state === 'delivered' ? await this.#delivered(from, limit) : await this.#failures(from, state, limit)
    return { looks, after: isEnd ? this.#nextState(from) : (looks.at(-1)?.after ?? from) }
  }

  #nextState({ state }: Place<Id>): Place<Id> | null {
    return state + 1 < this.#selection.states.length ? { state: state + 1, next: this.#first, place: 0 } : null
  }

  async #failures(from: Place<Id>, state: FinalStateName, limit: number): Promise<{ looks: Look<Id>[]; isEnd: boolean }> {
    const destination = this.#destination
    const { reason: wanted } = this.#selection
    const rows = await this.#rows.failures({ destination, state, first: from.next as Id, last: this.#last, limit })
    const looks = rows.map(({ id, origin, index, segment, reason }) => ({
      what: wanted === null || reason === wanted ? { destination, segment, origin, index, state, named: false } : undefined,
      bytes: 0,
      after: { state: from.state, next: this.#rows.order.after(id), place: 0 },
    }))
    return { looks, isEnd: rows.length < limit }
  }

  /** An attempt may have delivered many: then each of them is a look of its own. */
  async #delivered(from: Place<Id>, limit: number): Promise<{ looks: Look<Id>[]; isEnd: boolean }> {
    const destination = this.#destination
    const rows = await this.#rows.attempts({ destination, first: from.next as Id, last: this.#last, limit })
    const looks: Look<Id>[] = []
    for (const { id, origin, segment, doc } of rows) {
      const after = { state: from.state, next: this.#rows.order.after(id), place: 0 }
      const f = doc === null ? [] : (JSON.parse(doc) as AttemptDoc).f
      const indexes = f.flatMap(([state, , of]) => (state === 'delivered' ? of : []))
      let place = id === from.next ? from.place : 0
      if (place >= indexes.length) looks.push({ what: undefined, bytes: 0, after })
      for (; place < indexes.length; place++) {
        if (looks.length === limit) return { looks, isEnd: false }
        const index = indexes[place] as number
        looks.push({
          what: { destination, segment, origin, index, state: 'delivered', named: false },
          bytes: 0,
          after: place + 1 < indexes.length ? { state: from.state, next: id, place: place + 1 } : after,
        })
      }
    }
    return { looks, isEnd: rows.length < limit }
  }
}

async function namedPage<Id extends RowId>(
  rows: ReplayRows<Id>,
  deliveryIds: readonly string[],
  from: Place<Id>,
  limit: number,
): Promise<WalkPage<Id>> {
  const start = Number(from.next)
  const names = deliveryIds.slice(start, start + limit)
  const found = await rows.named(names)
  const ends = await endsOf(
    rows,
    found.flatMap((delivery) => delivery?.origin ?? []),
  )
  const looks = found.map((delivery, at): Look<Id> => {
    const own = delivery && ends.get(delivery.origin)
    const state = delivery && own?.states.get(delivery.index)
    const bytes = own?.bytes ?? 0
    // Read once for all deliveries of the same origin.
    if (own) own.bytes = 0
    return {
      what: delivery === undefined ? 'not_found' : state === undefined ? 'still_pending' : { ...delivery, state, named: true },
      bytes,
      after: { state: from.state, next: start + at + 1, place: 0 },
    }
  })
  return { looks, after: start + names.length < deliveryIds.length ? { ...from, next: start + names.length } : null }
}
