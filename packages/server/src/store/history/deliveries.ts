// Lists of deliveries: pending ones from the shipments, ended ones from the attempts and the failures. A new filter is added here, and to the
// statement of each adapter if it can narrow down the rows there.

import { type AttemptDoc, requestsOf } from '../encoding/attempt-doc.ts'
import { groupBy } from '../encoding/group-by.ts'
import { owedIndexes } from '../encoding/stored-parts.ts'
import type { DeliveryFilter, DeliveryRow, MessageFields, Page, PageRequest, RequestRecord, RowId, SegmentContent } from '../store.ts'
import type { ResolvedDelivery } from './delivery-ids.ts'
import type { AttemptRow, DeliveryRows, FailureRow, FoundDelivery, PendingRow, ReplayLinks } from './delivery-rows.ts'
import { messageFields, withOnly } from './message-content.ts'
import { type MessageMatcher, messageMatcher } from './message-matcher.ts'
import { firstRow, isWithin, lastRow, mayBeWithin, portions, ROWS_PER_PAGE, rowCursorOf, steps } from './paging.ts'
import { readSegments, type SegmentHead } from './segment-rows.ts'
import { waitsOf } from './waiting-for.ts'

/** The parameters of one page. */
interface Search<Id extends RowId> {
  rows: DeliveryRows<Id>
  filter: DeliveryFilter
  destination: Id | null
  matcher: MessageMatcher<Id> | undefined
}

type Place = readonly (number | string)[]

/** The rows of one table in the order of the list, and the deliveries in each row that match the filter. */
interface Walk<Id extends RowId, Row> {
  /** The first value of its cursors, which distinguishes the lists. */
  letter: string
  /** The place of the first row, and how many of its deliveries to skip. */
  start: Place
  steps: AsyncIterable<readonly Row[]>
  placeOf: (row: Row) => Place
  deliveriesOf: (row: Row) => FoundDelivery<Id>[]
}

const MAX_STEP_OF_ATTEMPTS = 500
/** Docs of attempts that are in memory at once, in bytes. */
const BYTES_AT_ONCE = 1024 * 1024
/** The number of parts of shipments whose segments are read at once. */
const PARTS_AT_ONCE = 2_000
/** The number of deliveries in memory at once if their messages have to be read. Few at first, because they may fill the page. */
const FIRST_DELIVERIES = 500
const MAX_DELIVERIES = 20_000
/** The cursor of the first page after the pending deliveries. */
const ENDED = JSON.stringify(['s'])

export async function listDeliveries<Id extends RowId>(
  rows: DeliveryRows<Id>,
  filter: DeliveryFilter,
  page: PageRequest,
): Promise<Page<DeliveryRow>> {
  const destination = filter.destinationId === undefined ? null : await rows.destination(filter.destinationId)
  if (destination === undefined) return { data: [], next: null }
  const search = { rows, filter, destination, matcher: await messageMatcher(rows, filter) }
  const found = await find(search, page)
  return { data: await described(rows, found.data), next: found.next }
}

async function find<Id extends RowId>(search: Search<Id>, page: PageRequest): Promise<Page<FoundDelivery<Id>>> {
  const { state, reason } = search.filter
  if ((state === 'pending' || state === 'delivered') && reason !== undefined) return { data: [], next: null }
  if (state === 'pending') return collect(search, pending(search, page.cursor), page.limit)
  if (state === 'delivered') return collect(search, settled(search, page.cursor), page.limit)
  if (state !== undefined || reason !== undefined) return collect(search, failures(search, page.cursor), page.limit)
  // Without a state, pending deliveries come first, then those that have ended.
  if (page.cursor?.startsWith('["s"') ?? false) return collect(search, settled(search, page.cursor), page.limit)
  const first = await collect(search, pending(search, page.cursor), page.limit)
  if (first.next !== null) return first
  if (first.data.length >= page.limit) return { data: first.data, next: ENDED }
  const then = await collect(search, settled(search, null), page.limit - first.data.length)
  return { data: [...first.data, ...then.data], next: then.next }
}

