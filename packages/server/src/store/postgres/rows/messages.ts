// Messages as they are asked for: lists newest first, one by its place or its messageId, each with where it was owed and
// where not and why.

import { FINGERPRINT_WORDS, fingerprint, type Seed, sourceSeed, userHash } from '../../encoding/fingerprint.ts'
import { candidates, fingerprintAt, indexOfKey } from '../../encoding/segment-keys.ts'
import { matches, only } from '../../history/content.ts'
import { NEWEST as LAST_INDEX, ROWS_PER_PAGE } from '../../history/paging.ts'
import { type RepeatRow, repeatsIn } from '../../history/repeat-counts.ts'
import type { FilterRule, MessageFilter, MessageTrail, Page, PageRequest, SegmentContent, SkipReason, StoredMessage } from '../../store.ts'
import { keyText, openSeed } from '../messages/message-keys.ts'
import { NEWEST, rowAndIndex, SKEW } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { beforeRow, byIndexes, firstRow, isWithin, lastRow, rowCursorOf, steps } from './paging.ts'
import { contentOf, type Routes } from './rows.ts'
import { type FullSegment, readSegment, readSegments } from './segments.ts'

/** Bodies that one page may read, some 200 ms of parsing. */
const BYTES_PER_PAGE = 32 * 1024 * 1024
/** Messages of one messageId: of several sources, or some days apart. */
const MAX_TRAILS = 20
/** Rows asked for at once where their keys are, which may be 60 KB of each. */
const STEP_WITH_KEYS = 200

interface WalkedRow {
  seq: string
  source: string
  received_at: number
  keys?: Buffer
}

/** A segment that has a key, and its fingerprint. */
interface FoundKey {
  segment: string
  words: Uint32Array
}

/** A message and the segment it is in. */
interface Found {
  row: FullSegment
  content: SegmentContent
  index: number
}

export class Messages {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async list(filter: MessageFilter, page: PageRequest): Promise<Page<StoredMessage>> {
    const [start, startIndex] = rowCursorOf('m', page.cursor, [lastRow(filter), LAST_INDEX])
    const { database, names } = this.#parts
    const source = filter.sourceId === undefined ? undefined : await names.find(database, 'sources', filter.sourceId)
    if (filter.sourceId !== undefined && source === undefined) return { data: [], next: null }
    const seed = await this.#seed()
    return byIndexes(database, async (ask) => {
      const { found, next } =
        filter.messageId === undefined
          ? await this.#walk(ask, filter, page.limit, source, start, startIndex, seed)
          : await this.#listFound(ask, filter, page.limit, start, seed)
      return { data: await this.#messages(ask, found), next }
    })
  }

  async one(id: string): Promise<StoredMessage | undefined> {
    const seed = await this.#seed()
    return byIndexes(this.#parts.database, async (ask) => {
      const named = rowAndIndex(id)
      const row = named && (await readSegment(ask, named.row))
      const content = row && contentOf(row)
      if (row && content?.items[named.index]) return (await this.#messages(ask, [{ row, content, index: named.index }]))[0]
      for await (const found of places(ask, await findKeys(ask, id, seed), id)) return (await this.#messages(ask, [found]))[0]
      return undefined
    })
  }

  async trails(id: string): Promise<MessageTrail[]> {
    const seed = await this.#seed()
    return byIndexes(this.#parts.database, async (ask) => {
      const named = rowAndIndex(id)
      const row = named && (await readSegment(ask, named.row))
      const found: Found[] = row && named.index < row.count ? [{ row, content: contentOf(row), index: named.index }] : []
      // Of a purged message only the key is left, and it is all but certain that no other id has the same.
      const keys = (await findKeys(ask, id, seed)).slice(0, MAX_TRAILS)
      const wordsOf = new Map(keys.map(({ segment, words }) => [segment, words]))
      for await (const other of readSegments(ask, [...wordsOf.keys()])) {
        const index = indexOfKey(other.keys, wordsOf.get(other.seq) as Uint32Array)
        if (index !== -1) found.push({ row: other, content: contentOf(other), index })
      }
      const seen = new Set<string>()
      const told = found
        .filter(({ row: { seq }, index }) => !seen.has(`${seq}-${index}`) && seen.add(`${seq}-${index}`))
        .filter(({ row: { absent }, content, index }) => content.items[index] !== null || !(absent ?? []).includes(index))
      const messages = await this.#messages(ask, told)
      const { rows } = await ask<RepeatRow & { segment: string }>(
        'SELECT segment, count, last_at, fingerprints FROM repeats WHERE segment = ANY($1::bigint[])',
        [told.map(({ row: { seq } }) => seq)],
      )
      return messages.map((message, at) => {
        const { row: of, index } = told[at] as Found
        const own = rows.filter(({ segment }) => segment === of.seq)
        return Object.assign(message, { repeats: repeatsIn(own, fingerprintAt(of.keys, index)) })
      })
    })
  }

