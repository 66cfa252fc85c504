// The watcher behind the event catalogue. Accepted messages are counted in memory, in a later turn of the event loop than their acknowledgement, and
// written to the store's documents every ten seconds and at shutdown. If a write fails, its counts are written again later. After a
// crash, the counts since the last write are missing from the event catalogue, and only there. It stores names, counts and times, and no values of messages.

import type { AcceptedEvent } from '../../ingest/events.ts'
import type { Store, StoredDocument } from '../../store/store.ts'
import type { Watcher } from '../events/events.ts'
import {
  addToCounts,
  addToProperties,
  EVENT_COUNTS,
  EVENT_PROPERTIES,
  type EventCounts,
  type EventDelta,
  type EventProperties,
  eventKey,
  eventKeyPrefix,
  FORGET_AFTER_MS,
  HOUR_MS,
  MAX_EVENTS_PER_SOURCE,
  otherEventsKey,
} from './event-documents.ts'
import { EventTallies, type TallyOptions } from './event-tallies.ts'

export interface EventCatalogOptions extends TallyOptions {
  store: Pick<Store, 'documents' | 'configuration' | 'onConfiguration'>
  onError: (error: unknown) => void
  wallMs: () => number
  flushEveryMs?: number
  maxEventsPerSource?: number
  closeWithinMs?: number
}

const FLUSH_EVERY_MS = 10_000
/** After a write of many documents, the next one is later: this time for each. So writing takes at most about a hundredth of the time. */
const PAUSE_PER_DOCUMENT_MS = 10
const DOCUMENTS_AT_ONCE = 100
const RECOUNT_PAGE = 500
/** When somebody asks for the event catalogue, up to this many documents are written before the answer. */
const MAX_REFRESHED = 500
/** Closing the service has its own limit. With thousands of new events and a slow store, the rest is not written. */
const CLOSE_WITHIN_MS = 2_000

type Change = Pick<StoredDocument, 'atMs' | 'doc'>

export class EventCatalog implements Watcher {
  readonly #options: EventCatalogOptions
  readonly #tallies: EventTallies
  readonly #maxEvents: number
  #waiting: AcceptedEvent[] = []
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<unknown> = Promise.resolve()
  #forgottenAtMs = Number.NEGATIVE_INFINITY
  /** When the events of a full source were last counted, by source. */
  readonly #recountedAtMs = new Map<string, number>()
  /** How many events the write in progress has. */
  #writing = 0
  #closed = false
  /** By performance.now(). */
  #endAtMs = Number.POSITIVE_INFINITY

  constructor(options: EventCatalogOptions) {
    this.#options = options
    this.#tallies = new EventTallies(options)
    this.#maxEvents = options.maxEventsPerSource ?? MAX_EVENTS_PER_SOURCE
    this.#schedule(0)
    const { store } = options
    let sources = store.configuration().sources
    store.onConfiguration((changed) => {
      const deleted = [...sources.keys()].filter((id) => !changed.sources.has(id))
      sources = changed.sources
      if (deleted.length > 0) this.#flushing = this.#flushing.then(() => this.#drop(deleted))
    })
  }

