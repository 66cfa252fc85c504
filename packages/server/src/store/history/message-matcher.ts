// Filters deliveries by source, user or event. The rows of deliveries contain neither, so their segments are looked at, many at a time and each
// once. The keys of a segment show whether it may have messages of the user, so most bodies are not read. A page that has
// read as much as it may ends early and has a cursor to continue from.

import { candidates } from '../encoding/segment-keys.ts'
import type { DeliveryFilter, RowId } from '../store.ts'
import type { DeliveryRows } from './delivery-rows.ts'
import { matches } from './message-content.ts'
import { readSegments, userHashes } from './segment-rows.ts'

/** The maximum size of the keys and bodies that one page reads: about 100 ms of parsing. */
const BYTES_PER_PAGE = 8 * 1024 * 1024
/** Every segment counts as at least this many bytes, so that no more than 8,192 segments are read. */
const MIN_BYTES_PER_SEGMENT = 1024
/** The number of segments whose keys are read at once. The keys of one segment may be 60 KB. */
const SEGMENTS_AT_ONCE = 200
const NONE = { has: (): boolean => false }
const EVERY = { has: (): boolean => true }

export interface MessageMatcher<Id extends RowId> {
  /** Reads the segments of these deliveries, in the order of the list, until the page has read as much as it may. */
  load(places: readonly { segment: Id }[]): Promise<void>
  /** Whether the message matches. Undefined if it was not read, because the page has read as much as it may; then the page ends here. */
  has(message: { segment: Id; index: number }): boolean | undefined
}

/** Returns undefined if every message matches. */
export async function messageMatcher<Id extends RowId>(
  rows: DeliveryRows<Id>,
  { userId, event, sourceIds }: DeliveryFilter,
): Promise<MessageMatcher<Id> | undefined> {
  const hasContentFilter = userId !== undefined || event !== undefined
  if (!hasContentFilter && sourceIds === undefined) return undefined
  const sources = sourceIds && (await numbersOf(rows, sourceIds))
  /** By the row id of the source. */
  const hashes = userId === undefined ? undefined : await userHashes(rows, userId)
  const matching = new Map<Id, Pick<ReadonlySet<number>, 'has'>>()
  let bytesLeft = BYTES_PER_PAGE

  /** Those of the wanted sources. */
  async function ofSources(ids: readonly Id[]): Promise<Id[]> {
    if (sources === undefined) return [...ids]
    bytesLeft -= MIN_BYTES_PER_SEGMENT * ids.length
    const own = new Set((await rows.heads(ids, false)).filter(({ source }) => sources.has(source)).map(({ seq }) => seq))
    return ids.filter((id) => own.has(id))
  }

  async function loadSome(all: readonly Id[]): Promise<void> {
    const ids = await ofSources(all)
    const isOwn = sources && new Set(ids)
    for (const id of all) if (isOwn?.has(id) === false) matching.set(id, NONE)
    if (!hasContentFilter) {
      for (const id of ids) matching.set(id, EVERY)
      return
    }
    const possible = await possibleIn(ids)
    const found = new Map<Id, ReadonlySet<number>>()
    let unread: Id | undefined
    for await (const { seq, content, bytes } of readSegments(rows, [...(possible?.keys() ?? ids)], ({ seq }) => possible?.get(seq))) {
      if (bytesLeft <= 0) {
        unread = seq
        break
      }
      bytesLeft -= MIN_BYTES_PER_SEGMENT + bytes
      const { items } = content
      const indexes = [...(possible?.get(seq) ?? items.keys())]
      found.set(seq, new Set(indexes.filter((index) => items[index] && matches(items[index], { userId, event }))))
    }
    // Segments up to the first unread one are known now, also those whose bodies did not have to be read.
    for (const id of ids) {
      if (id === unread) return
      matching.set(id, found.get(id) ?? NONE)
    }
  }

  /** The segments whose keys show that a message may match, in order, with the indexes of these messages. */
  async function possibleIn(ids: readonly Id[]): Promise<ReadonlyMap<Id, readonly number[]> | undefined> {
    if (hashes === undefined) return undefined
    const bySegment = new Map((await rows.heads(ids, true)).map((row) => [row.seq, row]))
    const possible = new Map<Id, readonly number[]>()
    for (const id of ids) {
      const row = bySegment.get(id)
      bytesLeft -= MIN_BYTES_PER_SEGMENT + (row?.keys?.length ?? 0)
      const indexes = row?.keys === undefined ? [] : candidates(row.keys, new Set([hashes.get(row.source) ?? 0]))
      if (indexes.length > 0) possible.set(id, indexes)
    }
    return possible
  }

  return {
    async load(places) {
      const ids = [...new Set(places.map(({ segment }) => segment))].filter((id) => !matching.has(id))
      for (let at = 0; at < ids.length && bytesLeft > 0; at += SEGMENTS_AT_ONCE) await loadSome(ids.slice(at, at + SEGMENTS_AT_ONCE))
    },
    has: ({ segment, index }) => matching.get(segment)?.has(index),
  }
}

async function numbersOf<Id extends RowId>(
  rows: Pick<DeliveryRows<Id>, 'sources'>,
  sourceIds: readonly string[],
): Promise<ReadonlySet<Id>> {
  const wanted = new Set(sourceIds)
  return new Set((await rows.sources()).filter(({ id }) => wanted.has(id)).map(({ num }) => num))
}
