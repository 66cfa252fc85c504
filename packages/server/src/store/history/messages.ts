// Reads messages: lists, newest first, and one message by its id or its messageId. Each has its deliveries, and the destinations that it was not
// sent to, with the reason.

import { FINGERPRINT_WORDS } from '../encoding/fingerprint.ts'
import { groupBy } from '../encoding/group-by.ts'
import { quarantineOf } from '../encoding/quarantine-routes.ts'
import { candidates, fingerprintAt, indexOfFingerprint, indexOfKey } from '../encoding/segment-keys.ts'
import { owedIndexes, type Routes } from '../encoding/stored-parts.ts'
import type { FilterRule, MessageFilter, MessageTrail, Page, PageRequest, RowId, SkipReason, StoredMessage } from '../store.ts'
import type { RowAndIndex } from './delivery-ids.ts'
import { matches, withOnly } from './message-content.ts'
import { deliveryStates } from './message-lists/delivery-states.ts'
import type { FoundKey, MessageRows, RepeatRow } from './message-rows.ts'
import { firstRow, isWithin, lastRow, ROWS_PER_PAGE, rowCursorOf, steps } from './paging.ts'
import { type ReadSegment, readSegment, readSegments, type SegmentHead, type SegmentRow, segmentsOf, userHashes } from './segment-rows.ts'

/** The maximum size of the bodies that one page reads: about 100 ms of parsing. */
const BYTES_PER_PAGE = 8 * 1024 * 1024
/** The maximum number of messages with one messageId. They are of different sources, or some days apart. */
const MAX_TRAILS = 20
/** The number of rows that are read at once with their keys, which may be 60 KB each. */
const STEP_WITH_KEYS = 200
/** Greater than every index in a segment. */
const LAST_INDEX = Number.MAX_SAFE_INTEGER

/** A message and the segment it is in. */
interface Found<Id extends RowId> {
  segment: ReadSegment<Id>
  index: number
}

type Start<Id extends RowId> = readonly [seq: Id, index: number]

export async function listMessages<Id extends RowId>(
  rows: MessageRows<Id>,
  filter: MessageFilter,
  { limit, cursor }: PageRequest,
): Promise<Page<StoredMessage>> {
  const start = rowCursorOf(rows.order, 'm', cursor, [lastRow(rows.order, filter), LAST_INDEX] as const)
  const sources = await rowsOfSources(rows, filter)
  if (sources?.size === 0) return { data: [], next: null }
  const found =
    filter.messageId === undefined
      ? await walkMessages(rows, filter, sources, start, limit)
      : await listFound(rows, filter, filter.messageId, start, limit)
  const data = await withStates(rows, found.data, await described(rows, found.data))
  const { next, reachedMs } = found
  return reachedMs === undefined ? { data, next } : { data, next, reachedMs }
}

/** Adds the state of each delivery. */
async function withStates<Id extends RowId>(
  rows: MessageRows<Id>,
  found: readonly Found<Id>[],
  messages: StoredMessage[],
): Promise<StoredMessage[]> {
  const plannedOf = new Map<string, number>()
  for (const { count, absent, routes } of new Map(found.map(({ segment }) => [segment.seq, segment])).values()) {
    for (const [, origin, indexes] of (JSON.parse(routes) as Routes<Id>).s) {
      plannedOf.set(String(origin), owedIndexes(indexes, count, absent).length)
    }
  }
  const deliveries = messages.flatMap((message) => message.deliveries)
  const places = deliveries.map(({ id }) => {
    const { row, index } = rows.parseId(id) as RowAndIndex<Id>
    return { origin: row, index, planned: plannedOf.get(String(row)) ?? null }
  })
  const states = await deliveryStates(rows, places)
  for (const [at, delivery] of deliveries.entries()) Object.assign(delivery, states[at] ?? { state: null, reason: null })
  return messages
}