async function collect<Id extends RowId, Row>(
  { matcher }: Search<Id>,
  walk: Walk<Id, Row>,
  limit: number,
): Promise<Page<FoundDelivery<Id>>> {
  const { letter, start, placeOf } = walk
  const data: FoundDelivery<Id>[] = []
  const isStart = (place: Place): boolean => place.every((value, at) => value === start[at])
  // Skips deliveries of the previous page. They must not count against the limit again, or the page might make no progress.
  const skipOf = (row: Row): number => (isStart(placeOf(row)) ? (start.at(-1) as number) : 0)
  const opened = function* (rows: readonly Row[]) {
    for (const row of rows) yield { row, deliveries: walk.deliveriesOf(row) }
  }
  let seen = 0
  for await (const step of walk.steps) {
    const [first, longest] = matcher === undefined ? [1, 1] : [FIRST_DELIVERIES, MAX_DELIVERIES]
    for (const rows of portions(opened(step), ({ deliveries }) => deliveries.length, first, longest)) {
      await matcher?.load(rows.flatMap(({ row, deliveries }) => deliveries.slice(skipOf(row))))
      for (const { row, deliveries } of rows) {
        const next = (nth: number): Page<FoundDelivery<Id>> => ({ data, next: JSON.stringify([letter, ...placeOf(row), nth]) })
        if (++seen > ROWS_PER_PAGE) return next(0)
        for (let nth = skipOf(row); nth < deliveries.length; nth++) {
          const delivery = deliveries[nth] as FoundDelivery<Id>
          const isMatch = matcher === undefined || matcher.has(delivery)
          if (isMatch === false) continue
          if (isMatch === undefined || data.length === limit) return next(nth)
          data.push(delivery)
        }
      }
    }
  }
  return { data, next: null }
}

function pending<Id extends RowId>(
  { rows, filter, destination }: Search<Id>,
  cursor: string | null,
): Walk<Id, PendingRow<Id> & { facts: ReadonlyMap<Id, SegmentHead<Id>> }> {
  const { order } = rows
  const start = rowCursorOf(order, 'p', cursor, [...rows.firstPending(destination), 0])
  async function* withFacts() {
    for await (const step of rows.pending(destination, start.slice(0, -1), firstRow(order, filter))) {
      for (const some of portions(step, ({ parts }) => parts.length, PARTS_AT_ONCE)) {
        // Only for rows that may match the time range: a walk may pass a million others, whose segments are not needed.
        const segments = some.flatMap(({ parts }) =>
          parts.flatMap(([origin, segment]) => (mayBeWithin(order, origin, filter) ? [segment] : [])),
        )
        const facts = new Map((await rows.heads([...new Set(segments)], false)).map((each) => [each.seq, each]))
        yield some.map((row) => Object.assign(row, { facts }))
      }
    }
  }
  return {
    letter: 'p',
    start,
    steps: withFacts(),
    placeOf: ({ place }) => place,
    deliveriesOf: ({ destination: to, attempts, replay, dueAtMs, firstAttemptAtMs, parts, facts }) =>
      parts.flatMap(([origin, segment, stored, keys]) => {
        const about = facts.get(segment)
        // Without the segment, or if it is outside of the time range, the number of its messages is not known.
        if (!mayBeWithin(order, origin, filter) || (about === undefined && stored === 0)) return []
        // A replay was created when it was requested, and the delivery of a released message when it was released, not when the message was received.
        const createdMs = order.msOf(origin)
        const isLater = replay || (about !== undefined && createdMs - about.receivedAtMs > order.skewMs)
        if (!isWithin(order, isLater ? createdMs : (about?.receivedAtMs ?? createdMs), filter)) return []
        const atMs = attempts > 0 ? dueAtMs || null : null
        const pending = { state: 'pending', reason: null, attempts, replay, atMs, firstAttemptAtMs } as const
        const delivery = { origin, segment, destination: to, ...pending }
        const indexes = owedIndexes(stored, about?.count ?? 0, about?.absent ?? null)
        if (keys === undefined || stored === 0) return indexes.map((index) => Object.assign({ index }, delivery))
        return indexes.map((index) => Object.assign({ index, key: keys[stored.indexOf(index)] }, delivery))
      }),
  }
}

