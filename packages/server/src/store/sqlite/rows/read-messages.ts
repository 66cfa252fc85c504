// Messages as they are asked for: lists newest first, one by its place or its messageId, each with where it was owed and
// where not and why.

import { type Seed, sourceSeed, userHash } from '../../encoding/fingerprint.ts'
import { candidates, fingerprintAt, indexOfKey } from '../../encoding/segment-keys.ts'
import { matches, only } from '../../history/content.ts'
import { cursorOf, NEWEST, ROWS_PER_PAGE } from '../../history/paging.ts'
import type { FilterRule, MessageFilter, MessageTrail, Page, PageRequest, SegmentContent, SkipReason, StoredMessage } from '../../store.ts'
import type { FoundKey } from '../keys/duplicates.ts'
import { absentIndexes } from '../messages/read-claims.ts'
import { repeatsOf } from '../messages/repeats.ts'
import type { Routes } from '../messages/write-accept.ts'
import { msOfRowId, rowAndIndex, rowIdAt } from '../schema/ids.ts'
import type { Rows, SegmentRow } from './rows.ts'

/** Bodies that one page may read, some 200 ms of parsing. */
const BYTES_PER_PAGE = 32 * 1024 * 1024
/** Messages of one messageId: of several sources, or some days apart. */
const MAX_TRAILS = 20