/** The row ids of the sources that the filter names. Undefined: all sources. */
async function rowsOfSources<Id extends RowId>(
  rows: Pick<MessageRows<Id>, 'source'>,
  { sourceId, sourceIds }: Pick<MessageFilter, 'sourceId' | 'sourceIds'>,
): Promise<ReadonlySet<Id> | undefined> {
  if (sourceId === undefined && sourceIds === undefined) return undefined
  const wanted = sourceId === undefined ? (sourceIds ?? []) : (sourceIds ?? [sourceId]).filter((id) => id === sourceId)
  const found = await Promise.all(wanted.map(async (id) => rows.source(id)))
  return new Set(found.filter((num) => num !== undefined))
}

export async function readMessage<Id extends RowId>(
  rows: MessageRows<Id>,
  id: string,
  sourceIds?: readonly string[],
): Promise<StoredMessage | undefined> {
  const parsed = rows.parseId(id)
  const segment = parsed && (await readOwn(rows, parsed, sourceIds))
  if (segment?.content.items[parsed?.index ?? -1]) return (await described(rows, [{ segment, index: parsed?.index as number }]))[0]
  for await (const found of places(rows, await findOwn(rows, id, sourceIds), id)) return (await described(rows, [found]))[0]
  return undefined
}

export async function messageTrails<Id extends RowId>(
  rows: MessageRows<Id>,
  id: string,
  sourceIds?: readonly string[],
): Promise<MessageTrail[]> {
  const parsed = rows.parseId(id)
  const segment = parsed && (await readOwn(rows, parsed, sourceIds))
  const found: Found<Id>[] = segment && parsed.index < segment.count ? [{ segment, index: parsed.index }] : []
  // Only the key remains of a purged message. It is almost certain that no other messageId has the same key.
  const keys = await findOwn(rows, id, sourceIds)
  for await (const place of keyPlaces(rows, keys.slice(0, MAX_TRAILS))) found.push(place)
  const seen = new Set<string>()
  const unique = found
    .filter(({ segment: { seq }, index }) => !seen.has(`${seq}-${index}`) && seen.add(`${seq}-${index}`))
    .filter(
      ({ segment: { content, absent, routes }, index }) => content.items[index] !== null || !(absent.includes(index) || isTrimmed(routes)),
    )
  const messages = await described(rows, unique)
  const repeats = await rows.repeats(unique.map(({ segment: { seq } }) => seq))
  return messages.map((message, at) => {
    const { segment: of, index } = unique[at] as Found<Id>
    const own = repeats.filter(({ segment: repeated }) => repeated === of.seq)
    return Object.assign(message, { repeats: repeatsIn(own, fingerprintAt(of.keys, index)) })
  })
}

async function walkMessages<Id extends RowId>(
  rows: MessageRows<Id>,
  filter: MessageFilter,
  sources: ReadonlySet<Id> | undefined,
  start: Start<Id>,
  limit: number,
): Promise<Page<Found<Id>>> {
  const { order } = rows
  const { userId } = filter
  const hashes = userId === undefined ? undefined : await userHashes(rows, userId)
  const walked = steps<SegmentHead<Id>, Id>(
    start[0],
    ({ seq }) => order.before(seq),
    (from, count) => rows.newest(hashes !== undefined, firstRow(order, filter), from, count),
    hashes && STEP_WITH_KEYS,
  )
  const data: Found<Id>[] = []
  const next = (seq: Id, index: number): Page<Found<Id>> => {
    const page = { data, next: JSON.stringify(['m', seq, index]) }
    return data.length === limit ? page : { ...page, reachedMs: order.msOf(seq) }
  }
  let seen = 0
  let bytesRead = 0
  for await (const step of walked) {
    if (seen >= ROWS_PER_PAGE) return next((step[0] as SegmentHead<Id>).seq, LAST_INDEX)
    seen += step.length
    const possible = new Map<Id, Set<number> | undefined>()
    for (const { seq, source: from, receivedAtMs, keys } of step) {
      if (sources?.has(from) === false || !isWithin(order, receivedAtMs, filter)) continue
      const indexes = hashes && keys && candidates(keys, new Set([hashes.get(from) ?? 0]))
      if (indexes?.length !== 0) possible.set(seq, indexes && new Set(indexes))
    }
    for await (const segment of readSegments(rows, [...possible.keys()], ({ seq }) => possible.get(seq))) {
      const { seq, content, bytes } = segment
      if (bytesRead > BYTES_PER_PAGE) return next(seq, LAST_INDEX)
      bytesRead += bytes
      const last = content.items.length - 1
      for (let index = seq === start[0] ? Math.min(start[1], last) : last; index >= 0; index--) {
        const item = content.items[index]
        if (!item || possible.get(seq)?.has(index) === false || !matches(item, filter)) continue
        if (data.length === limit) return next(seq, index)
        data.push(alone({ segment, index }))
      }
    }
  }
  return { data, next: null }
}

