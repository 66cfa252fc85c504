// Finds the deliveries of a replay job, from the position of one of its parts on, a page at a time. Reads only; replay-steps.ts decides the
// size of a page and what to do with the deliveries.

import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import { resolveDeliveryIds } from '../history/delivery-ids.ts'
import { portions } from '../history/paging.ts'
import type { FinalStateName, ReplaySkipReason, RowId } from '../store.ts'
import { finalStatesOf } from './replay-final-states.ts'
import { type ReplayDoc, type ReplayJobRow, replayDoc, rowRange } from './replay-job-row.ts'
import type { ReplayCandidate } from './replay-judge.ts'
import type { Place, ReplayRows } from './replay-rows.ts'

/** One delivery or row that a step examines. */
export interface WalkEntry<Id extends RowId> {
  /** A delivery, the reason to skip it, or undefined for a row that does not match. */
  what: ReplayCandidate<Id> | ReplaySkipReason | undefined
  /** The number of bytes that were read for it. */
  bytes: number
  /** The position of the part after this. */
  after: Place<Id>
}

export interface WalkPage<Id extends RowId> {
  /** At most `limit`. */
  entries: WalkEntry<Id>[]
  /** The position of the part after all of them; null if it is at its end. */
  after: Place<Id> | null
}

/** Reads a page of at most `limit` entries, starting at a position. */
export type Walk<Id extends RowId> = (from: Place<Id>, limit: number) => Promise<WalkPage<Id>>

/** Docs of attempts that are in memory at once, in bytes. */
const BYTES_AT_ONCE = 1024 * 1024

type Matching = Extract<ReplayDoc['selection'], { states: unknown }>

export function walkOf<Id extends RowId>(rows: ReplayRows<Id>, job: ReplayJobRow<Id>, destination: Id | null): Walk<Id> {
  const { selection } = replayDoc(job)
  if ('deliveryIds' in selection) return (from, limit) => pageOfIds(rows, selection, from, limit)
  // See archive-step.ts.
  if ('archive' in selection) throw new Error('messages of an archive are not in the store')
  return matchingWalk(rows, job, selection, destination as Id)
}

/** Returns whether the deliveries of a segment belong to the sources of the selection. */
async function ofSources<Id extends RowId>(
  rows: ReplayRows<Id>,
  { sourceIds }: ReplayDoc['selection'],
  segments: readonly Id[],
): Promise<(segment: Id) => boolean> {
  if (sourceIds === undefined || segments.length === 0) return () => true
  const own = new Set(await rows.ofSources(segments, sourceIds))
  return (segment) => own.has(segment)
}

function matchingWalk<Id extends RowId>(rows: ReplayRows<Id>, job: ReplayJobRow<Id>, selection: Matching, destination: Id): Walk<Id> {
  const { order } = rows
  const { states, reason: wanted } = selection
  const { first, last } = rowRange(order, selection, job.bound)

  const failures = async (from: Place<Id>, state: FinalStateName, limit: number): Promise<{ entries: WalkEntry<Id>[]; isEnd: boolean }> => {
    const found = await rows.failures({ destination, state, first: from.next as Id, last, limit })
    const segments = found.map(({ segment }) => segment)
    const isOwn = await ofSources(rows, selection, segments)
    const entries = found.map(({ id, origin, index, segment, reason }) => ({
      what:
        (wanted === null || reason === wanted) && isOwn(segment) ? { destination, segment, origin, index, state, byId: false } : undefined,
      bytes: 0,
      after: { state: from.state, next: order.after(id), place: 0 },
    }))
    return { entries, isEnd: found.length < limit }
  }

  /** An attempt may have delivered many messages. Each of them is a separate entry. */
  const delivered = async (from: Place<Id>, limit: number): Promise<{ entries: WalkEntry<Id>[]; isEnd: boolean }> => {
    const found = await rows.attempts({ destination, first: from.next as Id, last, limit })
    const segments = found.map(({ segment }) => segment)
    const isOwn = await ofSources(rows, selection, segments)
    const entries: WalkEntry<Id>[] = []
    for (const some of portions(found, ({ bytes }) => bytes, BYTES_AT_ONCE)) {
      if (entries.length === limit) return { entries, isEnd: false }
      const ended = some.filter(({ bytes }) => bytes > 0).map(({ id }) => id)
      const docs = new Map((ended.length === 0 ? [] : await rows.attemptDocs(ended)).map(({ id, doc }) => [id, doc]))
      for (const { id, origin, segment } of some) {
        const after = { state: from.state, next: order.after(id), place: 0 }
        const doc = docs.get(id)
        const f = doc === undefined || !isOwn(segment) ? [] : (JSON.parse(doc) as AttemptDoc).f
        const indexes = f.flatMap(([state, , of]) => (state === 'delivered' ? of : []))
        let place = id === from.next ? from.place : 0
        let bytes = doc?.length ?? 0
        if (entries.length === limit) return { entries, isEnd: false }
        if (place >= indexes.length) entries.push({ what: undefined, bytes, after })
        for (; place < indexes.length; place++, bytes = 0) {
          if (entries.length === limit) return { entries, isEnd: false }
          const index = indexes[place] as number
          entries.push({
            what: { destination, segment, origin, index, state: 'delivered', byId: false },
            bytes,
            after: place + 1 < indexes.length ? { state: from.state, next: id, place: place + 1 } : after,
          })
        }
      }
    }
    return { entries, isEnd: found.length < limit }
  }

  return async (from, limit) => {
    const state = states[from.state]
    const next = from.state + 1 < states.length ? { state: from.state + 1, next: first, place: 0 } : null
    // Delivered deliveries have no reason.
    if (state === undefined || (state === 'delivered' && wanted !== null)) return { entries: [], after: next }
    const { entries, isEnd } = state === 'delivered' ? await delivered(from, limit) : await failures(from, state, limit)
    return { entries, after: isEnd ? next : (entries.at(-1)?.after ?? from) }
  }
}

async function pageOfIds<Id extends RowId>(
  rows: ReplayRows<Id>,
  selection: Extract<ReplayDoc['selection'], { deliveryIds: unknown }>,
  from: Place<Id>,
  limit: number,
): Promise<WalkPage<Id>> {
  const { deliveryIds } = selection
  const start = Number(from.next)
  const resolved = await resolveDeliveryIds(rows, deliveryIds.slice(start, start + limit))
  const segments = resolved.flatMap((delivery) => delivery?.segment ?? [])
  const isOwn = await ofSources(rows, selection, segments)
  const found = resolved.map((delivery) => (delivery !== undefined && isOwn(delivery.segment) ? delivery : undefined))
  const ends = await finalStatesOf(
    rows,
    found.flatMap((delivery) => delivery?.origin ?? []),
  )
  // The page ends before the first delivery that was not read, because of the limit of bytes. The next page begins with it.
  const unread = found.findIndex((delivery) => delivery !== undefined && !ends.has(delivery.origin))
  const read = unread === -1 ? found : found.slice(0, unread)
  const entries = read.map((delivery, at): WalkEntry<Id> => {
    const own = delivery && ends.get(delivery.origin)
    const state = delivery && own?.states.get(delivery.index)
    const bytes = own?.bytes ?? 0
    // Read once for all deliveries with the same origin, so it counts once.
    if (own) own.bytes = 0
    return {
      what: delivery === undefined ? 'not_found' : state === undefined ? 'still_pending' : { ...delivery, state, byId: true },
      bytes,
      after: { state: from.state, next: start + at + 1, place: 0 },
    }
  })
  return { entries, after: start + read.length < deliveryIds.length ? { ...from, next: start + read.length } : null }
}