/** Reads the attempts, newest first. With the state `delivered`, only delivered deliveries, otherwise all that ended. */
function settled<Id extends RowId>(
  { rows, filter, destination }: Search<Id>,
  cursor: string | null,
): Walk<Id, AttemptRow<Id> & { doc: string | undefined }> {
  const { order } = rows
  const { state } = filter
  const start = rowCursorOf(order, 's', cursor === ENDED ? null : cursor, [lastRow(order, filter), 0] as const)
  const attempts = steps<AttemptRow<Id>, Id>(
    start[0],
    ({ id }) => order.before(id),
    (from, count) => rows.attempts(destination, state === 'delivered', firstRow(order, filter), from, count),
    MAX_STEP_OF_ATTEMPTS,
  )
  async function* withDocs() {
    for await (const step of attempts) {
      for (const some of portions(step, ({ bytes }) => bytes, BYTES_AT_ONCE)) {
        const ended = some.filter(({ bytes, atMs }) => bytes > 0 && isWithin(order, atMs, filter)).map(({ id }) => id)
        const docs = new Map((ended.length === 0 ? [] : await rows.docs(ended)).map(({ id, doc }) => [id, doc]))
        yield some.map((attempt) => Object.assign(attempt, { doc: docs.get(attempt.id) }))
      }
    }
  }
  return {
    letter: 's',
    start,
    steps: withDocs(),
    placeOf: ({ id }) => [id],
    deliveriesOf: ({ doc, ...attempt }) =>
      doc === undefined
        ? []
        : (JSON.parse(doc) as AttemptDoc).f
            .filter(([of]) => state === undefined || state === of)
            .flatMap(([of, reason, indexes]) => indexes.map((index) => ({ ...attempt, index, state: of, reason }))),
  }
}

function failures<Id extends RowId>({ rows, filter, destination }: Search<Id>, cursor: string | null): Walk<Id, FailureRow<Id>> {
  const { order } = rows
  const { state, reason } = filter
  const start = rowCursorOf(order, 'f', cursor, [lastRow(order, filter), 0] as const)
  return {
    letter: 'f',
    start,
    steps: steps<FailureRow<Id>, Id>(
      start[0],
      ({ id }) => order.before(id),
      (from, count) => rows.failures(destination, state, firstRow(order, filter), from, count),
    ),
    placeOf: ({ id }) => [id],
    deliveriesOf: (failure) => {
      const isMatch =
        isWithin(order, failure.atMs, filter) &&
        (destination === null || failure.destination === destination) &&
        (state === undefined || failure.state === state) &&
        (reason === undefined || failure.reason === reason)
      return isMatch ? [failure] : []
    },
  }
}