/** Lists the messages with a messageId, which are found by their keys. */
async function listFound<Id extends RowId>(
  rows: MessageRows<Id>,
  filter: MessageFilter,
  messageId: string,
  start: Start<Id>,
  limit: number,
): Promise<Page<Found<Id>>> {
  const end = firstRow(rows.order, filter)
  const keys = (await findOwn(rows, messageId, filter.sourceIds)).filter(({ segment }) => segment <= start[0] && segment >= end)
  const data: Found<Id>[] = []
  for await (const place of places(rows, keys, messageId)) {
    const { segment, index } = place
    const { sourceId = segment.sourceId } = filter
    if (segment.sourceId !== sourceId || !isWithin(rows.order, segment.receivedAtMs, filter)) continue
    if (!matches(segment.content.items[index] ?? {}, filter)) continue
    if (data.length === limit) return { data, next: JSON.stringify(['m', segment.seq, index]) }
    data.push(alone(place))
  }
  return { data, next: null }
}

/** Undefined if the segment is of another source than these. */
async function readOwn<Id extends RowId>(
  rows: MessageRows<Id>,
  { row, index }: RowAndIndex<Id>,
  sourceIds: readonly string[] | undefined,
): Promise<ReadSegment<Id> | undefined> {
  const [own] = await segmentsOf(rows, [row], sourceIds)
  return own === undefined ? undefined : readSegment(rows, own, [index])
}

/** The segments of these sources that may have the messageId, newest first. */
async function findOwn<Id extends RowId>(
  rows: MessageRows<Id>,
  messageId: string,
  sourceIds: readonly string[] | undefined,
): Promise<readonly FoundKey<Id>[]> {
  const keys = await rows.find(messageId)
  const own = new Set(
    await segmentsOf(
      rows,
      keys.map(({ segment }) => segment),
      sourceIds,
    ),
  )
  return keys.filter(({ segment }) => own.has(segment))
}

/** Drops the other messages of the segment from memory, because they may be large. */
function alone<Id extends RowId>({ segment, index }: Found<Id>): Found<Id> {
  return { segment: { ...segment, content: withOnly(segment.content, [index]), body: new Uint8Array() }, index }
}

/** In the order of the keys. */
async function* keyPlaces<Id extends RowId>(rows: MessageRows<Id>, keys: readonly FoundKey<Id>[]): AsyncGenerator<Found<Id>> {
  const fingerprints = new Map(keys.map(({ segment, fingerprint }) => [segment, fingerprint]))
  const indexIn = ({ seq, keys: own }: Pick<SegmentRow<Id>, 'seq' | 'keys'>) => indexOfKey(own, fingerprints.get(seq) as Uint32Array)
  for await (const segment of readSegments(rows, [...fingerprints.keys()], (row) => [indexIn(row)])) {
    const index = indexIn(segment)
    if (index !== -1) yield { segment, index }
  }
}

