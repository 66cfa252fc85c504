// Filters deliveries by user or event. The rows of deliveries contain neither, so their segments are looked at, many at a time and each
// once. The keys of a segment show whether it may have messages of the user, so most bodies are not read. A page that has
// read as much as it may ends early and has a cursor to continue from.

import { candidates } from '../encoding/segment-keys.ts'
import type { DeliveryFilter, RowId, SegmentContent } from '../store.ts'
import type { DeliveryRows } from './delivery-rows.ts'
import { matches } from './message-content.ts'
import { readSegments, userHashes } from './segment-rows.ts'

/** The maximum size of the keys and bodies that one page reads: about 100 ms of parsing. */
const BYTES_PER_PAGE = 8 * 1024 * 1024
/** Every segment counts as at least this many bytes, so that no more than 8,192 segments are read. */
const MIN_BYTES_PER_SEGMENT = 1024
/** The number of segments whose keys are read at once. The keys of one segment may be 60 KB. */
const SEGMENTS_AT_ONCE = 200
const NONE: ReadonlySet<number> = new Set()

export class MessageMatcher<Id extends RowId> {
  readonly #rows: DeliveryRows<Id>
  readonly #filter: DeliveryFilter
  /** The hashes of the user, by the row id of the source. Undefined if the filter has no user. */
  readonly #hashes: ReadonlyMap<Id, number> | undefined
  readonly #matching = new Map<Id, ReadonlySet<number>>()
  #bytes = BYTES_PER_PAGE

  private constructor(rows: DeliveryRows<Id>, filter: DeliveryFilter, hashes: ReadonlyMap<Id, number> | undefined) {
    this.#rows = rows
    this.#filter = filter
    this.#hashes = hashes
  }

  /** Returns undefined if every message matches. */
  static async of<Id extends RowId>(rows: DeliveryRows<Id>, filter: DeliveryFilter): Promise<MessageMatcher<Id> | undefined> {
    const { userId, event } = filter
    if (userId === undefined && event === undefined) return undefined
    return new MessageMatcher(rows, filter, userId === undefined ? undefined : await userHashes(rows, userId))
  }

  /** Reads the segments of these deliveries, in the order of the list, until the page has read as much as it may. */
  async load(places: readonly { segment: Id }[]): Promise<void> {
    const ids = [...new Set(places.map(({ segment }) => segment))].filter((id) => !this.#matching.has(id))
    for (let at = 0; at < ids.length && this.#bytes > 0; at += SEGMENTS_AT_ONCE) {
      await this.#loadSome(ids.slice(at, at + SEGMENTS_AT_ONCE))
    }
  }

  /** Whether the message matches. Undefined if it was not read, because the page has read as much as it may; then the page ends here. */
  has({ segment, index }: { segment: Id; index: number }): boolean | undefined {
    return this.#matching.get(segment)?.has(index)
  }

  async #loadSome(ids: readonly Id[]): Promise<void> {
    const possible = await this.#possibleIn(ids)
    const found = new Map<Id, ReadonlySet<number>>()
    let unread: Id | undefined
    const read = readSegments(this.#rows, possible === undefined ? ids : [...possible.keys()], ({ seq }) => possible?.get(seq))
    for await (const { seq, content, bytes } of read) {
      if (this.#bytes <= 0) {
        unread = seq
        break
      }
      this.#bytes -= MIN_BYTES_PER_SEGMENT + bytes
      found.set(seq, this.#matchesIn(content, possible?.get(seq)))
    }
    // Segments up to the first unread one are known now, also those whose bodies did not have to be read.
    for (const id of ids) {
      if (id === unread) return
      this.#matching.set(id, found.get(id) ?? NONE)
    }
  }

  /** The segments whose keys show that a message may match, in order, with the indexes of these messages. */
  async #possibleIn(ids: readonly Id[]): Promise<ReadonlyMap<Id, readonly number[]> | undefined> {
    const hashes = this.#hashes
    if (hashes === undefined) return undefined
    const bySegment = new Map((await this.#rows.heads(ids, true)).map((row) => [row.seq, row]))
    const possible = new Map<Id, readonly number[]>()
    for (const id of ids) {
      const row = bySegment.get(id)
      this.#bytes -= MIN_BYTES_PER_SEGMENT + (row?.keys?.length ?? 0)
      const indexes = row?.keys === undefined ? [] : candidates(row.keys, new Set([hashes.get(row.source) ?? 0]))
      if (indexes.length > 0) possible.set(id, indexes)
    }
    return possible
  }

  #matchesIn({ items }: SegmentContent, possible: readonly number[] | undefined): Set<number> {
    const { userId, event } = this.#filter
    const matching = new Set<number>()
    for (const index of possible ?? items.keys()) {
      const item = items[index]
      if (item && matches(item, { userId, event })) matching.add(index)
    }
    return matching
  }
}