  async #walk(
    ask: Ask,
    filter: MessageFilter,
    limit: number,
    source: string | undefined,
    start: string,
    startIndex: number,
    seed: Seed,
  ): Promise<{ found: Found[]; next: string | null }> {
    const { userId } = filter
    const hashOf = userId === undefined ? undefined : await this.#userHashes(ask, userId, seed)
    const walked = steps<WalkedRow>(
      start,
      ({ seq }) => beforeRow(seq),
      (from, count) =>
        ask(
          `SELECT seq, source, received_at ${userId === undefined ? '' : ', keys'} FROM segments WHERE seq <= $1 AND seq >= $2 ORDER BY seq DESC LIMIT $3`,
          [from, firstRow(filter), count],
        ),
      userId === undefined ? undefined : STEP_WITH_KEYS,
    )
    const found: Found[] = []
    let seen = 0
    let bytes = 0
    for await (const rows of walked) {
      if (seen >= ROWS_PER_PAGE) return { found, next: JSON.stringify(['m', (rows[0] as WalkedRow).seq, LAST_INDEX]) }
      seen += rows.length
      const possible = new Map<string, Set<number> | undefined>()
      for (const row of rows) {
        if ((source !== undefined && row.source !== source) || !isWithin(row.received_at, filter)) continue
        const indexes = hashOf && row.keys && candidates(row.keys, new Set([hashOf(row.source)]))
        if (indexes?.length !== 0) possible.set(row.seq, indexes && new Set(indexes))
      }
      for await (const row of readSegments(ask, [...possible.keys()])) {
        if (bytes > BYTES_PER_PAGE) return { found, next: JSON.stringify(['m', row.seq, LAST_INDEX]) }
        bytes += row.body.length
        const content = contentOf(row)
        const last = content.items.length - 1
        for (let index = row.seq === start ? Math.min(startIndex, last) : last; index >= 0; index--) {
          const item = content.items[index]
          if (!item || possible.get(row.seq)?.has(index) === false || !matches(item, filter)) continue
          if (found.length === limit) return { found, next: JSON.stringify(['m', row.seq, index]) }
          found.push({ row, content: only(content, [index]), index })
        }
      }
    }
    return { found, next: null }
  }