async function described<Id extends RowId>(rows: DeliveryRows<Id>, found: readonly FoundDelivery<Id>[]): Promise<DeliveryRow[]> {
  if (found.length === 0) return []
  const idOf = await rows.destinationIds(found.map(({ destination }) => destination))
  const waiting = found.filter(({ key }) => key !== undefined)
  const contents = new Map<FoundDelivery<Id>, SegmentContent>()
  const messages = await fieldsOfMessages(rows, found, (at, content) => {
    const delivery = found[at] as FoundDelivery<Id>
    if (delivery.key !== undefined) contents.set(delivery, withOnly(content, [delivery.index]))
  })
  const waits = await waitsOf(rows, waiting, (delivery) => contents.get(delivery as FoundDelivery<Id>) ?? null)
  const waitOf = new Map(waiting.map((delivery, at) => [delivery, waits[at] ?? null]))
  const links = await rows.replayLinks(found)
  const reasons = await lastReasons(rows, found)
  return found.map((delivery, at) => {
    const { origin, index, segment, destination, state, reason, attempts, replay, atMs } = delivery
    const { replayOf, replayJobId, replayedBy } = links[at] as ReplayLinks
    const id = `${origin}-${index}`
    return Object.assign(
      { id, destinationId: idOf(destination), ...(messages[at] as MessageFields) },
      {
        segment,
        index,
        state,
        reason,
        lastReason: reasons.get(id) ?? null,
        waitingFor: waitOf.get(delivery) ?? null,
        attempts,
        replay,
        atMs,
        firstAttemptAtMs: delivery.firstAttemptAtMs ?? null,
        replayOf,
        replayJobId,
        replayedBy,
      },
    )
  })
}

async function fieldsOfMessages<Id extends RowId>(
  rows: DeliveryRows<Id>,
  places: readonly ResolvedDelivery<Id>[],
  visit: (at: number, content: SegmentContent) => void,
): Promise<MessageFields[]> {
  const bySegment = groupBy(places.keys(), (at) => (places[at] as ResolvedDelivery<Id>).segment)
  const fields = places.map(({ index }) => messageFields(null, index))
  const wantedIn = ({ seq }: { seq: Id }) => bySegment.get(seq)?.map((at) => (places[at] as ResolvedDelivery<Id>).index)
  for await (const { seq, content } of readSegments(rows, [...bySegment.keys()], wantedIn)) {
    for (const at of bySegment.get(seq) ?? []) {
      fields[at] = messageFields(content, (places[at] as ResolvedDelivery<Id>).index)
      visit(at, content)
    }
  }
  return fields
}

/** The size of the docs that are read for one page. The deliveries whose docs come after this have no reason in the list. */
const BYTES_PER_PAGE = 16 * 1024 * 1024

/**
 * Why the last attempt of each listed pending delivery failed, by the id of the delivery. Only ended deliveries have a reason in their row; for
 * pending ones, the record of the attempt has it.
 */
export async function lastReasons<Id extends RowId>(
  rows: DeliveryRows<Id>,
  found: readonly FoundDelivery<Id>[],
): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>()
  const attempted = found.filter(({ state, attempts }) => state === 'pending' && attempts > 0)
  if (attempted.length === 0) return reasons
  const wanted = new Set(attempted.map(({ origin, index }) => `${origin}-${index}`))
  const unique = new Map(attempted.map(({ origin, attempts }) => [`${origin} ${attempts}`, { origin, attempt: attempts }]))
  const attempts = await rows.numberedAttempts([...unique.values()])
  let bytesRead = 0
  for (const some of portions(attempts, ({ bytes }) => bytes, BYTES_AT_ONCE)) {
    const originOf = new Map(some.map(({ id, origin }) => [id, origin]))
    for (const { id, doc } of await rows.docs(some.map((attempt) => attempt.id))) {
      for (const { reason, indexes } of requestsOf(JSON.parse(doc) as AttemptDoc)) {
        if (reason === null) continue
        for (const index of indexes) {
          const delivery = `${originOf.get(id)}-${index}`
          if (wanted.has(delivery)) reasons.set(delivery, reason)
        }
      }
    }
    bytesRead += some.reduce((sum, { bytes }) => sum + bytes, 0)
    if (bytesRead > BYTES_PER_PAGE) break
  }
  return reasons
}

/** The same for one delivery with all its requests. An integration may have made successful requests after the one that failed. */
export function lastReasonOf(history: readonly (Pick<RequestRecord, 'reason'> & { attempt: number })[]): string | null {
  const last = history.at(-1)?.attempt
  return history.flatMap(({ attempt, reason }) => (attempt === last && reason !== null ? [reason] : [])).at(-1) ?? null
}
