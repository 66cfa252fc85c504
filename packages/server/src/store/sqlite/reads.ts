// What control asks of the rows: configuration at the start, the books, messages, deliveries, deletions. Lists walk their
// table by its key from the cursor, newest first, and stop at the page's end or, where a filter finds little, after a
// bounded number of rows: then the page is short and has a cursor to go on from.

import type { DatabaseSync } from 'node:sqlite'
import { readStoredBody } from '../../stored-messages.ts'
import type {
  DeletionDetail,
  DeletionState,
  DeletionSummary,
  DeletionTarget,
  DeliveryDetail,
  DeliveryFilter,
  DeliveryRow,
  FinalStateName,
  LedgerRow,
  MessageFilter,
  Page,
  PageRequest,
  RejectionRow,
  SegmentContent,
  SkipReason,
  Source,
  SourceCounts,
  StoredMessage,
} from '../store.ts'
import { InvalidCursor } from '../store.ts'
import { type AttemptDoc, requestsOf } from './attempt-doc.ts'
import { rowAndIndex, type StoredDestination, type StoredPart } from './commands.ts'
import { msOfRowId, rowIdAt } from './ids.ts'
import { type LedgerCountsRow, recount } from './ledger.ts'
import { Names } from './names.ts'
import { resolveOrigin, stateOf } from './origins.ts'
import type { ShipmentRow } from './read-claims.ts'
import { candidates, indexOfKey } from './segment-keys.ts'
import type { Routes } from './write-accept.ts'

interface SegmentRow {
  seq: number
  source: number
  received_at: number
  ip: string | null
  browser: number
  count: number
  absent: string | null
  routes: string
  keys: Uint8Array
  body: Uint8Array
}

interface FailureRow {
  id: number
  destination: number
  state: FinalStateName
  reason: string | null
  origin: number
  idx: number
  segment: number
  attempts: number
  replay: number
  at: number
}

interface AttemptRow {
  id: number
  origin: number
  destination: number
  segment: number
  at: number
  attempt: number
  replay: number
  doc: string
}

/** Rows that one page may look at before it answers with what it has. */
const ROWS_PER_PAGE = 20_000
const KEPT_SEGMENTS = 64
const NEWEST = Number.MAX_SAFE_INTEGER

