// Counts per minute for GET /api/stats. They are added up in memory and written to the store every few seconds and at shutdown. If a
// write fails, the counts are written again later, so nothing is counted twice, and nothing is lost while the process lives. After
// a crash, the last seconds are missing from these statistics, but not from the ledger, which the store maintains itself.

import type { AttemptEvent, SettledEvent } from '../delivery/events/events.ts'
import type { AcceptedEvent, RejectedEvent, SuppressedEvent, WarnedEvent } from '../ingest/events.ts'
import {
  addCounts,
  addSubject,
  fromName,
  LATENCY_BUCKETS,
  latencyBucket,
  latencyName,
  OLDEST_SECONDS,
  PENDING,
  rejectedName,
  type StatCounts,
  skippedName,
  warningName,
} from '../store/port/stat-counts.ts'
import type { LedgerRow, OldestPending, Routing, StatKind, StatRow } from '../store/store.ts'
import type { Watcher } from './events/events.ts'

export interface StatsOptions {
  add: (rows: readonly StatRow[]) => Promise<void>
  /** Reads what is pending. Called once a minute; without it, no backlogs are counted. */
  backlogs?: () => Promise<Backlogs>
  wallMs: () => number
  flushEveryMs?: number
}

export interface Backlogs {
  ledger: readonly Pick<LedgerRow, 'destinationId' | 'pending'>[]
  oldest: readonly OldestPending[]
}

const NOWHERE: Routing = { shipments: [], skips: [] }
const FLUSH_EVERY_MS = 5_000
const MINUTE_MS = 60_000
/** While the store is unavailable, rows accumulate. Above this number, the oldest are dropped. */
const MAX_ROWS = 20_000
/** Takes about 10 ms of a commit that other requests wait for. */
const ROWS_AT_ONCE = 200

/** Its number fields have the names under which they are stored. */
class SourceMinute {
  accepted = 0
  duplicates = 0
  suppressed = 0
  quarantined = 0
  readonly rejected = new Map<string, number>()
  readonly warned = new Map<string, number>()
  readonly skipped = new Map<string, number>()

  counts(): StatCounts {
    const counts = fieldCounts(this)
    for (const [code, count] of this.rejected) put(counts, rejectedName(code), count)
    for (const [code, count] of this.warned) put(counts, warningName(code), count)
    for (const [reason, count] of this.skipped) put(counts, skippedName(reason), count)
    return counts
  }
}

/** Likewise. */
class DestinationMinute {
  owed = 0
  attempts = 0
  delivered = 0
  failed = 0
  expired = 0
  cancelled = 0
  retried = 0
  systemFailed = 0
  systemExpired = 0
  keyless = 0
  readonly from = new Map<string, number>()
  readonly latency = new Uint32Array(LATENCY_BUCKETS)

  counts(): StatCounts {
    const counts = fieldCounts(this)
    for (const [sourceId, count] of this.from) put(counts, fromName(sourceId), count)
    for (const [bucket, count] of this.latency.entries()) put(counts, latencyName(bucket), count)
    return counts
  }
}

export class Stats implements Watcher {
  readonly #options: StatsOptions
  readonly #timer: NodeJS.Timeout
  #minuteMs = 0
  /** The minute whose backlogs are noted. */
  #backlogsAtMs = Number.NaN
  /** By source id. Rejections without a known source are counted under the empty string. */
  #sources = new Map<string, SourceMinute>()
  #destinations = new Map<string, DestinationMinute>()
  /** Rows that are not stored yet, by minute, kind and subject; the oldest first. */
  readonly #rows = new Map<string, StatRow & { counts: StatCounts }>()
  #flushing: Promise<void> = Promise.resolve()