  /** The same where a messageId is asked for: its places are known from the keys. */
  async #listFound(
    ask: Ask,
    filter: MessageFilter,
    limit: number,
    start: string,
    seed: Seed,
  ): Promise<{ found: Found[]; next: string | null }> {
    const { messageId = '' } = filter
    const end = firstRow(filter)
    const keys = (await findKeys(ask, messageId, seed, filter.sourceId)).filter(({ segment }) => segment <= start && segment >= end)
    const found: Found[] = []
    for await (const place of places(ask, keys, messageId)) {
      const { row, content, index } = place
      if (!isWithin(row.received_at, filter) || !matches(content.items[index] ?? {}, filter)) continue
      if (found.length === limit) return { found, next: JSON.stringify(['m', row.seq, index]) }
      found.push({ ...place, content: only(content, [index]) })
    }
    return { found, next: null }
  }

  async #messages(ask: Ask, found: readonly Found[]): Promise<StoredMessage[]> {
    if (found.length === 0) return []
    const segments = found.map(({ row: { seq } }) => seq)
    const oldest = segments.reduce((least, seq) => (seq < least ? seq : least), NEWEST)
    const { rows: again } = await ask<{ place: number; origin: string; destination: string }>(
      `SELECT m.place::integer AS place, r.origin, r.destination
       FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS m(segment, idx, place)
       JOIN replays r ON r.segment = m.segment AND r.idx = m.idx AND r.origin > $3::bigint - ${SKEW} ORDER BY r.origin`,
      [segments, found.map(({ index }) => index), oldest],
    )
    const replays = new Map<number, typeof again>()
    for (const row of again) {
      const known = replays.get(row.place - 1)
      if (known === undefined) replays.set(row.place - 1, [row])
      else known.push(row)
    }
    const routes = found.map(({ row }) => JSON.parse(row.routes) as Routes)
    const nums = routes.flatMap(({ s, k = [] }) => [...s.map(([num]) => num), ...k.map(([num]) => num)]).filter((num) => num !== '0')
    const { names } = this.#parts
    const idOf = await names.idsOf({ query: ask }, 'destinations', [...nums, ...again.map(({ destination }) => destination)])
    return found.map(({ row, content, index }, at) => {
      const { s, k = [] } = routes[at] as Routes
      const has = (indexes: readonly number[] | 0): boolean => indexes === 0 || indexes.includes(index)
      const owed = [...s.filter(([, , indexes]) => has(indexes)), ...(replays.get(at) ?? []).map((r) => [r.destination, r.origin] as const)]
      return {
        id: `${row.seq}-${index}`,
        segment: row.seq,
        index,
        content: only(content, [index]),
        deliveries: owed.map(([destination, origin]) => ({ id: `${origin}-${index}`, destinationId: idOf(destination) })),
        skips: k
          .filter(([, , indexes]) => has(indexes))
          .map(([destination, stored]) => {
            const [reason, rule] = stored.split(' ') as [SkipReason, FilterRule?]
            const destinationId = destination === '0' ? null : idOf(destination)
            return rule === undefined ? { destinationId, reason } : { destinationId, reason, rule }
          }),
      }
    })
  }

  /** What a user's messages carry in their keys, by the source's row. */
  async #userHashes(ask: Ask, userId: string, seed: Seed): Promise<(source: string) => number> {
    const { rows } = await ask<{ num: string; id: string }>('SELECT num, id FROM sources')
    const hashes = new Map(rows.map(({ num, id }) => [num, userHash(userId, sourceSeed(id, seed))]))
    return (source) => hashes.get(source) ?? 0
  }

  #seed(): Promise<Seed> {
    this.#opened ??= openSeed(this.#parts.database).catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }
  #opened: Promise<Seed> | undefined
}

/** Where a messageId may be, newest first: asked for every source there ever was, as keys do not say whose they are. */
async function findKeys(ask: Ask, messageId: string, seed: Seed, sourceId?: string): Promise<FoundKey[]> {
  const sources = sourceId === undefined ? (await ask<{ id: string }>('SELECT id FROM sources')).rows.map(({ id }) => id) : [sourceId]
  const words = new Map<string, Uint32Array>()
  for (const id of sources) {
    const into = new Uint32Array(FINGERPRINT_WORDS)
    fingerprint(messageId, sourceSeed(id, seed), into, 0)
    words.set(keyText(into), into)
  }
  const { rows } = await ask<{ key: string; segment: string }>('SELECT key, segment FROM message_keys WHERE key = ANY($1::uuid[])', [
    [...words.keys()],
  ])
  return rows
    .map(({ key, segment }) => ({ segment, words: words.get(key) as Uint32Array }))
    .sort((a, b) => (a.segment < b.segment ? 1 : -1))
}

/** In the order of the keys. A fingerprint is all but certain, and the message itself is. */
async function* places(ask: Ask, keys: readonly FoundKey[], messageId: string): AsyncGenerator<Found> {
  const wordsOf = new Map(keys.map(({ segment, words }) => [segment, words]))
  for await (const row of readSegments(ask, [...wordsOf.keys()])) {
    const index = indexOfKey(row.keys, wordsOf.get(row.seq) as Uint32Array)
    const content = contentOf(row)
    if (content.items[index]?.['messageId'] === messageId) yield { row, content, index }
  }
}
