// Counts accepted messages by source and event, in memory, until they are written to the store. Every message is counted; properties are examined
// in a sample of them, because that is most of the work. Memory is bounded: what exceeds a limit is counted as other events, or not examined.
// Nothing here waits for anything.

import { isMessageType, type JsonObject } from '@switchyard/protocol'
import type { AcceptedEvent } from '../../ingest/events.ts'
import { type EventDelta, HOUR_MS, MAX_EVENT_NAME, MAX_PROPERTIES_PER_EVENT, MAX_PROPERTY_PATH, newTypeCounts } from './event-documents.ts'
import { eachProperty, valueType } from './event-properties.ts'

/** The most events of all sources that are held until the next write. */
const MAX_EVENTS = 20_000
/** The most properties of all events that are held until the next write: 10 MB, or 30 MB if all have long paths. */
const MAX_PROPERTIES = 50_000
/**
 * The first messages of an event since the last write are all examined, so that the shares of rare events are exact. Then the gaps grow by one message
 * on average: of 1,000 messages about 60 are examined, of 20,000 about 220. They are random, because regular gaps could always meet the same kind of message.
 */
const EXAMINED_FIRST = 20

export interface TallyOptions {
  random?: () => number
  maxEvents?: number
  maxProperties?: number
}

class Tally implements EventDelta {
  readonly sourceId: string
  readonly type: string | null
  readonly event: string | null
  firstMs: number
  lastMs: number
  readonly hours = new Map<number, number>()
  examined = 0
  readonly properties = new Map<string, number[]>()
  otherProperties = 0
  /** The count of `hour`, which is not in `hours` yet. */
  count = 0
  hour: number
  /** How many messages are counted before the next one is examined. */
  gap = 0

  constructor(sourceId: string, type: string | null, event: string | null, atMs: number, hour: number) {
    this.sourceId = sourceId
    this.type = type
    this.event = event
    this.firstMs = atMs
    this.lastMs = atMs
    this.hour = hour
  }

  add(atMs: number, hour: number): void {
    if (hour !== this.hour) this.endHour(hour)
    this.count++
    if (atMs > this.lastMs) this.lastMs = atMs
    else if (atMs < this.firstMs) this.firstMs = atMs
  }

  endHour(next: number): void {
    if (this.count > 0) this.hours.set(this.hour, (this.hours.get(this.hour) ?? 0) + this.count)
    this.hour = next
    this.count = 0
  }
}

interface SourceTallies {
  /** By the name of the event. */
  tracks: Map<string, Tally>
  /** Of the other types of messages. */
  types: Map<string, Tally>
  other: Tally | null
}

export class EventTallies {
  readonly #random: () => number
  readonly #maxEvents: number
  readonly #maxProperties: number
  #sources = new Map<string, SourceTallies>()
  #events = 0
  #properties = 0

  constructor({ random = Math.random, maxEvents = MAX_EVENTS, maxProperties = MAX_PROPERTIES }: TallyOptions = {}) {
    this.#random = random
    this.#maxEvents = maxEvents
    this.#maxProperties = maxProperties
  }

  /** The number of different events. */
  get size(): number {
    return this.#events
  }

  /** Whether further events would be counted as other events. */
  get isFull(): boolean {
    return this.#events >= this.#maxEvents
  }

  add({ sourceId, content: { items, receivedAtMs }, repeated }: Pick<AcceptedEvent, 'sourceId' | 'content' | 'repeated'>): void {
    const source = this.#source(sourceId)
    const hour = Math.floor(receivedAtMs / HOUR_MS)
    const duplicates = repeated.length === 0 ? null : new Set(repeated)
    for (let index = 0; index < items.length; index++) {
      const item = items[index]
      if (!item || duplicates?.has(index)) continue
      const type: unknown = item['type']
      const known = type === 'track' ? source.tracks.get(item['event'] as string) : source.types.get(type as string)
      const tally = known ?? this.#open(sourceId, source, item, receivedAtMs, hour)
      if (tally === null) continue
      tally.add(receivedAtMs, hour)
      if (tally.type !== null && tally.gap-- <= 0) this.#examine(tally, item)
    }
  }

