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
import { unpackBody } from './body-bytes.ts'
import { type FoundKey, rowAndIndex, type StoredDestination, type StoredPart } from './commands.ts'
import { type Seed, sourceSeed, userHash } from './fingerprint.ts'
import { msOfRowId, rowIdAt } from './ids.ts'
import { type LedgerCountsRow, recount } from './ledger.ts'
import { Names } from './names.ts'
import { resolveOrigin, stateOf } from './origins.ts'
import { absentIndexes, owedIndexes, type ShipmentRow } from './read-claims.ts'
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
  delivered: number
  failed: number
  expired: number
  cancelled: number
  doc: string
}

/** Rows that one page may look at before it answers with what it has. */
const ROWS_PER_PAGE = 20_000
/** Bodies that one page may read, some 200 ms of parsing. */
const BYTES_PER_PAGE = 32 * 1024 * 1024
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
    const oldest = (condition: string): { parts: string } | undefined =>
      this.#get(`SELECT parts FROM shipments WHERE destination = ? AND ${condition} LIMIT 1`, destination) as { parts: string } | undefined
    const rows = [oldest('class = 0 ORDER BY due, id'), oldest('class = 1 AND first_attempt IS NOT NULL ORDER BY first_attempt')]
    const origins = rows.flatMap((row) => (row ? (JSON.parse(row.parts) as StoredPart[]).map(([origin]) => origin) : []))
    return origins.length === 0 ? null : msOfRowId(Math.min(...origins))
  }

  /** Segments that are still owed and lie before a line. */
  pinned(line: number): Float64Array {
    const pinned = new Set<number>()
    // Nothing that old is stored, which is so at nearly every asking: no need to read what may be a million shipments.
    if (this.#get('SELECT 1 FROM segments WHERE seq < ? LIMIT 1', line) === undefined) return new Float64Array()
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

  messages(filter: MessageFilter, page: PageRequest): Page<StoredMessage> {
    const [start, startIndex] = cursorOf('m', page.cursor, [filter.toMs === undefined ? NEWEST : rowIdAt(filter.toMs + 1) - 1, NEWEST])
    const end = filter.fromMs === undefined ? 0 : rowIdAt(filter.fromMs)
    const source = filter.sourceId === undefined ? undefined : this.#sources.num(filter.sourceId)
    if (filter.sourceId !== undefined && source === undefined) return { data: [], next: null }
    const { userId } = filter
    const rows = this.#database
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
      const row = this.#segment(seq) as SegmentRow
      bytes += row.body.length
      const content = this.#contentOf(row)
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
  messagesIn(found: readonly FoundKey[], filter: MessageFilter, page: PageRequest): Page<StoredMessage> {
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
  message(id: string, found: readonly FoundKey[]): StoredMessage | undefined {
    const named = rowAndIndex(id)
    const row = named && this.#segment(named.row)
    const content = row && this.#contentOf(row)
    if (row && content?.items[named.index]) return this.#message(row, content, named.index)
    const [newest] = this.#places(found, id)
    return newest && this.#message(newest.row, newest.content, newest.index)
  }

  /** Newest first. A fingerprint is all but certain, and the message itself is. */
  #places(found: readonly FoundKey[], messageId: string | undefined): { row: SegmentRow; content: SegmentContent; index: number }[] {
    return [...found]
      .sort((a, b) => b.segment - a.segment)
      .flatMap(({ segment, fingerprint }) => {
        const row = this.#segment(segment)
        if (row === undefined) return []
        const index = indexOfKey(row.keys, fingerprint)
        const content = this.#contentOf(row)
        return content.items[index]?.['messageId'] === messageId ? [{ row, content, index }] : []
      })
  }

  /** What a user's messages from a source carry in their keys. */
  #userHash(source: number, userId: string): number {
    this.#seed ??= JSON.parse(this.setting('dedup_seed') as string) as Seed
    return userHash(userId, sourceSeed(this.#sources.id(source), this.#seed))
  }
  #seed: Seed | undefined

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
    return { id: `${row.seq}-${index}`, segment: row.seq, index, content: only(content, [index]), deliveries, skips }
  }

  // ── Deliveries ──

  deliveries(filter: DeliveryFilter, page: PageRequest): Page<DeliveryRow> {
    const destination = filter.destinationId === undefined ? null : this.#destinations.num(filter.destinationId)
    if (destination === undefined) return { data: [], next: null }
    const { state, reason } = filter
    if (state === 'pending') return reason === undefined ? this.#pending(filter, destination, page, null) : { data: [], next: null }
    if (state === 'delivered') return reason === undefined ? this.#settled(filter, destination, page) : { data: [], next: null }
    if (state !== undefined || reason !== undefined) return this.#failures(filter, destination, page)
    // Everything: first what is pending, then what has ended.
    const ended = JSON.stringify(['s'])
    if (page.cursor?.startsWith('["s"') ?? false) return this.#settled(filter, destination, page)
    const pending = this.#pending(filter, destination, page, ended)
    if (pending.data.length >= page.limit || pending.next !== ended) return pending
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
    const absent = absentIndexes(row.absent)
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
        .map((request) => Object.assign(request, { attempt })),
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
      content: content.items[index] == null ? null : only(content, history.at(-1)?.indexes ?? [index]),
      history,
    }
  }

  /** Rows lie by destination, class, due and id, which the cursor names, with the place in the row. `then` follows the last. */
  #pending(filter: DeliveryFilter, destination: number | null, page: PageRequest, then: string | null): Page<DeliveryRow> {
    const [fromDestination, fromClass, fromDue, fromId, skip] = cursorOf('p', page.cursor, [destination ?? 0, 0, 0, 0, 0])
    const { fromMs = 0, toMs = NEWEST } = filter
    // With the destination as an equation, or SQLite would begin at its first row and not at the cursor.
    const rows =
      destination === null
        ? this.#database
            .prepare('SELECT * FROM shipments WHERE (destination, class, due, id) >= (?, ?, ?, ?) ORDER BY destination, class, due, id')
            .iterate(fromDestination, fromClass, fromDue, fromId)
        : this.#database
            .prepare('SELECT * FROM shipments WHERE destination = ? AND (class, due, id) >= (?, ?, ?) ORDER BY class, due, id')
            .iterate(destination, fromClass, fromDue, fromId)
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<ShipmentRow>) {
      const key = ['p', row.destination, row.class, row.due, row.id]
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify([...key, 0]) }
      const entries = this.#owedIn(row)
      const isFirst = row.destination === fromDestination && row.class === fromClass && row.due === fromDue && row.id === fromId
      for (let place = isFirst ? skip : 0; place < entries.length; place++) {
        const { origin, segment, index } = entries[place] as (typeof entries)[number]
        const acceptedMs = msOfRowId(origin)
        if (acceptedMs < fromMs || acceptedMs > toMs) continue
        if (data.length === page.limit) return { data, next: JSON.stringify([...key, place]) }
        const content = this.#content(segment)
        data.push({
          id: `${origin}-${index}`,
          destinationId: this.#destinations.id(row.destination),
          messageId: content && messageIdOf(content, index),
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
    return { data, next: then }
  }

  /** The deliveries of a shipment. */
  #owedIn(row: ShipmentRow): { origin: number; segment: number; index: number }[] {
    return (JSON.parse(row.parts) as StoredPart[]).flatMap(([origin, segment, stored]) => {
      const indexes = stored === 0 ? this.#allOf(segment) : stored
      return indexes.map((index) => ({ origin, segment, index }))
    })
  }

  #allOf(segment: number): number[] {
    const row = this.#get('SELECT count, absent FROM segments WHERE seq = ?', segment) as
      | { count: number; absent: string | null }
      | undefined
    return row ? owedIndexes(row.count, absentIndexes(row.absent)) : []
  }

  /** From the attempts, newest first: with a state `delivered` those alone, otherwise everything that ended. */
  #settled(filter: DeliveryFilter, destination: number | null, page: PageRequest): Page<DeliveryRow> {
    const newest = filter.toMs === undefined ? NEWEST : rowIdAt(filter.toMs + 1) - 1
    const [start, skip] = cursorOf('s', page.cursor === JSON.stringify(['s']) ? null : page.cursor, [newest, 0])
    const end = filter.fromMs === undefined ? 0 : rowIdAt(filter.fromMs)
    const rows = this.#database
      .prepare(`SELECT * FROM attempts WHERE ${destination === null ? '' : 'destination = ? AND '}id <= ? AND id >= ? ORDER BY id DESC`)
      .iterate(...(destination === null ? [] : [destination]), start, end)
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<AttemptRow>) {
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify(['s', row.id, 0]) }
      if (row.delivered + (filter.state === undefined ? row.failed + row.expired + row.cancelled : 0) === 0) continue
      const ended = (JSON.parse(row.doc) as AttemptDoc).f
        .filter(([state]) => filter.state === undefined || filter.state === state)
        .flatMap(([state, reason, indexes]) => indexes.map((index) => ({ state, reason, index })))
      for (let place = row.id === start ? skip : 0; place < ended.length; place++) {
        if (data.length === page.limit) return { data, next: JSON.stringify(['s', row.id, place]) }
        const { state, reason, index } = ended[place] as (typeof ended)[number]
        const content = this.#content(row.segment)
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
    const [start] = cursorOf('f', page.cursor, [toMs === undefined ? NEWEST : rowIdAt(toMs + 1) - 1])
    const end = fromMs === undefined ? 0 : rowIdAt(fromMs)
    // By the index where it leads to just these rows in their order; otherwise all are passed by number and chosen here,
    // so that a page is bounded by what it looks at.
    const rows =
      destination !== null && state !== undefined
        ? this.#database
            .prepare('SELECT * FROM failures WHERE destination = ? AND state = ? AND id <= ? AND id >= ? ORDER BY id DESC')
            .iterate(destination, state, start, end)
        : this.#database.prepare('SELECT * FROM failures WHERE id <= ? AND id >= ? ORDER BY id DESC').iterate(start, end)
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<FailureRow>) {
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify(['f', row.id]) }
      if (destination !== null && row.destination !== destination) continue
      if (state !== undefined && row.state !== state) continue
      if (reason !== undefined && row.reason !== reason) continue
      if (data.length === page.limit) return { data, next: JSON.stringify(['f', row.id]) }
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
    const [start] = cursorOf('d', cursor, [NEWEST])
    const rows = this.#all('SELECT num FROM deletions WHERE num <= ? ORDER BY num DESC LIMIT ?', start, limit + 1) as { num: number }[]
    const data = rows.slice(0, limit).map(({ num }) => {
      const { targets: _, ...summary } = this.#deletion(num)
      return summary
    })
    return { data, next: rows.length > limit ? JSON.stringify(['d', rows[limit]?.num]) : null }
  }

  deletion(id: string): DeletionDetail | undefined {
    const row = this.#get('SELECT num FROM deletions WHERE id = ?', id) as { num: number } | undefined
    return row && this.#deletion(row.num)
  }

  suppressions({ limit, cursor }: PageRequest): Page<{ userId: string; sourceId: string; since: number }> {
    const [source, userId] = cursorOf('u', cursor, [0, ''])
    const rows = this.#all(
      'SELECT source, user_id AS userId, since FROM suppressions WHERE (source, user_id) >= (?, ?) ORDER BY source, user_id LIMIT ?',
      source,
      userId,
      limit + 1,
    ) as { source: number; userId: string; since: number }[]
    const next = rows[limit]
    const data = rows.slice(0, limit).map((row) => ({ userId: row.userId, sourceId: this.#sources.id(row.source), since: row.since }))
    return { data, next: next ? JSON.stringify(['u', next.source, next.userId]) : null }
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
    // A delete message is alone in its segment, so that the counts of its attempts say how it ended.
    const sent = this.#all(
      `SELECT t.user_id AS userId, t.source, t.destination, t.origin, t.final, ifnull(max(a.attempt), 0) AS attempts,
              ifnull(sum(a.delivered), 0) AS delivered, ifnull(sum(a.failed + a.expired + a.cancelled), 0) AS failed
       FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin
       WHERE t.deletion = ? GROUP BY t.user_id, t.source, t.destination`,
      num,
    ) as {
      userId: string
      source: number
      destination: number
      origin: number
      final: FinalStateName | null
      attempts: number
      delivered: number
      failed: number
    }[]
    const targets = sent.map(({ userId, source, destination, origin, final, attempts, delivered, failed }): DeletionTarget => {
      const isDelivered = delivered > 0 || final === 'delivered'
      const state = targetState(isDelivered ? 'delivered' : failed > 0 || final !== null ? 'failed' : undefined, attempts, purged)
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
    const row = this.#get('SELECT * FROM segments WHERE seq = ?', seq) as SegmentRow | undefined
    return row && { ...row, body: unpackBody(row.body) }
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
    return readStoredBody(row.body, about, absentIndexes(row.absent))
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

/** The content with only those messages in it: a segment may hold 500 KB, and a list a thousand messages. */
function only(content: SegmentContent, indexes: readonly number[]): SegmentContent {
  const items = Array.from<SegmentContent['items'][number]>({ length: Math.max(...indexes) + 1 }).fill(null)
  for (const index of indexes) items[index] = content.items[index] ?? null
  return { ...content, items }
}

function messageIdOf(content: SegmentContent, index: number): string | null {
  const messageId = content.items[index]?.['messageId']
  return typeof messageId === 'string' ? messageId : null
}

/** Cursors are the store's own and come back through strangers' hands: a list's letter, and values of the start's types. */
function cursorOf<T extends readonly (number | string)[]>(list: string, cursor: string | null, start: readonly [...T]): readonly [...T] {
  if (cursor === null) return start
  let parsed: unknown
  try {
    parsed = JSON.parse(cursor)
  } catch {
    throw new InvalidCursor()
  }
  if (!Array.isArray(parsed) || parsed.length !== start.length + 1 || parsed[0] !== list) throw new InvalidCursor()
  const values = parsed.slice(1) as unknown[]
  const isOfList = values.every((value, at) =>
    typeof start[at] === 'number' ? Number.isSafeInteger(value) && (value as number) >= 0 : typeof value === 'string',
  )
  if (!isOfList) throw new InvalidCursor()
  return values as unknown as readonly [...T]
}

function targetState(final: 'delivered' | 'failed' | undefined, attempts: number, purged: boolean): DeletionState {
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
