// Deliveries as they are asked for: what is pending from the shipments, what ended from the attempts and the failures. One
// delivery with all that happened to it is in delivery-detail.ts.

import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import { ROWS_PER_PAGE } from '../encoding/paging.ts'
import type { DeliveryDetail, DeliveryFilter, DeliveryRow, FinalStateName, Page, PageRequest } from '../store.ts'
import type { Ask } from './database.ts'
import { deliveryDetail } from './delivery-detail.ts'
import { type FoundDelivery, replaysOf } from './delivery-replays.ts'
import { beforeRow, byIndexes, firstRow, isWithin, lastRow, rowCursorOf, walk } from './paging.ts'
import type { Parts } from './parts.ts'
import { type PendingCursor, walkPending } from './pending.ts'
import { messageIdsOf } from './segments.ts'
import { readText } from './texts.ts'

interface FoundPage {
  found: FoundDelivery[]
  next: string | null
}

interface FailureRow {
  id: string
  destination: string
  state: FinalStateName
  reason: string | null
  origin: string
  idx: number
  segment: string
  attempts: number
  replay: boolean
  at: number
}

interface AttemptRow {
  id: string
  origin: string
  destination: string
  segment: string
  at: number
  attempt: number
  replay: boolean
  /** Null: it ended nothing that is asked for. */
  doc: string | null
}

const NOTHING: FoundPage = { found: [], next: null }
/** Attempts hold more than rows of other lists: all of their requests. */
const LONGEST_STEP = 500
const ENDED = JSON.stringify(['s'])
const FAILED: readonly FinalStateName[] = ['failed', 'expired', 'cancelled']

export class Deliveries {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async list(filter: DeliveryFilter, page: PageRequest): Promise<Page<DeliveryRow>> {
    const { database, names } = this.#parts
    const destination = filter.destinationId === undefined ? null : await names.find(database, 'destinations', filter.destinationId)
    if (destination === undefined) return { data: [], next: null }
    return byIndexes(database, async (ask) => {
      const { found, next } = await this.#find(ask, filter, destination, page)
      return { data: await this.#rows(ask, found), next }
    })
  }

  one(id: string): Promise<DeliveryDetail | undefined> {
    return byIndexes(this.#parts.database, (ask) => deliveryDetail(ask, this.#parts.names, id))
  }

  async #find(ask: Ask, filter: DeliveryFilter, destination: string | null, page: PageRequest): Promise<FoundPage> {
    const { state, reason } = filter
    if (state === 'pending') return reason === undefined ? pending(ask, filter, destination, page, null) : NOTHING
    if (state === 'delivered') return reason === undefined ? settled(ask, filter, destination, page) : NOTHING
    if (state !== undefined || reason !== undefined) return failures(ask, filter, destination, page)
    // Everything: first what is pending, then what has ended.
    if (page.cursor?.startsWith('["s"') ?? false) return settled(ask, filter, destination, page)
    const first = await pending(ask, filter, destination, page, ENDED)
    if (first.found.length >= page.limit || first.next !== ENDED) return first
    const then = await settled(ask, filter, destination, { limit: page.limit - first.found.length, cursor: null })
    return { found: [...first.found, ...then.found], next: then.next }
  }

  async #rows(ask: Ask, found: readonly FoundDelivery[]): Promise<DeliveryRow[]> {
    if (found.length === 0) return []
    const idOf = await this.#parts.names.idsOf(
      { query: ask },
      'destinations',
      found.map(({ destination }) => destination),
    )
    const messageIds = await messageIdsOf(ask, found)
    const replays = await replaysOf(ask, found)
    return found.map(({ origin, index, segment, destination, state, reason, attempts, replay, atMs }, at) =>
      Object.assign(
        { id: `${origin}-${index}`, destinationId: idOf(destination), messageId: messageIds[at] ?? null, segment, index },
        { state, reason, attempts, replay, atMs },
        replays[at],
      ),
    )
  }
}

