// Settling: what ended at the same time is one statement. Claimed shipments go or are kept with what is left of them, what is
// owed another attempt is added, and what happened is appended. The statement refuses itself as a whole when a shipment is not held under the claim that it is
// settled with, or when the numbers of deliveries do not add up: conservation is checked here, at the last place that could
// break it. Settlements are tried again until it is known what became of them, since what they tell has happened: a group
// leaves its name in the books, so that one whose answer was lost is not made twice.

import { writeOwedUrls } from '../../encoding/attempt-doc.ts'
import { countOf, type RecordRow, recordRows, refuseUneven } from '../../encoding/settlement.ts'
import { NotHeld, type Settlement, type ShipmentDraft, StoreUnavailable } from '../../store.ts'
import type { Membership } from '../cluster/membership.ts'
import type { writeOutcomes } from '../replays/replay-outcomes.ts'
import { storedParts } from '../rows/rows.ts'
import { bools, int4s, int8s, texts } from '../session/binary-arrays.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import type { Ask, Database } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { writeText } from '../session/texts.ts'
import type { Claiming } from './claiming.ts'
import { Grouping } from './grouping.ts'

interface Tools {
  database: Database
  membership: Membership
  claiming: Claiming
  replaying: { outcomes: typeof writeOutcomes }
  onCommit: (commitMs: number, settlements: number) => void
}

interface Item {
  settlement: Settlement
  /** The destination's `num`. */
  destination: string
  records: RecordRow<string>[]
}

const GROUP_SETTLEMENTS = 500
/**
 * Nobody waits for a settlement: what is delivered in this moment may be sent again after a crash, as what is in flight, and
 * many share a commit.
 */
const LINGER_MS = 4
const AGAIN_MS = 250
/** What a row of `failures` takes in a statement, about: one settlement of a large batch has thousands. */
const FAILURE_BYTES = 100
/** A group that the server could not make in its time, so often, is made in its parts. */
const TRIES_TOGETHER = 2
const TOOK_TOO_LONG = '57014'

const SETTLE = {
  name: 'settle',
  text: `
WITH d AS MATERIALIZED (
  SELECT * FROM unnest($2::bigint[], $3::integer[], $4::integer[]) AS d (id, claim, ord)
), gone AS (
  DELETE FROM shipments WHERE holder = $1 AND id = ANY ($2::bigint[]) RETURNING id, claim, count
), k AS MATERIALIZED (
  SELECT * FROM unnest($47::bigint[], $48::integer[], $49::integer[], $50::integer[], $51::text[]) AS k (id, claim, before, count, parts)
), kept AS (
  UPDATE shipments s SET count = k.count, parts = k.parts FROM k
  WHERE s.holder = $1 AND s.id = ANY ($47::bigint[]) AND s.id = k.id AND s.claim = k.claim RETURNING s.id
), rest AS (
  INSERT INTO shipments (id, destination, due, first_attempt, count, attempt, bytes, unit, replay, urls, parts)
  SELECT * FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::integer[], $10::integer[], $11::integer[], $12::boolean[], $13::boolean[], $14::text[], $15::text[])
), att AS (
  INSERT INTO attempts (id, origin, destination, segment, at, attempt, delivered, failed, expired, cancelled, replay, doc)
  SELECT * FROM unnest($16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::integer[], $22::integer[], $23::integer[], $24::integer[], $25::integer[], $26::boolean[], $27::text[])
), fail AS (
  INSERT INTO failures (id, destination, origin, segment, at, idx, attempts, replay, state, reason)
  SELECT * FROM unnest($28::bigint[], $29::bigint[], $30::bigint[], $31::bigint[], $32::bigint[], $33::integer[], $34::integer[], $35::boolean[], $36::text[], $37::text[])
), books AS (
  INSERT INTO deltas (id, kind, subject, counts)
  SELECT b.id, 0, b.subject, ARRAY[0, b.delivered, -(b.delivered + b.failed + b.expired + b.cancelled), b.failed, b.expired, b.cancelled]
  FROM unnest($38::bigint[], $39::bigint[], $40::bigint[], $41::bigint[], $42::bigint[], $43::bigint[]) AS b (id, subject, delivered, failed, expired, cancelled)
  UNION ALL SELECT $44::bigint, 2, 0, '{}'::bigint[]
)
SELECT CASE WHEN (SELECT count(*) FROM gone) <> cardinality($2::bigint[]) THEN refuse('not held')
  WHEN (SELECT count(*) FROM kept) <> cardinality($47::bigint[]) THEN refuse('not held')
  WHEN EXISTS (SELECT FROM d JOIN gone g ON g.id = d.id WHERE g.claim <> d.claim) THEN refuse('not held')
  WHEN EXISTS (SELECT FROM k JOIN shipments s ON s.holder = $1 AND s.id = k.id WHERE s.count <> k.before) THEN refuse('does not add up')
  WHEN EXISTS (SELECT FROM unnest($45::integer[], $46::bigint[]) AS e (ord, owed)
    LEFT JOIN (SELECT d.ord, sum(g.count) AS owed FROM d JOIN gone g ON g.id = d.id GROUP BY d.ord) g ON g.ord = e.ord WHERE coalesce(g.owed, 0) <> e.owed)
  THEN refuse('does not add up') END AS refused`,
}

