// Deliveries as they are asked for: what is pending from the shipments, what ended from the attempts and the failures.

import type { StatementSync } from 'node:sqlite'
import { type AttemptDoc, requestsOf } from '../../encoding/attempt-doc.ts'
import { type CauseRow, CauseTally, sharesOf } from '../../history/causes.ts'
import { namesOf, only } from '../../history/content.ts'
import { cursorOf, NEWEST, ROWS_PER_PAGE } from '../../history/paging.ts'
import type {
  CauseFilter,
  DeliveryDetail,
  DeliveryFilter,
  DeliveryRow,
  FailureCauses,
  FinalStateName,
  GatheredPart,
  Page,
  PageRequest,
  Part,
  RequestRecord,
} from '../../store.ts'
import type { LedgerCountsRow } from '../messages/ledger.ts'
import { resolveOrigin, stateOf } from '../messages/origins.ts'
import { absentIndexes, owedIndexes, type ShipmentRow } from '../messages/read-claims.ts'
import type { StoredPart } from '../messages/stored-parts.ts'
import { msOfRowId, rowAndIndex, rowIdAt } from '../schema/ids.ts'
import { MessageChoice } from './message-choice.ts'
import type { Rows } from './rows.ts'

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

/** Segments that one answer may read for what a batch carried: a batch may take one message of each of a thousand large calls. */
const GATHERED_BYTES = 32 * 1024 * 1024

export class DeliveryReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  list(filter: DeliveryFilter, page: PageRequest): Page<DeliveryRow> {
    const destination = filter.destinationId === undefined ? null : this.#rows.destinations.num(filter.destinationId)
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