export class Reads {
  readonly #database: DatabaseSync
  readonly #sources: Names
  readonly #destinations: Names
  readonly #contents = new Map<number, SegmentContent | null>()

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#sources = new Names(database, 'sources')
    this.#destinations = new Names(database, 'destinations')
  }

  configuration(): { sources: Source[]; destinations: StoredDestination[]; suppressions: { sourceId: string; userId: string }[] } {
    const docs = (table: string): unknown[] =>
      (this.#all(`SELECT doc FROM ${table} WHERE deleted = 0 ORDER BY num`) as { doc: string }[]).map(({ doc }) => JSON.parse(doc))
    const suppressed = this.#all('SELECT s.id AS sourceId, user_id AS userId FROM suppressions JOIN sources s ON s.num = source')
    return {
      sources: docs('sources') as Source[],
      destinations: docs('destinations') as StoredDestination[],
      suppressions: suppressed as { sourceId: string; userId: string }[],
    }
  }

  /** Work that a crash left in the middle: destinations deleted but still owed something, deletions not purged to the end. */
  unfinished(): { cancelling: string[]; purging: number[] } {
    const deleted = this.#all(
      'SELECT id FROM destinations WHERE deleted = 1 AND EXISTS (SELECT 1 FROM shipments WHERE destination = destinations.num)',
    ) as { id: string }[]
    const purging = this.#all('SELECT num FROM deletions WHERE purge_cursor < purge_end ORDER BY num') as { num: number }[]
    return { cancelling: deleted.map(({ id }) => id), purging: purging.map(({ num }) => num) }
  }

  setting(name: string): string | undefined {
    return (this.#get('SELECT value FROM settings WHERE name = ?', name) as { value: string } | undefined)?.value
  }

  ledger(): LedgerRow[] {
    return this.#named(this.#all('SELECT * FROM ledger ORDER BY destination') as LedgerCountsRow[])
  }

  recount(): LedgerRow[] {
    return this.#named(recount(this.#database))
  }

  oldestPendingAtMs(destinationId: string): number | null {
    const destination = this.#destinations.num(destinationId)
    if (destination === undefined) return null
    const fresh = this.#get('SELECT id FROM shipments WHERE destination = ? AND class = 0 ORDER BY due, id LIMIT 1', destination) as
      | { id: number }
      | undefined
    const retry = this.#get(
      'SELECT first_attempt AS at FROM shipments WHERE destination = ? AND class = 1 ORDER BY due, id LIMIT 1',
      destination,
    ) as { at: number } | undefined
    if (fresh === undefined) return retry?.at ?? null
    return Math.min(msOfRowId(fresh.id), retry?.at ?? NEWEST)
  }

  /** Segments that are still owed and lie before a line. */
  pinned(beforeMs: number): Float64Array {
    const line = rowIdAt(beforeMs)
    const pinned = new Set<number>()
    const rows = this.#database.prepare('SELECT parts FROM shipments').iterate() as unknown as Iterable<{ parts: string }>
    for (const { parts } of rows) for (const [, segment] of JSON.parse(parts) as StoredPart[]) if (segment < line) pinned.add(segment)
    return Float64Array.from(pinned)
  }

  rejections(): RejectionRow[] {
    const rows = this.#all(`
      SELECT s.id AS sourceId, code, count, last_at AS lastAtMs, last_sample AS lastSample
      FROM rejections LEFT JOIN sources s ON s.num = source ORDER BY last_at DESC`)
    return rows as RejectionRow[]
  }

  sourceCounts(): SourceCounts[] {
    return this.#all(`
      SELECT s.id AS sourceId, accepted, duplicates, rejected, suppressed
      FROM source_counts JOIN sources s ON s.num = source ORDER BY source`) as SourceCounts[]
  }

  // ── Messages ──

  /** `hashes`: by source id, what a wanted user's messages carry in their keys. */
  messages(filter: MessageFilter, page: PageRequest, hashes: [sourceId: string, hash: number][] | null): Page<StoredMessage> {
    const [start, startIndex] = cursorOf(page.cursor, [filter.toMs === undefined ? NEWEST : rowIdAt(filter.toMs + 1), -1])
    const end = filter.fromMs === undefined ? 0 : rowIdAt(filter.fromMs)
    const source = filter.sourceId === undefined ? undefined : this.#sources.num(filter.sourceId)
    if (filter.sourceId !== undefined && source === undefined) return { data: [], next: null }
    const hashOf = hashes && new Map(hashes.map(([sourceId, hash]) => [this.#sources.num(sourceId), hash]))
    const rows = this.#database
      .prepare('SELECT * FROM segments WHERE seq <= ? AND seq >= ? ORDER BY seq DESC')
      .iterate(start, end) as unknown as Iterable<SegmentRow>
    const data: StoredMessage[] = []
    let seen = 0
    for (const row of rows) {
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify([row.seq, -1]) }
      if (source !== undefined && row.source !== source) continue
      const hash = hashOf?.get(row.source)
      if (hashOf && hash === undefined) continue
      const possible = hash === undefined ? undefined : candidates(row.keys, new Set([hash]))
      if (possible?.length === 0) continue
      const content = this.#contentOf(row)
      const first = row.seq === start && startIndex >= 0 ? startIndex : content.items.length - 1
      for (let index = first; index >= 0; index--) {
        const item = content.items[index]
        if (!item || (possible && !possible.includes(index)) || !matches(item, filter)) continue
        if (data.length === page.limit) return { data, next: JSON.stringify([row.seq, index]) }
        data.push(this.#message(row, content, index))
      }
    }
    return { data, next: null }
  }

  /** `found`: where the store's keys say that the messageId may be, with its fingerprint there. */
  message(id: string, found: { segment: number; fingerprint: Uint32Array }[]): StoredMessage | undefined {
    const named = rowAndIndex(id)
    const places = named ? [{ segment: named.row, index: named.index, messageId: undefined as string | undefined }] : []
    for (const { segment, fingerprint } of [...found].sort((a, b) => b.segment - a.segment)) {
      const row = this.#segment(segment)
      if (row) places.push({ segment, index: indexOfKey(row.keys, fingerprint), messageId: id })
    }
    for (const { segment, index, messageId } of places) {
      const row = this.#segment(segment)
      const content = row && this.#contentOf(row)
      const item = content?.items[index]
      if (row && content && item && (messageId === undefined || item['messageId'] === messageId)) return this.#message(row, content, index)
    }
    return undefined
  }

  #message(row: SegmentRow, content: SegmentContent, index: number): StoredMessage {
    const routes = JSON.parse(row.routes) as Routes
    const has = (indexes: readonly number[] | 0): boolean => indexes === 0 || indexes.includes(index)
    const deliveries = routes.s
      .filter(([, , indexes]) => has(indexes))
      .map(([destination, origin]) => ({ id: `${origin}-${index}`, destinationId: this.#destinations.id(destination) }))
    const again = this.#all('SELECT origin, destination FROM replays WHERE segment = ? AND idx = ? ORDER BY origin', row.seq, index)
    for (const { origin, destination } of again as { origin: number; destination: number }[]) {
      deliveries.push({ id: `${origin}-${index}`, destinationId: this.#destinations.id(destination) })
    }
    const skips = (routes.k ?? [])
      .filter(([, , indexes]) => has(indexes))
      .map(([destination, reason]) => ({
        destinationId: destination === 0 ? null : this.#destinations.id(destination),
        reason: reason as SkipReason,
      }))
    return { id: `${row.seq}-${index}`, segment: row.seq, index, content: only(content, index), deliveries, skips }
  }

  // ── Deliveries ──

  deliveries(filter: DeliveryFilter, page: PageRequest): Page<DeliveryRow> {
    const destination = filter.destinationId === undefined ? null : this.#destinations.num(filter.destinationId)
    if (destination === undefined) return { data: [], next: null }
    const { state, reason } = filter
    if (state === 'pending') return this.#pending(filter, destination, page, 'end')
    if (state === 'delivered') return this.#settled(filter, destination, page)
    if (state !== undefined || reason !== undefined) return this.#failures(filter, destination, page)
    if (page.cursor?.startsWith('["s"') ?? false) return this.#settled(filter, destination, page)
    const pending = this.#pending(filter, destination, page, 'settled')
    if (pending.data.length >= page.limit || pending.next !== '["s"]') return pending
    const settled = this.#settled(filter, destination, { limit: page.limit - pending.data.length, cursor: null })
    return { data: [...pending.data, ...settled.data], next: settled.next }
  }

  delivery(id: string): DeliveryDetail | undefined {
    const named = rowAndIndex(id)
    const origin = named && resolveOrigin(this.#database, named.row)
    if (!named || !origin) return undefined
    const { index } = named
    const row = this.#segment(origin.segment)
    if (!row || (origin.indexes === 0 ? index >= row.count : !origin.indexes.includes(index))) return undefined
    const absent = row.absent === null ? [] : (JSON.parse(row.absent) as number[])
    if (absent.includes(index)) return undefined
    const content = this.#contentOf(row)
    const { attempts, final } = stateOf(this.#database, named.row, index)
    const rows = this.#all('SELECT attempt, doc FROM attempts WHERE origin = ? ORDER BY id', named.row) as {
      attempt: number
      doc: string
    }[]
    const history = rows.flatMap(({ attempt, doc }) =>
      requestsOf(JSON.parse(doc) as AttemptDoc)
        .filter(({ indexes }) => indexes.includes(index))
        .map((request) => ({ ...request, attempt })),
    )
    return {
      id,
      destinationId: this.#destinations.id(origin.destination),
      messageId: messageIdOf(content, index),
      segment: origin.segment,
      index,
      state: final?.state ?? 'pending',
      reason: final?.reason ?? null,
      attempts,
      replay: origin.replay,
      atMs: final ? final.atMs : this.#dueAtMs(origin.destination, named.row, index),
      content: content.items[index] == null ? null : only(content, index),
      history,
    }
  }

  /** Rows lie by destination, class, due and id, which the cursor names, with the place in the row. */
  #pending(filter: DeliveryFilter, destination: number | null, page: PageRequest, then: 'end' | 'settled'): Page<DeliveryRow> {
    const cursor = page.cursor === null ? [0, 0, 0, 0, 0] : parseCursor(page.cursor)
    if (cursor.length !== 5 || cursor.some((part) => typeof part !== 'number')) throw new InvalidCursor()
    const [fromDestination, fromClass, fromDue, fromId, skip] = cursor as [number, number, number, number, number]
    const rows = this.#database
      .prepare(
        `SELECT * FROM shipments WHERE (destination, class, due, id) >= (?, ?, ?, ?) ${destination === null ? '' : 'AND destination = ?'} ORDER BY destination, class, due, id`,
      )
      .iterate(
        ...[destination === null ? fromDestination : Math.max(fromDestination, destination), fromClass, fromDue, fromId],
        ...(destination === null ? [] : [destination]),
      )
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<ShipmentRow>) {
      const key = [row.destination, row.class, row.due, row.id]
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify([...key, 0]) }
      const acceptedMs = msOfRowId(row.id)
      if ((filter.fromMs ?? 0) > acceptedMs || (filter.toMs ?? NEWEST) < acceptedMs) continue
      const entries = (JSON.parse(row.parts) as StoredPart[]).flatMap(([origin, segment, stored]) => {
        const content = this.#content(segment)
        const indexes = stored === 0 ? presentIn(content) : stored
        return indexes.map((index) => ({ origin, segment, index, messageId: content && messageIdOf(content, index) }))
      })
      const sameRow = page.cursor !== null && row.id === fromId && row.due === fromDue && row.destination === fromDestination
      for (let place = sameRow ? skip : 0; place < entries.length; place++) {
        const { origin, segment, index, messageId } = entries[place] as (typeof entries)[number]
        if (data.length === page.limit) return { data, next: JSON.stringify([...key, place]) }
        data.push({
          id: `${origin}-${index}`,
          destinationId: this.#destinations.id(row.destination),
          messageId: messageId ?? null,
          segment,
          index,
          state: 'pending',
          reason: null,
          attempts: row.attempt,
          replay: row.replay === 1,
          atMs: row.attempt > 0 ? row.due : null,
        })
      }
    }
    return { data, next: then === 'end' ? null : '["s"]' }
  }

  /** From the attempts, newest first: with a state `delivered` those alone, otherwise everything that ended. */
  #settled(filter: DeliveryFilter, destination: number | null, page: PageRequest): Page<DeliveryRow> {
    const [phase, fromId, skip] = page.cursor === null ? ['s'] : (parseCursor(page.cursor) as [string, number?, number?])
    if (phase !== 's' || typeof (fromId ?? 0) !== 'number') throw new InvalidCursor()
    const start = fromId ?? (filter.toMs === undefined ? NEWEST : rowIdAt(filter.toMs + 1))
    const end = filter.fromMs === undefined ? 0 : rowIdAt(filter.fromMs)
    const rows = this.#database
      .prepare(
        `SELECT * FROM attempts WHERE ${destination === null ? '' : 'destination = ? AND '}id <= ? AND id >= ? AND delivered + failed + expired + cancelled > 0 ORDER BY id DESC`,
      )
      .iterate(...(destination === null ? [] : [destination]), start, end)
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<AttemptRow>) {
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify(['s', row.id, 0]) }
      const content = this.#content(row.segment)
      const ended = (JSON.parse(row.doc) as AttemptDoc).f
        .filter(([state]) => filter.state === undefined || filter.state === state)
        .flatMap(([state, reason, indexes]) => indexes.map((index) => ({ state, reason, index })))
      for (let place = row.id === fromId ? (skip ?? 0) : 0; place < ended.length; place++) {
        if (data.length === page.limit) return { data, next: JSON.stringify(['s', row.id, place]) }
        const { state, reason, index } = ended[place] as (typeof ended)[number]
        data.push({
          id: `${row.origin}-${index}`,
          destinationId: this.#destinations.id(row.destination),
          messageId: content && messageIdOf(content, index),
          segment: row.segment,
          index,
          state,
          reason,
          attempts: row.attempt,
          replay: row.replay === 1,
          atMs: row.at,
        })
      }
    }
    return { data, next: null }
  }

  #failures({ state, reason, fromMs, toMs }: DeliveryFilter, destination: number | null, page: PageRequest): Page<DeliveryRow> {
    const start = page.cursor === null ? (toMs === undefined ? NEWEST : rowIdAt(toMs + 1)) : numberIn(page.cursor, 1)
    const conditions: [string, number | string][] = [['id <= ?', start]]
    if (destination !== null) conditions.push(['destination = ?', destination])
    if (state !== undefined) conditions.push(['state = ?', state])
    if (fromMs !== undefined) conditions.push(['id >= ?', rowIdAt(fromMs)])
    const rows = this.#database
      .prepare(`SELECT * FROM failures WHERE ${conditions.map(([sql]) => sql).join(' AND ')} ORDER BY id DESC`)
      .iterate(...conditions.map(([, value]) => value))
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<FailureRow>) {
      if (++seen > ROWS_PER_PAGE || data.length === page.limit) return { data, next: JSON.stringify(['f', row.id]) }
      if (reason !== undefined && row.reason !== reason) continue
      const content = this.#content(row.segment)
      data.push({
        id: `${row.origin}-${row.idx}`,
        destinationId: this.#destinations.id(row.destination),
        messageId: content && messageIdOf(content, row.idx),
        segment: row.segment,
        index: row.idx,
        state: row.state,
        reason: row.reason,
        attempts: row.attempts,
        replay: row.replay === 1,
        atMs: row.at,
      })
    }
    return { data, next: null }
  }

  /** When a pending delivery is tried next; null: at once, or not found among as many rows as may be looked at. */
  #dueAtMs(destination: number, origin: number, index: number): number | null {
    const rows = this.#database
      .prepare('SELECT due, parts FROM shipments WHERE destination = ? AND class = 1 ORDER BY due, id LIMIT ?')
      .iterate(destination, ROWS_PER_PAGE) as unknown as Iterable<{ due: number; parts: string }>
    for (const { due, parts } of rows) {
      const isIn = ([from, , indexes]: StoredPart): boolean => from === origin && (indexes === 0 || indexes.includes(index))
      if ((JSON.parse(parts) as StoredPart[]).some(isIn)) return due
    }
    return null
  }

  // ── Deletions ──

  deletions({ limit, cursor }: PageRequest): Page<DeletionSummary> {
    const start = cursor === null ? NEWEST : numberIn(cursor, 0)
    const rows = this.#all('SELECT num FROM deletions WHERE num <= ? ORDER BY num DESC LIMIT ?', start, limit + 1) as { num: number }[]
    const data = rows.slice(0, limit).map(({ num }) => {
      const { targets: _, ...summary } = this.#deletion(num)
      return summary
    })
    return { data, next: rows.length > limit ? JSON.stringify([rows[limit]?.num]) : null }
  }

  deletion(id: string): DeletionDetail | undefined {
    const row = this.#get('SELECT num FROM deletions WHERE id = ?', id) as { num: number } | undefined
    return row && this.#deletion(row.num)
  }

  suppressions({ limit, cursor }: PageRequest): Page<{ userId: string; sourceId: string; since: number }> {
    const [source, userId] = cursor === null ? [0, ''] : (parseCursor(cursor) as [number, string])
    if (typeof source !== 'number' || typeof userId !== 'string') throw new InvalidCursor()
    const rows = this.#all(
      'SELECT source, user_id AS userId, since FROM suppressions WHERE (source, user_id) >= (?, ?) ORDER BY source, user_id LIMIT ?',
      source,
      userId,
      limit + 1,
    ) as { source: number; userId: string; since: number }[]
    const next = rows[limit]
    const data = rows.slice(0, limit).map((row) => ({ userId: row.userId, sourceId: this.#sources.id(row.source), since: row.since }))
    return { data, next: next ? JSON.stringify([next.source, next.userId]) : null }
  }

  #deletion(num: number): DeletionDetail {
    const row = this.#get('SELECT * FROM deletions WHERE num = ?', num) as {
      id: string
      created_at: number
      suppress: number
      user_ids: string
      sources: string
      purged: number
      purge_cursor: number
      purge_end: number
    }
    const userIds = JSON.parse(row.user_ids) as string[]
    const sources = JSON.parse(row.sources) as number[]
    const purged = row.purge_cursor >= row.purge_end
    const sent = this.#all(
      'SELECT user_id AS userId, source, destination, origin, final FROM deletion_targets WHERE deletion = ?',
      num,
    ) as {
      userId: string
      source: number
      destination: number
      origin: number
      final: FinalStateName | null
    }[]
    const targets = sent.map(({ userId, source, destination, origin, final }): DeletionTarget => {
      const { attempts, final: settled } = stateOf(this.#database, origin, 0)
      const state = targetState(settled?.state ?? final ?? undefined, attempts, purged)
      return {
        userId,
        sourceId: this.#sources.id(source),
        destinationId: this.#destinations.id(destination),
        deliveryId: `${origin}-0`,
        state,
      }
    })
    const withDestination = new Set(sent.map(({ userId, source }) => `${source} ${userId}`))
    for (const source of sources) {
      for (const userId of userIds) {
        if (withDestination.has(`${source} ${userId}`)) continue
        const state = purged ? 'finished' : 'running'
        targets.push({ userId, sourceId: this.#sources.id(source), destinationId: null, deliveryId: null, state })
      }
    }
    return {
      id: row.id,
      createdAtMs: row.created_at,
      suppress: row.suppress === 1,
      userCount: userIds.length,
      sourceIds: sources.map((source) => this.#sources.id(source)),
      state: overall(targets, purged),
      purged: row.purged,
      targets,
    }
  }

  // ── Segments ──

  #segment(seq: number): SegmentRow | undefined {
    return this.#get('SELECT * FROM segments WHERE seq = ?', seq) as SegmentRow | undefined
  }

  /** Null when it is no longer stored. Kept for the rows of one list, which often share a segment. */
  #content(seq: number): SegmentContent | null {
    const known = this.#contents.get(seq)
    if (known !== undefined) return known
    const row = this.#segment(seq)
    const content = row ? this.#contentOf(row) : null
    if (this.#contents.size >= KEPT_SEGMENTS) this.#contents.clear()
    this.#contents.set(seq, content)
    return content
  }

  /** A purge rewrites segments, so nothing is kept from one question to the next. */
  forget(): void {
    this.#contents.clear()
  }

  #contentOf(row: SegmentRow): SegmentContent {
    const about = { sourceId: this.#sources.id(row.source), receivedAtMs: row.received_at, ip: row.ip, browser: row.browser === 1 }
    return readStoredBody(row.body, about, row.absent === null ? [] : (JSON.parse(row.absent) as number[]))
  }

  #named(rows: readonly LedgerCountsRow[]): LedgerRow[] {
    return rows.map(({ destination, ...counts }) => ({ destinationId: this.#destinations.id(destination), ...counts }))
  }

  #all(sql: string, ...values: (number | string)[]): unknown[] {
    return this.#database.prepare(sql).all(...values)
  }

  #get(sql: string, ...values: (number | string)[]): unknown {
    return this.#database.prepare(sql).get(...values)
  }
}

function matches(item: Readonly<Record<string, unknown>>, { type, userId, messageId }: MessageFilter): boolean {
  if (type !== undefined && item['type'] !== type) return false
  if (messageId !== undefined && item['messageId'] !== messageId) return false
  return userId === undefined || item['userId'] === userId || item['anonymousId'] === userId || item['previousId'] === userId
}

/** The content with one message in it: a segment may hold 500 KB, and a list a thousand messages. */
function only(content: SegmentContent, index: number): SegmentContent {
  const items = new Array<SegmentContent['items'][number]>(index + 1).fill(null)
  items[index] = content.items[index] ?? null
  return { ...content, items }
}

function presentIn(content: SegmentContent | null): number[] {
  return content === null ? [] : [...content.items.keys()].filter((index) => content.items[index] !== null)
}

function messageIdOf(content: SegmentContent, index: number): string | null {
  const messageId = content.items[index]?.['messageId']
  return typeof messageId === 'string' ? messageId : null
}

function cursorOf(cursor: string | null, start: [number, number]): [number, number] {
  if (cursor === null) return start
  const [seq, index] = parseCursor(cursor)
  if (typeof seq !== 'number' || typeof index !== 'number') throw new InvalidCursor()
  return [seq, index]
}

/** Cursors are the store's own and come back through strangers' hands: lists of numbers and short strings, or nothing. */
function parseCursor(cursor: string): unknown[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(cursor)
  } catch {
    throw new InvalidCursor()
  }
  const isValid = Array.isArray(parsed) && parsed.every((part) => typeof part === 'string' || Number.isSafeInteger(part))
  if (!isValid) throw new InvalidCursor()
  return parsed as unknown[]
}

function numberIn(cursor: string, place: number): number {
  const part = parseCursor(cursor)[place]
  if (typeof part !== 'number') throw new InvalidCursor()
  return part
}

function targetState(final: FinalStateName | undefined, attempts: number, purged: boolean): DeletionState {
  if (final === undefined) return attempts > 0 ? 'running' : 'pending'
  if (final !== 'delivered') return 'failed'
  return purged ? 'finished' : 'running'
}

function overall(targets: readonly DeletionTarget[], purged: boolean): DeletionState {
  const states = new Set(targets.map(({ state }) => state))
  if (states.has('running') || !purged) return 'running'
  if (states.has('pending')) return states.size === 1 ? 'pending' : 'running'
  return states.has('failed') ? 'failed' : 'finished'
}