/** Compares the messageId itself, because a fingerprint is only almost certain. */
async function* places<Id extends RowId>(
  rows: MessageRows<Id>,
  keys: readonly FoundKey<Id>[],
  messageId: string,
): AsyncGenerator<Found<Id>> {
  for await (const found of keyPlaces(rows, keys)) {
    if (found.segment.content.items[found.index]?.['messageId'] === messageId) yield found
  }
}

async function described<Id extends RowId>(rows: MessageRows<Id>, found: readonly Found<Id>[]): Promise<StoredMessage[]> {
  if (found.length === 0) return []
  const replays = await rows.replays(found.map(({ segment: { seq }, index }) => ({ segment: seq, index })))
  const replaysOf = groupBy(replays, ({ at }) => at)
  // Parsed once for all messages of a segment, because routes list thousands of indexes for each destination.
  const routes = new Map(found.map(({ segment }) => [segment.seq, segment.routes]))
  const routesOf = new Map(Array.from(routes, ([seq, text]) => [seq, JSON.parse(text) as Routes<Id>]))
  const planned = [...routesOf.values()].flatMap(({ s, k = [] }) =>
    [...s, ...k].map(([destination]) => destination).filter((num) => !isNone(num)),
  )
  const idOf = await rows.destinationIds([...planned, ...replays.map(({ destination }) => destination)])
  return found.map(({ segment: { seq, content }, index }, at) => {
    const routing = routesOf.get(seq) as Routes<Id>
    const { s, k = [] } = routing
    const quarantine = quarantineOf(routing, index)
    const isPurged = content.items[index] == null
    const has = ([, , indexes]: readonly [unknown, unknown, readonly number[] | 0, ...unknown[]]): boolean =>
      indexes === 0 || indexes.includes(index)
    const owed = [...s.filter(has).map(([destination, origin]) => ({ destination, origin })), ...(replaysOf.get(at) ?? [])]
    return {
      id: `${seq}-${index}`,
      segment: seq,
      index,
      content: withOnly(content, [index]),
      deliveries: owed.map(({ destination, origin }) => ({ id: `${origin}-${index}`, destinationId: idOf(destination) })),
      skips: k.filter(has).map(([destination, stored]) => {
        const [reason, rule] = stored.split(' ') as [SkipReason, FilterRule?]
        const destinationId = isNone(destination) ? null : idOf(destination)
        return rule === undefined ? { destinationId, reason } : { destinationId, reason, rule }
      }),
      // A message that was purged is no longer in quarantine.
      ...(quarantine && { quarantine: quarantine.state === 'held' && isPurged ? { state: 'deleted', atMs: null } : quarantine }),
    }
  })
}

/** Whether the messages that are not in quarantine were dropped because of their age. */
function isTrimmed(routes: string): boolean {
  return (JSON.parse(routes) as Routes).t === 1
}

function isNone(destination: RowId): boolean {
  return String(destination) === '0'
}

/** How often a message was sent again. Each row counts one set of messages that were sent again together. Returns null if it was never sent again. */
function repeatsIn(rows: Iterable<RepeatRow>, fingerprint: Uint32Array): { count: number; lastAtMs: number } | null {
  let count = 0
  let lastAtMs = 0
  for (const row of rows) {
    const times = occurrences(row.fingerprints, fingerprint)
    if (times === 0) continue
    count += row.count * times
    lastAtMs = Math.max(lastAtMs, row.last_at)
  }
  return count === 0 ? null : { count, lastAtMs }
}

/** A call may contain the same message more than once. */
function occurrences(fingerprints: Uint8Array, fingerprint: Uint32Array): number {
  const words = new Uint32Array(new Uint8Array(fingerprints).buffer)
  const next = (from: number): number => indexOfFingerprint(words, fingerprint, FINGERPRINT_WORDS, from)
  let times = 0
  for (let at = next(0); at !== -1; at = next(at + 1)) times++
  return times
}
