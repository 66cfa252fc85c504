// Deliveries as they are asked for: what is pending from the shipments, what ended from the attempts and the failures. One
// delivery with all that happened to it is in delivery-detail.ts.

import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import { type CauseRow, CauseTally, sharesOf } from '../../history/causes.ts'
import { ROWS_PER_PAGE } from '../../history/paging.ts'
import type {
  CauseFilter,
  DeliveryDetail,
  DeliveryFilter,
  DeliveryRow,
  FailureCauses,
  FinalStateName,
  MessageNames,
  Page,
  PageRequest,
} from '../../store.ts'
import { openSeed } from '../messages/message-keys.ts'
import type { Ask } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { readText } from '../session/texts.ts'
import { deliveryDetail } from './delivery-detail.ts'
import { type FoundDelivery, replaysOf } from './delivery-replays.ts'
import { MessageChoice } from './message-choice.ts'
import { beforeRow, byIndexes, firstRow, isWithin, lastRow, rowCursorOf, type Times, walk } from './paging.ts'
import { type PendingCursor, walkPending } from './pending.ts'
import { readLedger } from './recount.ts'
import { messageNamesOf } from './segments.ts'

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
    const seed = filter.userId === undefined ? undefined : await openSeed(database)
    return byIndexes(database, async (ask) => {
      const choice = await MessageChoice.of(ask, filter, seed)
      const { found, next } = await this.#find(ask, filter, destination, page, choice)
      return { data: await this.#rows(ask, found), next }
    })
  }

  async causes(filter: CauseFilter): Promise<FailureCauses> {
    const { database, names } = this.#parts
    const shares = sharesOf(await readLedger((text) => database.query(text)), filter)
    const tally = new CauseTally(shares)
    return byIndexes(database, async (ask) => {
      for (const share of shares) {
        const destination = await names.find({ query: ask }, 'destinations', share.destinationId)
        if (destination !== undefined) tally.add(share, await causeRows(ask, destination, share.state, filter, tally.limit()))
      }
      return tally.result()
    })
  }

  one(id: string): Promise<DeliveryDetail | undefined> {
    return byIndexes(this.#parts.database, (ask) => deliveryDetail(ask, this.#parts.names, id))
  }

  async #find(
    ask: Ask,
    filter: DeliveryFilter,
    destination: string | null,
    page: PageRequest,
    choice: MessageChoice | undefined,
  ): Promise<FoundPage> {
    const { state, reason } = filter
    if (state === 'pending') return reason === undefined ? pending(ask, filter, destination, page, null, choice) : NOTHING
    if (state === 'delivered') return reason === undefined ? settled(ask, filter, destination, page, choice) : NOTHING
    if (state !== undefined || reason !== undefined) return failures(ask, filter, destination, page, choice)
    // Everything: first what is pending, then what has ended.
    if (page.cursor?.startsWith('["s"') ?? false) return settled(ask, filter, destination, page, choice)
    const first = await pending(ask, filter, destination, page, ENDED, choice)
    if (first.found.length >= page.limit || first.next !== ENDED) return first
    const then = await settled(ask, filter, destination, { limit: page.limit - first.found.length, cursor: null }, choice)
    return { found: [...first.found, ...then.found], next: then.next }
  }

  async #rows(ask: Ask, found: readonly FoundDelivery[]): Promise<DeliveryRow[]> {
    if (found.length === 0) return []
    const idOf = await this.#parts.names.idsOf(
      { query: ask },
      'destinations',
      found.map(({ destination }) => destination),
    )
    const messages = await messageNamesOf(ask, found)
    const replays = await replaysOf(ask, found)
    return found.map(({ origin, index, segment, destination, state, reason, attempts, replay, atMs }, at) =>
      Object.assign(
        { id: `${origin}-${index}`, destinationId: idOf(destination), ...(messages[at] as MessageNames), segment, index },
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
  choice: MessageChoice | undefined,
): Promise<FoundPage> {
  const found: FoundDelivery[] = []
  const next = ({ place }: { place: PendingCursor }): FoundPage => ({ found, next: JSON.stringify(['p', ...place]) })
  for await (const step of walkPending(ask, destination, filter, cursor, choice)) {
    if ('passed' in step) {
      if (step.passed >= ROWS_PER_PAGE) return next(step)
      continue
    }
    const isMeant = choice === undefined || choice.has(step.delivery)
    if (isMeant === false) continue
    if (isMeant === undefined || found.length === limit) return next(step)
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
  choice: MessageChoice | undefined,
): Promise<FoundPage> {
  const [start, skip] = rowCursorOf('s', cursor === ENDED ? null : cursor, [lastRow(times), 0])
  const has = state === undefined ? 'delivered + failed + expired + cancelled > 0' : 'delivered > 0'
  const rows = walk<AttemptRow>(
    start,
    ({ id }) => beforeRow(id),
    async (from, count) => {
      const step = await ask<AttemptRow>(
        `SELECT id, origin, destination, segment, at, attempt, replay, CASE WHEN ${has} THEN doc END AS doc
         FROM attempts WHERE ${destination === null ? '' : 'destination = $4 AND '}id <= $1 AND id >= $2 ORDER BY id DESC LIMIT $3`,
        [from, firstRow(times), count, ...(destination === null ? [] : [destination])],
      )
      await choice?.look(step.rows.filter(({ doc, at }) => doc !== null && isWithin(at, times)))
      return step
    },
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
      const one = ended[place] as (typeof ended)[number]
      const isMeant = choice === undefined || choice.has({ segment, index: one.index })
      if (isMeant === false) continue
      if (isMeant === undefined || found.length === limit) return { found, next: JSON.stringify(['s', id, place]) }
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
  choice: MessageChoice | undefined,
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
  const isAsked = ({ at, state: of, reason: why }: FailureRow): boolean =>
    isWithin(at, times) &&
    (state === undefined || of === state) &&
    (reason === undefined || (why === null ? null : readText(why)) === reason)
  const rows = walk<FailureRow>(
    start,
    ({ id }) => beforeRow(id),
    async (from, count) => {
      const step = await ask<FailureRow>(sql, [from, firstRow(times), count, ...(destination === null ? [] : [destination, ...states])])
      await choice?.look(step.rows.filter(isAsked))
      return step
    },
  )
  const found: FoundDelivery[] = []
  let seen = 0
  for await (const row of rows) {
    if (++seen > ROWS_PER_PAGE) return { found, next: JSON.stringify(['f', row.id]) }
    if (!isAsked(row)) continue
    const isMeant = choice === undefined || choice.has({ segment: row.segment, index: row.idx })
    if (isMeant === false) continue
    if (isMeant === undefined || found.length === limit) return { found, next: JSON.stringify(['f', row.id]) }
    const why = row.reason === null ? null : readText(row.reason)
    const { origin, idx: index, segment, destination: to, attempts, replay, at: atMs } = row
    found.push({ origin, index, segment, destination: to, state: row.state, reason: why, attempts, replay, atMs })
  }
  return { found, next: null }
}

/** Grouped by the server, from the newest on, and no more than are looked at. */
async function causeRows(ask: Ask, destination: string, state: FinalStateName, times: Times, limit: number): Promise<CauseRow[]> {
  const { rows } = await ask<CauseRow>(
    `SELECT g.reason, g.count, g.first, g.last, f.origin, f.idx FROM (
       SELECT reason, count(*) AS count, min(at) AS first, max(at) AS last, max(id) AS newest FROM (
         SELECT id, reason, at FROM failures WHERE destination = $1 AND state = $2 AND id <= $3 AND id >= $4 ORDER BY id DESC LIMIT $5
       ) n WHERE at >= $6 AND at <= $7 GROUP BY reason
     ) g JOIN failures f ON f.id = g.newest`,
    [destination, state, lastRow(times), firstRow(times), limit, times.fromMs ?? 0, times.toMs ?? Number.MAX_SAFE_INTEGER],
  )
  return rows.map((row) => Object.assign(row, { reason: row.reason === null ? null : readText(row.reason) }))
}
