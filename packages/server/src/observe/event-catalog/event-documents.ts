// The stored form of the event catalogue: two documents for each source and event, one with counts and one with properties. They hold names, counts and
// times, and no values of messages. Counts of several nodes are merged by addition. Every part has a limit, because names come from senders. Pure functions.

import { createHash } from 'node:crypto'
import { type JsonObject, ruleKey } from '@switchyard/protocol'
import { VALUE_TYPES } from './event-properties.ts'

/** The kinds of the documents. Both have the same keys. */
export const EVENT_COUNTS = 'event'
export const EVENT_PROPERTIES = 'event_properties'

export const MAX_EVENTS_PER_SOURCE = 10_000
export const MAX_PROPERTIES_PER_EVENT = 200
/** Messages with a longer event name are counted as other events. */
export const MAX_EVENT_NAME = 200
/** Properties with a longer path are counted as other properties. */
export const MAX_PROPERTY_PATH = 200

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS
export const HOURS_KEPT = 7 * 24
export const DAYS_KEPT = 90
/** Events and properties that did not occur for this long are dropped. */
export const FORGET_AFTER_MS = DAYS_KEPT * DAY_MS
/** When this many messages of an event were examined, the counts of its properties are halved. So shares describe recent messages. */
const MAX_EXAMINED = 10_000

/** What a node counted of one event since it last wrote to the store. */
export interface EventDelta {
  sourceId: string
  /** Null for messages that are counted as other events. */
  type: string | null
  /** Null unless the type is track. */
  event: string | null
  firstMs: number
  lastMs: number
  /** The number of messages, by hours since 1970. */
  hours: ReadonlyMap<number, number>
  /** The number of messages whose properties were examined. */
  examined: number
  /** How often each path had each of VALUE_TYPES. */
  properties: ReadonlyMap<string, readonly number[]>
  /** The number of values whose path is too long, or is one more than the limit. */
  otherProperties: number
}

/** Counts of consecutive hours or days. `counts[0]` belongs to `last`, `counts[1]` to the one before it. */
export interface CountWindow {
  /** In hours or days since 1970. */
  last: number
  counts: readonly number[]
}

export interface EventCounts extends JsonObject {
  type: string | null
  event: string | null
  firstMs: number
  lastMs: number
  total: number
  hours: CountWindow
  days: CountWindow
  /** Only in the document of other events: the number of events of the source that have their own document. */
  events?: number
}

/** The path, when it was first and last seen, and how often it had each of VALUE_TYPES. An array, because a name may be `__proto__`. */
export type StoredProperty = readonly [path: string, firstMs: number, lastMs: number, counts: readonly number[]]

export interface EventProperties extends JsonObject {
  examined: number
  properties: readonly StoredProperty[]
  /** See EventDelta.otherProperties. */
  other: number
}

/** All keys of a source begin with this. */
export function eventKeyPrefix(sourceId: string): string {
  return `${sourceId}.`
}

/** Also the id of the event in the API. The name is hashed, because it may be long and contain anything. */
export function eventKey(sourceId: string, type: string, event: string | null): string {
  const hash = createHash('sha256').update(ruleKey(type, event ?? undefined), 'utf16le')
  return eventKeyPrefix(sourceId) + hash.digest('base64url').slice(0, 22)
}

/** The key of the document for other events. */
export function otherEventsKey(sourceId: string): string {
  return `${eventKeyPrefix(sourceId)}other`
}

export function isOtherEvents(key: string): boolean {
  return key.endsWith('.other')
}

export function sourceOfKey(key: string): string {
  return key.slice(0, key.lastIndexOf('.'))
}

/** What documents of events and of violations have in common. */
export type Counted = Pick<EventCounts, 'firstMs' | 'lastMs' | 'total' | 'hours' | 'days'>

/** Adds what was counted by hour. */
export function addHours(
  stored: Counted | undefined,
  { firstMs, lastMs, hours }: Pick<EventDelta, 'firstMs' | 'lastMs' | 'hours'>,
): Counted {
  let {
    total,
    hours: byHour,
    days,
  }: Counted = stored ?? { firstMs, lastMs, total: 0, hours: { last: 0, counts: [] }, days: { last: 0, counts: [] } }
  for (const [hour, count] of hours) {
    total += count
    byHour = addToWindow(byHour, hour, count, HOURS_KEPT)
    days = addToWindow(days, Math.floor(hour / 24), count, DAYS_KEPT)
  }
  return {
    firstMs: Math.min(stored?.firstMs ?? firstMs, firstMs),
    lastMs: Math.max(stored?.lastMs ?? lastMs, lastMs),
    total,
    hours: byHour,
    days,
  }
}

export function addToCounts(stored: EventCounts | undefined, delta: EventDelta): EventCounts {
  return { ...stored, type: delta.type, event: delta.event, ...addHours(stored, delta) }
}

export function addToProperties(stored: EventProperties | undefined, delta: EventDelta): EventProperties {
  const { firstMs, lastMs } = delta
  const merged = new Map<string, StoredProperty>()
  for (const property of stored?.properties ?? []) if (property[2] >= lastMs - FORGET_AFTER_MS) merged.set(property[0], property)
  let other = (stored?.other ?? 0) + delta.otherProperties
  for (const [path, counts] of delta.properties) {
    const before = merged.get(path)
    if (before !== undefined) {
      const sums = before[3].map((count, type) => count + (counts[type] ?? 0))
      merged.set(path, [path, Math.min(before[1], firstMs), Math.max(before[2], lastMs), sums])
    } else if (merged.size < MAX_PROPERTIES_PER_EVENT) merged.set(path, [path, firstMs, lastMs, counts])
    else other += sum(counts)
  }
  const examined = (stored?.examined ?? 0) + delta.examined
  const properties = [...merged.values()]
  if (examined <= MAX_EXAMINED) return { examined, properties, other }
  return {
    examined: Math.ceil(examined / 2),
    properties: properties.map(([path, first, last, counts]) => [path, first, last, counts.map((count) => Math.ceil(count / 2))]),
    other: Math.ceil(other / 2),
  }
}

/** The counts up to `last`, oldest first. */
export function countsUntil(window: CountWindow, last: number, size: number): number[] {
  return Array.from({ length: size }, (_, at) => window.counts[window.last - (last - size + 1 + at)] ?? 0)
}

/** The sum of these counts, without making a list of them: lists of events are ordered by it. */
export function sumUntil({ last: newest, counts }: CountWindow, last: number, size: number): number {
  let total = 0
  for (let at = Math.max(0, newest - last); at < counts.length && newest - at > last - size; at++) total += counts[at] as number
  return total
}

export function newTypeCounts(): number[] {
  return VALUE_TYPES.map(() => 0)
}

export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

/** Adds to the counts of an hour or day. `size` is the number of hours or days that are kept. */
function addToWindow({ last, counts }: CountWindow, at: number, count: number, size: number): CountWindow {
  if (counts.length === 0) return { last: at, counts: [count] }
  const newest = Math.max(last, at)
  const moved = [...Array<number>(Math.min(newest - last, size)).fill(0), ...counts].slice(0, size)
  const index = newest - at
  if (index < size) {
    while (moved.length <= index) moved.push(0)
    moved[index] = (moved[index] as number) + count
  }
  while (moved.at(-1) === 0) moved.pop()
  return { last: newest, counts: moved }
}