export class MessageReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  list(filter: MessageFilter, page: PageRequest): Page<StoredMessage> {
    const [start, startIndex] = cursorOf('m', page.cursor, [filter.toMs === undefined ? NEWEST : rowIdAt(filter.toMs + 1) - 1, NEWEST])
    const end = filter.fromMs === undefined ? 0 : rowIdAt(filter.fromMs)
    const source = filter.sourceId === undefined ? undefined : this.#rows.sources.num(filter.sourceId)
    if (filter.sourceId !== undefined && source === undefined) return { data: [], next: null }
    const { userId } = filter
    const rows = this.#rows.database
      .prepare('SELECT seq, source, keys FROM segments WHERE seq <= ? AND seq >= ? ORDER BY seq DESC')
      .iterate(start, end) as unknown as Iterable<Pick<SegmentRow, 'seq' | 'source' | 'keys'>>
    const data: StoredMessage[] = []
    let seen = 0
    let bytes = 0
    for (const { seq, source: from, keys } of rows) {
      if (++seen > ROWS_PER_PAGE || bytes > BYTES_PER_PAGE) return { data, next: JSON.stringify(['m', seq, NEWEST]) }
      if (source !== undefined && from !== source) continue
      const possible = userId === undefined ? undefined : new Set(candidates(keys, new Set([this.#userHash(from, userId)])))
      if (possible?.size === 0) continue
      const row = this.#rows.segment(seq) as SegmentRow
      bytes += row.body.length
      const content = this.#rows.contentOf(row)
      const last = content.items.length - 1
      for (let index = seq === start ? Math.min(startIndex, last) : last; index >= 0; index--) {
        const item = content.items[index]
        if (!item || possible?.has(index) === false || !matches(item, filter)) continue
        if (data.length === page.limit) return { data, next: JSON.stringify(['m', seq, index]) }
        data.push(this.#message(row, content, index))
      }
    }
    return { data, next: null }
  }

  /** The same where a messageId is asked for: its places are known from the keys. */
  listFound(found: readonly FoundKey[], filter: MessageFilter, page: PageRequest): Page<StoredMessage> {
    const [start] = cursorOf('m', page.cursor, [NEWEST, NEWEST])
    const data: StoredMessage[] = []
    for (const { row, content, index } of this.#places(found, filter.messageId)) {
      const { fromMs = 0, toMs = NEWEST, sourceId = content.sourceId } = filter
      const atMs = msOfRowId(row.seq)
      const item = content.items[index]
      if (row.seq > start || atMs < fromMs || atMs > toMs || content.sourceId !== sourceId || !item || !matches(item, filter)) continue
      if (data.length === page.limit) return { data, next: JSON.stringify(['m', row.seq, index]) }
      data.push(this.#message(row, content, index))
    }
    return { data, next: null }
  }

  /** `found`: where the store's keys say that the messageId may be. */
  one(id: string, found: readonly FoundKey[]): StoredMessage | undefined {
    const named = rowAndIndex(id)
    const row = named && this.#rows.segment(named.row)
    const content = row && this.#rows.contentOf(row)
    if (row && content?.items[named.index]) return this.#message(row, content, named.index)
    const [newest] = this.#places(found, id)
    return newest && this.#message(newest.row, newest.content, newest.index)
  }

  trails(id: string, found: readonly FoundKey[]): MessageTrail[] {
    const named = rowAndIndex(id)
    const row = named && this.#rows.segment(named.row)
    const places = row && named.index < row.count ? [{ row, content: this.#rows.contentOf(row), index: named.index }] : []
    // Of a purged message only the key is left, and it is all but certain that no other id has the same.
    for (const { segment, fingerprint } of [...found].sort((a, b) => b.segment - a.segment).slice(0, MAX_TRAILS)) {
      const row = this.#rows.segment(segment)
      const index = row === undefined ? -1 : indexOfKey(row.keys, fingerprint)
      if (row !== undefined && index !== -1) places.push({ row, content: this.#rows.contentOf(row), index })
    }
    const seen = new Set<string>()
    return places
      .filter(({ row, index }) => !seen.has(`${row.seq}-${index}`) && seen.add(`${row.seq}-${index}`))
      .filter(({ row, content, index }) => content.items[index] !== null || !absentIndexes(row.absent).includes(index))
      .map(({ row, content, index }) => {
        const repeats = repeatsOf(this.#rows.database, row.seq, fingerprintAt(row.keys, index))
        return Object.assign(this.#message(row, content, index), { repeats })
      })
  }

  /** Newest first. A fingerprint is all but certain, and the message itself is. */
  #places(found: readonly FoundKey[], messageId: string | undefined): { row: SegmentRow; content: SegmentContent; index: number }[] {
    return [...found]
      .sort((a, b) => b.segment - a.segment)
      .flatMap(({ segment, fingerprint }) => {
        const row = this.#rows.segment(segment)
        if (row === undefined) return []
        const index = indexOfKey(row.keys, fingerprint)
        const content = this.#rows.contentOf(row)
        return content.items[index]?.['messageId'] === messageId ? [{ row, content, index }] : []
      })
  }

  /** What a user's messages from a source carry in their keys. */
  #userHash(source: number, userId: string): number {
    this.#seed ??= JSON.parse(this.#rows.setting('dedup_seed') as string) as Seed
    return userHash(userId, sourceSeed(this.#rows.sources.id(source), this.#seed))
  }
  #seed: Seed | undefined

  #message(row: SegmentRow, content: SegmentContent, index: number): StoredMessage {
    const routes = JSON.parse(row.routes) as Routes
    const has = (indexes: readonly number[] | 0): boolean => indexes === 0 || indexes.includes(index)
    const deliveries = routes.s
      .filter(([, , indexes]) => has(indexes))
      .map(([destination, origin]) => ({ id: `${origin}-${index}`, destinationId: this.#rows.destinations.id(destination) }))
    const again = this.#rows.all('SELECT origin, destination FROM replays WHERE segment = ? AND idx = ? ORDER BY origin', row.seq, index)
    for (const { origin, destination } of again as { origin: number; destination: number }[]) {
      deliveries.push({ id: `${origin}-${index}`, destinationId: this.#rows.destinations.id(destination) })
    }
    const skips = (routes.k ?? [])
      .filter(([, , indexes]) => has(indexes))
      .map(([destination, stored]) => {
        const [reason, rule] = stored.split(' ') as [SkipReason, FilterRule?]
        const destinationId = destination === 0 ? null : this.#rows.destinations.id(destination)
        return rule === undefined ? { destinationId, reason } : { destinationId, reason, rule }
      })
    return { id: `${row.seq}-${index}`, segment: row.seq, index, content: only(content, [index]), deliveries, skips }
  }
}
