// Filters deliveries by user or event. The rows of deliveries contain neither, so their segments are looked at, many at a time and each
// once. The keys of a segment show whether it may have messages of the user, so most bodies are not read. A page that has
// read as much as it may ends early and has a cursor to go on from.

import { candidates } from '../encoding/segment-keys.ts'
import type { DeliveryFilter } from '../port/history.ts'
import type { RowId, SegmentContent } from '../port/model.ts'
import type { DeliveryRows } from './delivery-rows.ts'
import { matches } from './message-content.ts'
import { readSegments, userHashes } from './segment-rows.ts'

/** Of keys and bodies, some 200 ms of parsing. */
const BYTES_PER_PAGE = 32 * 1024 * 1024
/** What a look at one more segment costs at least: so no more than 32,768 are looked at. */
const BYTES_PER_LOOK = 1024
/** Keys asked for at once, which may be 60 KB of each. */
const SEGMENTS_PER_LOOK = 200
const NONE: ReadonlySet<number> = new Set()

export class MessageMatcher<Id extends RowId> {
  readonly #rows: DeliveryRows<Id>
  readonly #filter: DeliveryFilter
  /** Of the user, by the source's row; undefined when any user is meant. */
  readonly #hashes: ReadonlyMap<Id, number> | undefined
  readonly #chosen = new Map<Id, ReadonlySet<number>>()
  #bytes = BYTES_PER_PAGE

  private constructor(rows: DeliveryRows<Id>, filter: DeliveryFilter, hashes: ReadonlyMap<Id, number> | undefined) {
    this.#rows = rows
    this.#filter = filter
    this.#hashes = hashes
  }

  /** Undefined when every message is meant. */
  static async of<Id extends RowId>(rows: DeliveryRows<Id>, filter: DeliveryFilter): Promise<MessageMatcher<Id> | undefined> {
    const { userId, event } = filter
    if (userId === undefined && event === undefined) return undefined
    return new MessageMatcher(rows, filter, userId === undefined ? undefined : await userHashes(rows, userId))
  }

  /** In the order of the walk, as far as a page may read. */
  async look(places: readonly { segment: Id }[]): Promise<void> {
    const names = [...new Set(places.map(({ segment }) => segment))].filter((name) => !this.#chosen.has(name))
    for (let at = 0; at < names.length && this.#bytes > 0; at += SEGMENTS_PER_LOOK) {
      await this.#lookAt(names.slice(at, at + SEGMENTS_PER_LOOK))
    }
  }

  /** Undefined when it was not looked at, as enough has been read: then the page is over, with what it has. */
  has({ segment, index }: { segment: Id; index: number }): boolean | undefined {
    return this.#chosen.get(segment)?.has(index)
  }

  async #lookAt(names: readonly Id[]): Promise<void> {
    const possible = await this.#possibleIn(names)
    const found = new Map<Id, ReadonlySet<number>>()
    let unread: Id | undefined
    for await (const { seq, content, bytes } of readSegments(this.#rows, possible === undefined ? names : [...possible.keys()])) {
      if (this.#bytes <= 0) {
        unread = seq
        break
      }
      this.#bytes -= BYTES_PER_LOOK + bytes
      found.set(seq, this.#chosenIn(content, possible?.get(seq)))
    }
    // Known before the walk comes to them: those that need no reading, up to the first that would.
    for (const name of names) {
      if (name === unread) return
      this.#chosen.set(name, found.get(name) ?? NONE)
    }
  }

  /** The segments whose keys show that a message may match, in order, with the indexes of these messages. */
  async #possibleIn(names: readonly Id[]): Promise<ReadonlyMap<Id, readonly number[]> | undefined> {
    const hashes = this.#hashes
    if (hashes === undefined) return undefined
    const bySegment = new Map((await this.#rows.heads(names, true)).map((row) => [row.seq, row]))
    const possible = new Map<Id, readonly number[]>()
    for (const name of names) {
      const row = bySegment.get(name)
      this.#bytes -= BYTES_PER_LOOK + (row?.keys?.length ?? 0)
      const indexes = row?.keys === undefined ? [] : candidates(row.keys, new Set([hashes.get(row.source) ?? 0]))
      if (indexes.length > 0) possible.set(name, indexes)
    }
    return possible
  }

  #chosenIn({ items }: SegmentContent, possible: readonly number[] | undefined): Set<number> {
    const { userId, event } = this.#filter
    const chosen = new Set<number>()
    for (const index of possible ?? items.keys()) {
      const item = items[index]
      if (item && matches(item, { userId, event })) chosen.add(index)
    }
    return chosen
  }
}