  constructor(options: StatsOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.flush(), options.flushEveryMs ?? FLUSH_EVERY_MS)
    this.#timer.unref()
  }

  accepted({ sourceId, messages, duplicates, repeated, routing = NOWHERE, quarantined = [], keyless = [] }: AcceptedEvent): void {
    const own = this.#source(sourceId)
    own.accepted += messages - duplicates
    own.duplicates += duplicates
    const held = repeated.length === 0 ? quarantined : quarantined.filter(({ index }) => !repeated.includes(index))
    own.quarantined += held.length
    // Neither duplicates nor messages in quarantine are sent.
    const unsent = new Set(repeated)
    for (const { index } of held) unsent.add(index)
    if (unsent.size < messages) this.#route(sourceId, own, routing, messages, unsent)
    for (const { destinationId, messages: count } of keyless) this.#destination(destinationId).keyless += count
  }

  #route(sourceId: string, { skipped }: SourceMinute, { shipments, skips }: Routing, messages: number, unsent: ReadonlySet<number>): void {
    const countOf = (indexes: readonly number[] | null): number => {
      if (indexes === null) return messages - unsent.size
      return unsent.size === 0 ? indexes.length : indexes.filter((index) => !unsent.has(index)).length
    }
    for (const { destinationId, indexes } of shipments) {
      const count = countOf(indexes)
      if (count === 0) continue
      const own = this.#destination(destinationId)
      own.owed += count
      add(own.from, sourceId, count)
    }
    for (const { reason, indexes } of skips) add(skipped, reason, countOf(indexes))
  }

  rejected({ sourceId, code, messages }: RejectedEvent): void {
    add(this.#source(sourceId ?? '').rejected, code, messages)
  }

  suppressed({ sourceId, messages }: SuppressedEvent): void {
    this.#source(sourceId).suppressed += messages
  }

  warned({ sourceId, code, messages }: WarnedEvent): void {
    add(this.#source(sourceId).warned, code, messages)
  }

  attempted({ destination, outcome }: AttemptEvent): void {
    const own = this.#destination(destination.id)
    own.attempts++
    // How quickly a connection is refused says nothing about the receiver.
    if (outcome.verdict !== 'success' && outcome.status === null) return
    const bucket = latencyBucket(outcome.timings.totalMs)
    own.latency[bucket] = (own.latency[bucket] as number) + 1
  }

  settled({ destination, delivered, failed, expired, cancelled, retried, system }: SettledEvent): void {
    const own = this.#destination(destination.id)
    own.delivered += delivered
    own.failed += failed
    own.expired += expired
    own.cancelled += cancelled
    own.retried += retried
    if (system === undefined) return
    own.systemFailed += system.failed
    own.systemExpired += system.expired
  }

  /** Resolves when everything counted so far is stored, or when storing it has failed for now. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write())
    return this.#flushing
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  #source(id: string): SourceMinute {
    this.#startMinute()
    return this.#sources.get(id) ?? added(this.#sources, id, new SourceMinute())
  }

  #destination(id: string): DestinationMinute {
    this.#startMinute()
    return this.#destinations.get(id) ?? added(this.#destinations, id, new DestinationMinute())
  }

  #startMinute(): void {
    const nowMs = this.#options.wallMs()
    if (nowMs >= this.#minuteMs && nowMs < this.#minuteMs + MINUTE_MS) return
    this.#collectRows()
    this.#minuteMs = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS
  }

  /** Converts the counts of the current minute to rows. */
  #collectRows(): void {
    const all: StatCounts = {}
    for (const [id, minute] of this.#sources) {
      const counts = minute.counts()
      addSubject(all, counts)
      if (id !== '') this.#add('source', id, counts)
    }
    for (const [id, minute] of this.#destinations) {
      const counts = minute.counts()
      addSubject(all, counts)
      this.#add('destination', id, counts)
    }
    this.#add('all', '', all)
    this.#sources = new Map()
    this.#destinations = new Map()
  }

  /** Notes the backlogs once in each minute. Every node does, and they count once: the largest is kept. */
  async #collectBacklogs(): Promise<void> {
    const minuteMs = Math.floor(this.#options.wallMs() / MINUTE_MS) * MINUTE_MS
    if (this.#options.backlogs === undefined || this.#backlogsAtMs === minuteMs) return
    this.#backlogsAtMs = minuteMs
    const { ledger, oldest } = await this.#options.backlogs()
    const oldestMs = new Map(oldest.map(({ destinationId, atMs }) => [destinationId, atMs]))
    const all: StatCounts = {}
    for (const { destinationId, pending } of ledger) {
      if (pending === 0) continue
      const ageMs = Math.max(0, this.#options.wallMs() - (oldestMs.get(destinationId) ?? Number.POSITIVE_INFINITY))
      const counts: StatCounts = { [PENDING]: pending }
      put(counts, OLDEST_SECONDS, Math.round(ageMs / 1_000))
      addSubject(all, counts)
      this.#add('destination', destinationId, counts, minuteMs)
    }
    this.#add('all', '', all, minuteMs)
  }

  #add(kind: StatKind, subject: string, counts: StatCounts, atMs = this.#minuteMs): void {
    if (Object.keys(counts).length === 0) return
    this.#addRow(`${atMs} ${kind} ${subject}`, { kind, subject, atMs, counts })
    if (this.#rows.size > MAX_ROWS) this.#rows.delete(this.#rows.keys().next().value as string)
  }

  async #write(): Promise<void> {
    // If the store cannot be read now, the next minute has its backlogs again.
    await this.#collectBacklogs().catch(() => undefined)
    this.#collectRows()
    if (this.#rows.size === 0) return
    const given = [...this.#rows]
    this.#rows.clear()
    let stored = 0
    try {
      for (; stored < given.length; stored += ROWS_AT_ONCE) {
        await this.#options.add(given.slice(stored, stored + ROWS_AT_ONCE).map(([, row]) => row))
      }
    } catch {
      const since = [...this.#rows]
      this.#rows.clear()
      for (const [key, row] of [...given.slice(stored), ...since]) this.#addRow(key, row)
    }
  }

  #addRow(key: string, row: StatRow & { counts: StatCounts }): void {
    const before = this.#rows.get(key)
    if (before === undefined) this.#rows.set(key, row)
    else addCounts(before.counts, row.counts)
  }
}

function add(counts: Map<string, number>, name: string, count: number): void {
  if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count)
}

function added<Value>(map: Map<string, Value>, id: string, value: Value): Value {
  map.set(id, value)
  return value
}

function fieldCounts(minute: object): StatCounts {
  const counts: StatCounts = {}
  for (const [name, count] of Object.entries(minute)) if (typeof count === 'number') put(counts, name, count)
  return counts
}

function put(counts: StatCounts, name: string, count: number): void {
  if (count > 0) counts[name] = count
}