  /** Returns everything that was counted since the last call, and starts anew. */
  take(): EventDelta[] {
    const taken: Tally[] = []
    for (const { tracks, types, other } of this.#sources.values()) {
      taken.push(...types.values(), ...tracks.values())
      if (other !== null) taken.push(other)
    }
    for (const tally of taken) tally.endHour(tally.hour)
    this.#sources = new Map()
    this.#events = 0
    this.#properties = 0
    return taken
  }

  /** Adds what could not be written, so that it is written next time. */
  putBack(deltas: readonly EventDelta[]): void {
    for (const { sourceId, type, event, firstMs, lastMs, hours, ...delta } of deltas) {
      const source = this.#source(sourceId)
      const item = type === null ? null : { type, event }
      const known = type === 'track' ? source.tracks.get(event as string) : source.types.get(type as string)
      const tally = known ?? (item === null ? this.#other(sourceId, source, lastMs, 0) : this.#open(sourceId, source, item, lastMs, 0))
      if (tally === null) continue
      tally.firstMs = Math.min(tally.firstMs, firstMs)
      tally.lastMs = Math.max(tally.lastMs, lastMs)
      for (const [hour, count] of hours) tally.hours.set(hour, (tally.hours.get(hour) ?? 0) + count)
      if (tally.type === null) continue
      tally.examined += delta.examined
      tally.otherProperties += delta.otherProperties
      for (const [path, counts] of delta.properties) {
        const sums = this.#property(tally, path)
        for (const [at, count] of counts.entries()) {
          if (sums === null) tally.otherProperties += count
          else sums[at] = (sums[at] as number) + count
        }
      }
    }
  }

  #source(id: string): SourceTallies {
    let source = this.#sources.get(id)
    if (source === undefined) {
      source = { tracks: new Map(), types: new Map(), other: null }
      this.#sources.set(id, source)
    }
    return source
  }

  /** Null for messages that the service makes itself. */
  #open(sourceId: string, source: SourceTallies, item: JsonObject, atMs: number, hour: number): Tally | null {
    const { type, event } = item
    if (!isMessageType(type)) return null
    const isTrack = type === 'track'
    if (this.isFull || (isTrack && (event as string).length > MAX_EVENT_NAME)) return this.#other(sourceId, source, atMs, hour)
    const tally = new Tally(sourceId, type, isTrack ? (event as string) : null, atMs, hour)
    if (isTrack) source.tracks.set(event as string, tally)
    else source.types.set(type, tally)
    this.#events++
    return tally
  }

  #other(sourceId: string, source: SourceTallies, atMs: number, hour: number): Tally {
    source.other ??= new Tally(sourceId, null, null, atMs, hour)
    return source.other
  }

  #examine(tally: Tally, item: JsonObject): void {
    if (this.#properties >= this.#maxProperties) return
    const beyond = ++tally.examined - EXAMINED_FIRST
    if (beyond >= 0) tally.gap = Math.floor(this.#random() * 2 * beyond)
    eachProperty(item, (path, value) => {
      const counts = this.#property(tally, path)
      if (counts === null) tally.otherProperties++
      else counts[valueType(value)]!++
    })
  }

  /** Null if there is no room for another property. */
  #property({ properties }: Tally, path: string): number[] | null {
    // First, because looking it up reads the whole path, and one long key is in the paths of everything inside it.
    if (path.length > MAX_PROPERTY_PATH) return null
    let counts = properties.get(path)
    if (counts !== undefined) return counts
    if (properties.size >= MAX_PROPERTIES_PER_EVENT || this.#properties >= this.#maxProperties) return null
    counts = newTypeCounts()
    properties.set(path, counts)
    this.#properties++
    return counts
  }
}