/** `then` follows the last. */
async function pending(
  ask: Ask,
  filter: DeliveryFilter,
  destination: string | null,
  { limit, cursor }: PageRequest,
  then: string | null,
): Promise<FoundPage> {
  const found: FoundDelivery[] = []
  const next = ({ place }: { place: PendingCursor }): FoundPage => ({ found, next: JSON.stringify(['p', ...place]) })
  for await (const step of walkPending(ask, destination, filter, cursor)) {
    if ('passed' in step) {
      if (step.passed >= ROWS_PER_PAGE) return next(step)
      continue
    }
    if (found.length === limit) return next(step)
    found.push(step.delivery)
  }
  return { found, next: then }
}

/** From the attempts, newest first: with a state `delivered` those alone, otherwise everything that ended. */
async function settled(
  ask: Ask,
  { state, ...times }: DeliveryFilter,
  destination: string | null,
  { limit, cursor }: PageRequest,
): Promise<FoundPage> {
  const [start, skip] = rowCursorOf('s', cursor === ENDED ? null : cursor, [lastRow(times), 0])
  const has = state === undefined ? 'delivered + failed + expired + cancelled > 0' : 'delivered > 0'
  const rows = walk<AttemptRow>(
    start,
    ({ id }) => beforeRow(id),
    (from, count) =>
      ask(
        `SELECT id, origin, destination, segment, at, attempt, replay, CASE WHEN ${has} THEN doc END AS doc
         FROM attempts WHERE ${destination === null ? '' : 'destination = $4 AND '}id <= $1 AND id >= $2 ORDER BY id DESC LIMIT $3`,
        [from, firstRow(times), count, ...(destination === null ? [] : [destination])],
      ),
    LONGEST_STEP,
  )
  const found: FoundDelivery[] = []
  let seen = 0
  for await (const { id, doc, origin, destination: to, segment, at, attempt, replay } of rows) {
    if (++seen > ROWS_PER_PAGE) return { found, next: JSON.stringify(['s', id, 0]) }
    if (doc === null || !isWithin(at, times)) continue
    const ended = (JSON.parse(doc) as AttemptDoc).f
      .filter(([of]) => state === undefined || state === of)
      .flatMap(([of, reason, indexes]) => indexes.map((index) => ({ state: of, reason, index })))
    for (let place = id === start ? skip : 0; place < ended.length; place++) {
      if (found.length === limit) return { found, next: JSON.stringify(['s', id, place]) }
      const one = ended[place] as (typeof ended)[number]
      found.push({ ...one, origin, segment, destination: to, attempts: attempt, replay, atMs: at })
    }
  }
  return { found, next: null }
}

async function failures(
  ask: Ask,
  { state, reason, ...times }: DeliveryFilter,
  destination: string | null,
  { limit, cursor }: PageRequest,
): Promise<FoundPage> {
  const [start] = rowCursorOf('f', cursor, [lastRow(times)])
  const some = (condition: string): string =>
    `(SELECT id, destination, state, reason, origin, idx, segment, attempts, replay, at
      FROM failures WHERE ${condition}id <= $1 AND id >= $2 ORDER BY id DESC LIMIT $3)`
  // Of one destination, by the index: a walk for each state, put together. Of all, by number alone. What is left out is left out
  // here, so that a page is bounded by what it looks at.
  const states = state === undefined ? FAILED : [state]
  const parts = destination === null ? [some('')] : states.map((_, at) => some(`destination = $4 AND state = $${at + 5} AND `))
  const sql = parts.length === 1 ? (parts[0] as string) : `${parts.join(' UNION ALL ')} ORDER BY id DESC LIMIT $3`
  const rows = walk<FailureRow>(
    start,
    ({ id }) => beforeRow(id),
    (from, count) => ask(sql, [from, firstRow(times), count, ...(destination === null ? [] : [destination, ...states])]),
  )
  const found: FoundDelivery[] = []
  let seen = 0
  for await (const row of rows) {
    if (++seen > ROWS_PER_PAGE) return { found, next: JSON.stringify(['f', row.id]) }
    const why = row.reason === null ? null : readText(row.reason)
    if (!isWithin(row.at, times)) continue
    if ((state !== undefined && row.state !== state) || (reason !== undefined && why !== reason)) continue
    if (found.length === limit) return { found, next: JSON.stringify(['f', row.id]) }
    const { origin, idx: index, segment, destination: to, attempts, replay, at: atMs } = row
    found.push({ origin, index, segment, destination: to, state: row.state, reason: why, attempts, replay, atMs })
  }
  return { found, next: null }
}
