// Counts per minute for GET /api/stats. They are added up in memory and written to the store every few seconds and at shutdown. If a
// write fails, the counts are written again later, so nothing is counted twice, and nothing is lost while the process lives. After
// a crash, the last seconds are missing from these statistics, but not from the ledger, which the store maintains itself.

import type { AttemptEvent, SettledEvent } from '../delivery/events/events.ts'
import type { AcceptedEvent, RejectedEvent, SuppressedEvent, WarnedEvent } from '../ingest/events.ts'
import {
  addCounts,
  LATENCY_BUCKETS,
  latencyBucket,
  latencyName,
  rejectedName,
  type StatCounts,
  warningName,
} from '../store/port/stat-counts.ts'
import type { StatKind, StatRow } from '../store/store.ts'
import type { Watcher } from './events/events.ts'

export interface StatsOptions {
  add: (rows: readonly StatRow[]) => Promise<void>
  wallMs: () => number
  flushEveryMs?: number
}

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
  readonly rejected = new Map<string, number>()
  readonly warned = new Map<string, number>()

  counts(): StatCounts {
    const counts = fieldCounts(this)
    for (const [code, count] of this.rejected) put(counts, rejectedName(code), count)
    for (const [code, count] of this.warned) put(counts, warningName(code), count)
    return counts
  }
}

/** Likewise. */
class DestinationMinute {
  attempts = 0
  delivered = 0
  failed = 0
  expired = 0
  cancelled = 0
  retried = 0
  systemFailed = 0
  systemExpired = 0
  readonly latency = new Uint32Array(LATENCY_BUCKETS)

  counts(): StatCounts {
    const counts = fieldCounts(this)
    for (const [bucket, count] of this.latency.entries()) put(counts, latencyName(bucket), count)
    return counts
  }
}

export class Stats implements Watcher {
  readonly #options: StatsOptions
  readonly #timer: NodeJS.Timeout
  #minuteMs = 0
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

  accepted({ sourceId, messages, duplicates }: AcceptedEvent): void {
    const own = this.#source(sourceId)
    own.accepted += messages - duplicates
    own.duplicates += duplicates
  }

  rejected({ sourceId, code, messages }: RejectedEvent): void {
    const { rejected } = this.#source(sourceId ?? '')
    rejected.set(code, (rejected.get(code) ?? 0) + messages)
  }

  suppressed({ sourceId, messages }: SuppressedEvent): void {
    this.#source(sourceId).suppressed += messages
  }

  warned({ sourceId, code, messages }: WarnedEvent): void {
    const { warned } = this.#source(sourceId)
    warned.set(code, (warned.get(code) ?? 0) + messages)
  }

  attempted({ destination, outcome }: AttemptEvent): void {
    const own = this.#destination(destination.id)
    const bucket = latencyBucket(outcome.timings.totalMs)
    own.attempts++
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
      addCounts(all, counts)
      if (id !== '') this.#add('source', id, counts)
    }
    for (const [id, minute] of this.#destinations) {
      const counts = minute.counts()
      addCounts(all, counts)
      this.#add('destination', id, counts)
    }
    this.#add('all', '', all)
    this.#sources = new Map()
    this.#destinations = new Map()
  }

  #add(kind: StatKind, subject: string, counts: StatCounts): void {
    if (Object.keys(counts).length === 0) return
    this.#addRow(`${this.#minuteMs} ${kind} ${subject}`, { kind, subject, atMs: this.#minuteMs, counts })
    if (this.#rows.size > MAX_ROWS) this.#rows.delete(this.#rows.keys().next().value as string)
  }

  async #write(): Promise<void> {
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