  /** Grouped by SQLite, from the newest on, and no more than are looked at. */
  causes(filter: CauseFilter): FailureCauses {
    const { fromMs, toMs } = filter
    const ledger = this.#rows.all('SELECT * FROM ledger') as LedgerCountsRow[]
    const shares = sharesOf(
      ledger.map((row) => Object.assign(row, { destinationId: this.#rows.destinations.id(row.destination) })),
      filter,
    )
    const tally = new CauseTally(shares)
    const grouped = this.#rows.database.prepare(
      `SELECT g.*, f.origin, f.idx FROM (
         SELECT reason, count(*) AS count, min(at) AS first, max(at) AS last, max(id) AS newest FROM (
           SELECT id, reason, at FROM failures WHERE destination = ? AND state = ? AND id <= ? AND id >= ? ORDER BY id DESC LIMIT ?
         ) GROUP BY reason
       ) g JOIN failures f ON f.id = g.newest`,
    )
    const start = toMs === undefined ? NEWEST : rowIdAt(toMs + 1) - 1
    const end = fromMs === undefined ? 0 : rowIdAt(fromMs)
    for (const share of shares) {
      const destination = this.#rows.destinations.num(share.destinationId) as number
      tally.add(share, grouped.all(destination, share.state, start, end, tally.limit()) as unknown as CauseRow[])
    }
    return tally.result()
  }

  one(id: string): DeliveryDetail | undefined {
    const named = rowAndIndex(id)
    const origin = named && resolveOrigin(this.#rows.database, named.row)
    if (!named || !origin) return undefined
    const { index } = named
    const row = this.#rows.segment(origin.segment)
    if (!row || (origin.indexes === 0 ? index >= row.count : !origin.indexes.includes(index))) return undefined
    const absent = absentIndexes(row.absent)
    if (absent.includes(index)) return undefined
    const content = this.#rows.contentOf(row)
    const { attempts, final } = stateOf(this.#rows.database, named.row, index)
    const rows = this.#rows.all('SELECT attempt, doc FROM attempts WHERE origin = ? ORDER BY id', named.row) as {
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
      destinationId: this.#rows.destinations.id(origin.destination),
      ...namesOf(content, index),
      segment: origin.segment,
      index,
      state: final?.state ?? 'pending',
      reason: final?.reason ?? null,
      attempts,
      replay: origin.replay,
      atMs: final ? final.atMs : this.#dueAtMs(origin.destination, named.row, index),
      content: content.items[index] == null ? null : only(content, history.at(-1)?.indexes ?? [index]),
      history,
      owedAtMs: (origin.replay ? this.#replayedAtMs(named.row, index) : undefined) ?? row.received_at,
      gathered: this.#gathered(named.row, index, history.at(-1)),
      ...this.#replays(origin.destination, origin.segment, named.row, index),
    }
  }

  #replayedAtMs(origin: number, index: number): number | undefined {
    return (this.#rows.get('SELECT at FROM replays WHERE origin = ? AND idx = ?', origin, index) as { at: number } | undefined)?.at
  }

  #gathered(origin: number, index: number, last: RequestRecord | undefined): GatheredPart[] | null {
    if (last?.gathered === undefined) return null
    const parts = last.gathered.parts ?? this.#ledParts(last.gathered.lead as number, last, origin, index)
    let bytes = 0
    const found = parts?.map(({ origin: of, segment, indexes }): GatheredPart => {
      const row = bytes > GATHERED_BYTES ? undefined : this.#rows.segment(segment as number)
      bytes += row?.body.length ?? 0
      return { origin: of, segment, indexes, content: row === undefined ? null : only(this.#rows.contentOf(row), indexes) }
    })
    return found ?? null
  }

  /** What a request carried stands with the first of those it carried. */
  #ledParts(lead: number, { url, startedAtMs }: RequestRecord, origin: number, index: number): readonly Part[] | null {
    const docs = this.#rows.all('SELECT doc FROM attempts WHERE origin = ? ORDER BY id DESC', lead) as { doc: string }[]
    for (const { doc } of docs) {
      for (const request of requestsOf(JSON.parse(doc) as AttemptDoc)) {
        const parts = request.url === url && request.startedAtMs === startedAtMs ? request.gathered?.parts : undefined
        if (parts?.some((part) => part.origin === origin && part.indexes.includes(index))) return parts
      }
    }
    return null
  }

  /** Rows lie by destination, class, due and id, which the cursor names, with the place in the row. `then` follows the last. */
  #pending(filter: DeliveryFilter, destination: number | null, page: PageRequest, then: string | null): Page<DeliveryRow> {
    const [fromDestination, fromClass, fromDue, fromId, skip] = cursorOf('p', page.cursor, [destination ?? 0, 0, 0, 0, 0])
    const { fromMs = 0, toMs = NEWEST } = filter
    // With the destination as an equation, or SQLite would begin at its first row and not at the cursor.
    const rows =
      destination === null
        ? this.#rows.database
            .prepare('SELECT * FROM shipments WHERE (destination, class, due, id) >= (?, ?, ?, ?) ORDER BY destination, class, due, id')
            .iterate(fromDestination, fromClass, fromDue, fromId)
        : this.#rows.database
            .prepare('SELECT * FROM shipments WHERE destination = ? AND (class, due, id) >= (?, ?, ?) ORDER BY class, due, id')
            .iterate(destination, fromClass, fromDue, fromId)
    const choice = MessageChoice.of(this.#rows, filter)
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
        if (choice?.isSpent) return { data, next: JSON.stringify([...key, place]) }
        if (choice?.has(segment, index) === false) continue
        if (data.length === page.limit) return { data, next: JSON.stringify([...key, place]) }
        const content = this.#rows.content(segment)
        data.push({
          id: `${origin}-${index}`,
          destinationId: this.#rows.destinations.id(row.destination),
          ...namesOf(content, index),
          segment,
          index,
          state: 'pending',
          reason: null,
          attempts: row.attempt,
          replay: row.replay === 1,
          atMs: row.attempt > 0 ? row.due : null,
          ...this.#replays(row.destination, segment, origin, index),
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
    const row = this.#rows.get('SELECT count, absent FROM segments WHERE seq = ?', segment) as
      | { count: number; absent: string | null }
      | undefined
    return row ? owedIndexes(row.count, absentIndexes(row.absent)) : []
  }

  /** From the attempts, newest first: with a state `delivered` those alone, otherwise everything that ended. */
  #settled(filter: DeliveryFilter, destination: number | null, page: PageRequest): Page<DeliveryRow> {
    const newest = filter.toMs === undefined ? NEWEST : rowIdAt(filter.toMs + 1) - 1
    const [start, skip] = cursorOf('s', page.cursor === JSON.stringify(['s']) ? null : page.cursor, [newest, 0])
    const end = filter.fromMs === undefined ? 0 : rowIdAt(filter.fromMs)
    const rows = this.#rows.database
      .prepare(`SELECT * FROM attempts WHERE ${destination === null ? '' : 'destination = ? AND '}id <= ? AND id >= ? ORDER BY id DESC`)
      .iterate(...(destination === null ? [] : [destination]), start, end)
    const choice = MessageChoice.of(this.#rows, filter)
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<AttemptRow>) {
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify(['s', row.id, 0]) }
      if (row.delivered + (filter.state === undefined ? row.failed + row.expired + row.cancelled : 0) === 0) continue
      const ended = (JSON.parse(row.doc) as AttemptDoc).f
        .filter(([state]) => filter.state === undefined || filter.state === state)
        .flatMap(([state, reason, indexes]) => indexes.map((index) => ({ state, reason, index })))
      for (let place = row.id === start ? skip : 0; place < ended.length; place++) {
        if (choice?.isSpent) return { data, next: JSON.stringify(['s', row.id, place]) }
        const { state, reason, index } = ended[place] as (typeof ended)[number]
        if (choice?.has(row.segment, index) === false) continue
        if (data.length === page.limit) return { data, next: JSON.stringify(['s', row.id, place]) }
        const content = this.#rows.content(row.segment)
        data.push({
          id: `${row.origin}-${index}`,
          destinationId: this.#rows.destinations.id(row.destination),
          ...namesOf(content, index),
          segment: row.segment,
          index,
          state,
          reason,
          attempts: row.attempt,
          replay: row.replay === 1,
          atMs: row.at,
          ...this.#replays(row.destination, row.segment, row.origin, index),
        })
      }
    }
    return { data, next: null }
  }

  #failures(filter: DeliveryFilter, destination: number | null, page: PageRequest): Page<DeliveryRow> {
    const { state, reason, fromMs, toMs } = filter
    const [start] = cursorOf('f', page.cursor, [toMs === undefined ? NEWEST : rowIdAt(toMs + 1) - 1])
    const end = fromMs === undefined ? 0 : rowIdAt(fromMs)
    // By the index where it leads to just these rows in their order; otherwise all are passed by number and chosen here,
    // so that a page is bounded by what it looks at.
    const rows =
      destination !== null && state !== undefined
        ? this.#rows.database
            .prepare('SELECT * FROM failures WHERE destination = ? AND state = ? AND id <= ? AND id >= ? ORDER BY id DESC')
            .iterate(destination, state, start, end)
        : this.#rows.database.prepare('SELECT * FROM failures WHERE id <= ? AND id >= ? ORDER BY id DESC').iterate(start, end)
    const choice = MessageChoice.of(this.#rows, filter)
    const data: DeliveryRow[] = []
    let seen = 0
    for (const row of rows as unknown as Iterable<FailureRow>) {
      if (++seen > ROWS_PER_PAGE) return { data, next: JSON.stringify(['f', row.id]) }
      if (destination !== null && row.destination !== destination) continue
      if (state !== undefined && row.state !== state) continue
      if (reason !== undefined && row.reason !== reason) continue
      if (choice?.isSpent) return { data, next: JSON.stringify(['f', row.id]) }
      if (choice?.has(row.segment, row.idx) === false) continue
      if (data.length === page.limit) return { data, next: JSON.stringify(['f', row.id]) }
      const content = this.#rows.content(row.segment)
      data.push({
        id: `${row.origin}-${row.idx}`,
        destinationId: this.#rows.destinations.id(row.destination),
        ...namesOf(content, row.idx),
        segment: row.segment,
        index: row.idx,
        state: row.state,
        reason: row.reason,
        attempts: row.attempts,
        replay: row.replay === 1,
        atMs: row.at,
        ...this.#replays(row.destination, row.segment, row.origin, row.idx),
      })
    }
    return { data, next: null }
  }

  /** What it repeats, and what repeats it. Nearly always nothing, which is one look. */
  #replays(
    destination: number,
    segment: number,
    origin: number,
    index: number,
  ): Pick<DeliveryRow, 'replayOf' | 'replayJobId' | 'replayedBy'> {
    this.#selectNewest ??= this.#rows.database.prepare(
      'SELECT origin FROM replays WHERE segment = ? AND idx = ? AND destination = ? ORDER BY origin DESC LIMIT 1',
    )
    const newest = this.#selectNewest.get(segment, index, destination) as { origin: number } | undefined
    this.#selectReplay ??= this.#rows.database.prepare(
      `SELECT r.replay_of AS replayOf, j.id AS jobId FROM replays r LEFT JOIN replay_jobs j ON j.num = r.job
       WHERE r.origin = ? AND r.idx = ?`,
    )
    const own = newest && (this.#selectReplay.get(origin, index) as { replayOf: string; jobId: string | null } | undefined)
    return {
      replayOf: own?.replayOf ?? null,
      replayJobId: own?.jobId ?? null,
      replayedBy: newest && newest.origin > origin ? `${newest.origin}-${index}` : null,
    }
  }
  #selectNewest: StatementSync | undefined
  #selectReplay: StatementSync | undefined

  /** When a pending delivery is tried next; null: at once, or not found among as many rows as may be looked at. */
  #dueAtMs(destination: number, origin: number, index: number): number | null {
    const rows = this.#rows.database
      .prepare('SELECT due, parts FROM shipments WHERE destination = ? AND class = 1 ORDER BY due, id LIMIT ?')
      .iterate(destination, ROWS_PER_PAGE) as unknown as Iterable<{ due: number; parts: string }>
    for (const { due, parts } of rows) {
      const isIn = ([from, , indexes]: StoredPart): boolean => from === origin && (indexes === 0 || indexes.includes(index))
      if ((JSON.parse(parts) as StoredPart[]).some(isIn)) return due
    }
    return null
  }
}