  accepted(event: AcceptedEvent): void {
    if (this.#waiting.push(event) === 1) setImmediate(() => this.#count())
  }

  /** Resolves when everything that was counted so far is stored, or when storing it has failed for now. Returns the number of events written. */
  flush(): Promise<number> {
    const flushed = this.#flushing.then(() => this.#write())
    this.#flushing = flushed
    return flushed
  }

  /** Like flush, but does nothing if there is so much to write that it should wait for its time. */
  async refresh(): Promise<void> {
    if (this.#tallies.size + this.#writing <= MAX_REFRESHED) await this.flush()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#endAtMs = performance.now() + (this.#options.closeWithinMs ?? CLOSE_WITHIN_MS)
    clearTimeout(this.#timer)
    await this.flush()
  }

  #schedule(written: number): void {
    if (this.#closed) return
    const { flushEveryMs = FLUSH_EVERY_MS } = this.#options
    this.#timer = setTimeout(
      () => void this.flush().then((count) => this.#schedule(count)),
      Math.max(flushEveryMs, written * PAUSE_PER_DOCUMENT_MS),
    )
    this.#timer.unref()
  }

  #count(): void {
    const events = this.#waiting
    this.#waiting = []
    for (const event of events) {
      try {
        this.#tallies.add(event)
      } catch (error) {
        // Nothing else would catch it here, and a bug in counting must not end the process.
        this.#options.onError(error)
      }
    }
  }

  /** Does not reject: its errors are reported. */
  async #write(): Promise<number> {
    this.#count()
    const { store, onError, wallMs } = this.#options
    const { sources } = store.configuration()
    const deltas = this.#tallies.take().filter(({ sourceId }) => sources.has(sourceId))
    this.#writing = deltas.length
    let written = 0
    try {
      for (; written < deltas.length && performance.now() < this.#endAtMs; written += DOCUMENTS_AT_ONCE)
        await this.#writeSome(deltas.slice(written, written + DOCUMENTS_AT_ONCE))
      if (!this.#closed && wallMs() - this.#forgottenAtMs >= HOUR_MS) await this.#forget()
    } catch (error) {
      this.#tallies.putBack(deltas.slice(written))
      onError(error)
    }
    this.#writing = 0
    return deltas.length
  }

  async #writeSome(deltas: readonly EventDelta[]): Promise<void> {
    const { store, wallMs } = this.#options
    const sourceIds = [...new Set(deltas.map(({ sourceId }) => sourceId))]
    const byKey = new Map(
      deltas.map((delta) => [
        delta.type === null ? otherEventsKey(delta.sourceId) : eventKey(delta.sourceId, delta.type, delta.event),
        delta,
      ]),
    )
    const kept = new Set<string>()
    const full = new Set<string>()
    await store.documents.update(EVENT_COUNTS, [...new Set([...sourceIds.map(otherEventsKey), ...byKey.keys()])], (stored) => {
      kept.clear()
      const changes = new Map<string, Change>()
      const others = new Map(sourceIds.map((id) => [id, stored.get(otherEventsKey(id))?.doc as EventCounts | undefined]))
      for (const [key, delta] of byKey) {
        const { sourceId, type } = delta
        const before = stored.get(key)?.doc as EventCounts | undefined
        const other = others.get(sourceId)
        const events = other?.events ?? 0
        if (type !== null && before === undefined && events >= this.#maxEvents) full.add(sourceId)
        if (type === null || (before === undefined && events >= this.#maxEvents)) {
          others.set(sourceId, addToCounts(other, { ...delta, type: null, event: null }))
          continue
        }
        if (before === undefined) others.set(sourceId, { ...(other ?? noCounts(delta)), events: events + 1 })
        const doc = addToCounts(before, delta)
        changes.set(key, { doc, atMs: doc.lastMs })
        kept.add(key)
      }
      // Its time is that of the write, so that it is not dropped before the events that it counts.
      for (const [id, doc] of others) if (doc !== undefined) changes.set(otherEventsKey(id), { doc, atMs: wallMs() })
      return changes
    })
    for (const sourceId of full) await this.#recount(sourceId).catch(this.#options.onError)
    const examined = [...byKey].filter(([key, { examined }]) => kept.has(key) && examined > 0)
    if (examined.length === 0) return
    // A failure here only loses part of a sample.
    await store.documents
      .update(
        EVENT_PROPERTIES,
        examined.map(([key]) => key),
        (stored) =>
          new Map(
            examined.map(([key, delta]) => {
              const doc = addToProperties(stored.get(key)?.doc as EventProperties | undefined, delta)
              return [key, { doc, atMs: delta.lastMs }]
            }),
          ),
      )
      .catch(this.#options.onError)
  }

  /** Events that were dropped make room for new ones. At most once an hour for each full source. */
  async #recount(sourceId: string): Promise<void> {
    const { store, wallMs } = this.#options
    if (wallMs() - (this.#recountedAtMs.get(sourceId) ?? Number.NEGATIVE_INFINITY) < HOUR_MS) return
    this.#recountedAtMs.set(sourceId, wallMs())
    const otherKey = otherEventsKey(sourceId)
    let events = 0
    for (let after: StoredDocument | undefined, isMore = true; isMore; ) {
      const page = await store.documents.list(EVENT_COUNTS, { prefix: eventKeyPrefix(sourceId), order: 'key', after, limit: RECOUNT_PAGE })
      events += page.filter(({ key }) => key !== otherKey).length
      after = page.at(-1)
      isMore = page.length === RECOUNT_PAGE
    }
    await store.documents.update(EVENT_COUNTS, [otherKey], (stored) => {
      const other = stored.get(otherKey)
      return new Map(other === undefined ? [] : [[otherKey, { doc: { ...other.doc, events }, atMs: other.atMs }]])
    })
  }

  /** Every node does this when it learns that the sources were deleted, and writes nothing about them from then on. */
  async #drop(sourceIds: readonly string[]): Promise<void> {
    const { store, onError } = this.#options
    for (const prefix of sourceIds.map(eventKeyPrefix))
      for (const kind of [EVENT_COUNTS, EVENT_PROPERTIES]) await store.documents.drop(kind, { prefix }).catch(onError)
  }

  async #forget(): Promise<void> {
    const { store, wallMs } = this.#options
    const beforeMs = wallMs() - FORGET_AFTER_MS
    this.#forgottenAtMs = wallMs()
    for (const kind of [EVENT_COUNTS, EVENT_PROPERTIES]) await store.documents.drop(kind, { beforeMs })
  }
}

/** The document of other events, before there are any. */
function noCounts({ firstMs, lastMs }: EventDelta): EventCounts {
  const none = { last: 0, counts: [] }
  return { type: null, event: null, firstMs, lastMs, total: 0, hours: none, days: none }
}