export class Settling {
  readonly #parts: Parts
  readonly #tools: Tools
  readonly #grouping: Grouping<Item, null>

  constructor(parts: Parts, tools: Tools) {
    this.#parts = parts
    this.#tools = tools
    this.#grouping = new Grouping({
      run: (items) => this.#run(items),
      depth: 2,
      early: 64,
      maxItems: GROUP_SETTLEMENTS,
      maxBytes: 4 * 1024 * 1024,
      waitingBytes: Number.POSITIVE_INFINITY,
      lingerMs: LINGER_MS,
      bytesOf: ({ records }) => records.reduce((sum, { doc, failures }) => sum + doc.length + failures.length * FAILURE_BYTES, 500),
    })
  }

  async settle(settlement: Settlement): Promise<void> {
    refuseUneven(settlement)
    const { destinationId, done } = settlement
    const held = [...done, ...settlement.kept.map(({ shipment }) => shipment)]
    const destination = this.#parts.names.num('destinations', destinationId)
    if (destination === undefined) throw new Error(`unknown destination ${destinationId}`)
    for (const { id, claim } of held) {
      if (!this.#tools.claiming.holds(id as string, claim)) throw new NotHeld(`shipment ${id} is not held under claim ${claim}`)
    }
    try {
      await this.#grouping.push({ settlement, destination, records: recordRows<string>(settlement) })
    } catch (error) {
      // Some of it may still be this node's, and nobody in it has it any more.
      if (error instanceof NotHeld) this.#parts.run(this.#tools.claiming.release(held))
      throw error
    }
    for (const { id } of done) this.#tools.claiming.ended(id as string)
  }

  async close(): Promise<void> {
    await this.#grouping.close()
  }

  async #run(items: readonly Item[]): Promise<null[]> {
    const { membership, database, onCommit } = this.#tools
    const { holder } = membership
    const name = this.#parts.ids.next()
    const values = this.#values(items, holder, name)
    let isDoubtful = false
    for (let nth = 1; ; nth++) {
      try {
        if (isDoubtful && (await this.#isMade(name))) return items.map(() => null)
        const started = performance.now()
        await this.#write(database, items, values)
        onCommit(performance.now() - started, items.length)
        return items.map(() => null)
      } catch (error) {
        const refused = (error as { code?: string }).code === 'SY001'
        // It may have been made between the question and the answer, by the statement whose answer was lost.
        const isMade = refused && isDoubtful ? await this.#isMade(name).catch(() => null) : false
        if (isMade === true) return items.map(() => null)
        // Null: it could not be asked for, so it is not known to be refused either.
        if (isMade === false && !(error instanceof StoreUnavailable)) throw refused ? refusal(error as Error, items) : error
        if (items.length > 1 && nth >= TRIES_TOGETHER && !isDoubtful && tookTooLong(error)) throw (error as Error).cause
        isDoubtful ||= error instanceof PostgresUnavailable && error.doubtful
        // What it held under that name is others' by now, or will be.
        if (holder !== membership.holder) throw new NotHeld('this node was given up', { cause: error })
        if (this.#parts.isClosed()) throw error
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  async #isMade(name: string): Promise<boolean> {
    const { count } = await this.#tools.database.query('SELECT 1 FROM deltas WHERE id = $1', [name])
    return count > 0
  }

  async #write(database: Database, items: readonly Item[], values: Values): Promise<void> {
    const replayed = items.filter(({ records }) => records.some(({ replay }) => replay))
    if (replayed.length === 0) {
      await database.query(SETTLE, values)
      return
    }
    await database.transaction(async (ask: Ask) => {
      await ask(SETTLE, values)
      for (const { destination, records } of replayed) {
        await this.#tools.replaying.outcomes(
          ask,
          destination,
          records.filter(({ replay }) => replay),
        )
      }
    })
  }

  #values(items: readonly Item[], holder: string, name: string): Values {
    const { ids } = this.#parts
    const done = items.flatMap(({ settlement }, ord) => settlement.done.map(({ id, claim }) => ({ id: id as string, claim, ord })))
    const kept = items.flatMap(({ settlement }) => settlement.kept)
    const rest = items.flatMap(({ settlement, destination }) =>
      settlement.remaining.map((draft) => ({ id: ids.next(), destination, draft, bytes: this.#bytesOf(settlement, draft) })),
    )
    const records = items.flatMap(({ destination, records: of }) => of.map((record) => ({ id: ids.next(), destination, record })))
    const failures = records.flatMap(({ destination, record }) =>
      record.failures.map((failure) => ({ id: ids.next(), destination, record, failure })),
    )
    const books = new Map<string, { delivered: number; failed: number; expired: number; cancelled: number }>()
    for (const { destination, record } of records) {
      const book = books.get(destination) ?? { delivered: 0, failed: 0, expired: 0, cancelled: 0 }
      book.delivered += record.delivered
      book.failed += record.failed
      book.expired += record.expired
      book.cancelled += record.cancelled
      books.set(destination, book)
    }
    const entries = [...books].filter(([, b]) => b.delivered + b.failed + b.expired + b.cancelled > 0)
    return [
      holder,
      int8s(done.map(({ id }) => id)),
      int4s(done.map(({ claim }) => claim)),
      int4s(done.map(({ ord }) => ord)),
      int8s(rest.map(({ id }) => id)),
      int8s(rest.map(({ destination }) => destination)),
      // Whole milliseconds, and never early: times with fractions come of backoff, and the columns hold integers.
      int8s(rest.map(({ draft }) => (draft.attempt > 0 ? Math.ceil(draft.dueAtMs) : 0))),
      int8s(rest.map(({ draft }) => (draft.firstAttemptAtMs === null ? null : Math.floor(draft.firstAttemptAtMs)))),
      int4s(rest.map(({ draft }) => countOf(draft))),
      int4s(rest.map(({ draft }) => draft.attempt)),
      int4s(rest.map(({ bytes }) => bytes)),
      bools(rest.map(({ draft }) => draft.unit)),
      bools(rest.map(({ draft }) => draft.replay)),
      texts(rest.map(({ draft }) => writeOwedUrls(draft.urls))),
      texts(rest.map(({ draft }) => storedParts(draft.parts))),
      int8s(records.map(({ id }) => id)),
      int8s(records.map(({ record }) => record.origin)),
      int8s(records.map(({ destination }) => destination)),
      int8s(records.map(({ record }) => record.segment)),
      int8s(records.map(({ record }) => Math.floor(record.atMs))),
      int4s(records.map(({ record }) => record.attempt)),
      int4s(records.map(({ record }) => record.delivered)),
      int4s(records.map(({ record }) => record.failed)),
      int4s(records.map(({ record }) => record.expired)),
      int4s(records.map(({ record }) => record.cancelled)),
      bools(records.map(({ record }) => record.replay)),
      texts(records.map(({ record }) => record.doc)),
      int8s(failures.map(({ id }) => id)),
      int8s(failures.map(({ destination }) => destination)),
      int8s(failures.map(({ record }) => record.origin)),
      int8s(failures.map(({ record }) => record.segment)),
      int8s(failures.map(({ record }) => Math.floor(record.atMs))),
      int4s(failures.map(({ failure }) => failure.index)),
      int4s(failures.map(({ record }) => record.attempt)),
      bools(failures.map(({ record }) => record.replay)),
      texts(failures.map(({ failure }) => failure.state)),
      texts(failures.map(({ failure }) => (failure.reason === null ? null : writeText(failure.reason)))),
      int8s(entries.map(() => ids.next())),
      int8s(entries.map(([destination]) => destination)),
      int8s(entries.map(([, book]) => book.delivered)),
      int8s(entries.map(([, book]) => book.failed)),
      int8s(entries.map(([, book]) => book.expired)),
      int8s(entries.map(([, book]) => book.cancelled)),
      name,
      int4s(items.map((_, ord) => ord)),
      int8s(items.map(owedOf)),
      int8s(kept.map(({ shipment }) => shipment.id as string)),
      int4s(kept.map(({ shipment }) => shipment.claim)),
      int4s(kept.map(({ shipment }) => countOf(shipment))),
      int4s(kept.map(countOf)),
      texts(kept.map(({ parts }) => storedParts(parts))),
    ]
  }

  /** What the segments of a draft weigh, as far as it is known from what was held: a shipment's weight is that of its segments. */
  #bytesOf({ done, kept }: Settlement, draft: ShipmentDraft): number {
    const origins = new Set(draft.parts.map(({ origin }) => origin))
    let bytes = 0
    for (const { id, parts } of [...done, ...kept.map(({ shipment }) => shipment)]) {
      const share = parts.filter(({ origin }) => origins.has(origin)).length / Math.max(1, parts.length)
      bytes += Math.ceil(this.#tools.claiming.bytesOf(id as string) * share)
    }
    return bytes
  }
}

function tookTooLong(error: unknown): boolean {
  return ((error as Error).cause as { code?: string } | undefined)?.code === TOOK_TOO_LONG
}

type Values = readonly (string | Buffer)[]

/** What the shipments that go must have held for the settlement to add up; what those that are kept lose is known. */
function owedOf({ settlement, records }: Item): number {
  let left = 0
  for (const draft of settlement.remaining) left += countOf(draft)
  for (const { shipment, parts } of settlement.kept) left -= countOf(shipment) - countOf({ parts })
  return records.reduce((sum, { delivered, failed, expired, cancelled }) => sum + delivered + failed + expired + cancelled, left)
}

function refusal(error: Error, items: readonly Item[]): Error {
  const destinations = items.map(({ settlement }) => settlement.destinationId).join(', ')
  return error.message === 'not held'
    ? new NotHeld(`what is to be settled for ${destinations} is not held any more`, { cause: error })
    : new Error(`a settlement for ${destinations} leaves deliveries without a state`, { cause: error })
}
