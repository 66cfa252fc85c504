// The row port of lists of deliveries: shipments, attempts, failures and replays.

import type { OrderKey } from '../../model/order/order-key.ts'
import { type Awaitable, isTrue, type Sql } from '../encoding/sql.ts'
import type { StoredPart } from '../encoding/stored-parts.ts'
import { type KeyRow, keysAmong } from '../order-keys/key-rows.ts'
import type { CauseFilter, DeliveryRow, FailureCause, LedgerRow, RowId } from '../store.ts'
import type { OriginRows, ResolvedDelivery } from './delivery-ids.ts'
import { type SegmentLookups, type SegmentRows, segmentRows } from './segment-rows.ts'

/** The position of a pending shipment in the adapter's order. A cursor contains it. */
export type PendingPlace = readonly (number | string)[]

/** A shipment that is pending. */
export interface PendingRow<Id extends RowId> {
  place: PendingPlace
  destination: Id
  attempts: number
  replay: boolean
  dueAtMs: number
  firstAttemptAtMs: number | null
  parts: readonly StoredPart<Id>[]
}

/** A delivery with the state from its row. */
export type FoundDelivery<Id extends RowId> = ResolvedDelivery<Id> &
  Pick<DeliveryRow, 'state' | 'reason' | 'attempts' | 'replay' | 'atMs'> & {
    key?: OrderKey | undefined
    firstAttemptAtMs?: number | null
  }

/** A delivery that did not end as delivered. */
export interface FailureRow<Id extends RowId> extends FoundDelivery<Id> {
  id: Id
  atMs: number
}

export interface AttemptRow<Id extends RowId> extends Omit<FailureRow<Id>, 'index' | 'state' | 'reason'> {
  /** The size of its doc; 0 if it ended no delivery that matches the query. */
  bytes: number
}

/** `replayedAtMs`: when the replay was requested, or the message was released from quarantine; otherwise null. `resumed`: whether it became the head of its key. */
export type ReplayLinks = Pick<DeliveryRow, 'replayOf' | 'replayJobId' | 'replayedBy'> & { replayedAtMs: number | null; resumed: unknown }

/** Deliveries of one destination that ended in the same state. */
export type CauseShare = Pick<FailureCause, 'destinationId' | 'state'>
/** The deliveries of a share that have the same reason. */
export type CauseRow = Omit<FailureCause, keyof CauseShare | 'isPartial'>

export interface DeliveryRows<Id extends RowId> extends SegmentRows<Id>, OriginRows<Id> {
  /** The row id of a destination; undefined if it never existed. */
  destination(id: string): Awaitable<Id | undefined>
  /** The position of the first pending shipment of a destination, or of all destinations if `destination` is null. */
  firstPending(destination: Id | null): PendingPlace
  /**
   * Reads shipments from a position on, some at a time. The order is stable: claiming or releasing a shipment does not change its position. Shipments
   * that were never attempted and are older than `first` may be left out, because their row ids are in the order of time.
   */
  pending(destination: Id | null, from: PendingPlace, first: Id): AsyncIterable<readonly PendingRow<Id>[]>
  /** Newest first, with row ids from `first` to `last`. */
  attempts(destination: Id | null, deliveredOnly: boolean, first: Id, last: Id, limit: number): Awaitable<readonly AttemptRow<Id>[]>
  /** AttemptDoc as JSON. One doc may be several megabytes, because it contains the responses of receivers to each message of a batch. */
  docs(attempts: readonly Id[]): Awaitable<readonly { id: Id; doc: string }[]>
  /** The attempts of these origins with these numbers, oldest first, and the size of their docs. A call in parts has several with one number. */
  numberedAttempts(of: readonly { origin: Id; attempt: number }[]): Awaitable<readonly { id: Id; origin: Id; bytes: number }[]>
  /** Failures, also newest first. An adapter may ignore `destination` and `state` if no index helps: the caller checks each row. */
  failures(destination: Id | null, state: string | undefined, first: Id, last: Id, limit: number): Awaitable<readonly FailureRow<Id>[]>
  /** One for each delivery, in the same order. */
  replayLinks(deliveries: readonly ResolvedDelivery<Id>[]): Awaitable<readonly ReplayLinks[]>
  /** Failures of a destination and state, grouped by reason: of the newest `limit` with row ids from `first` to `last`, those that match the filter. */
  causes(of: CauseShare, first: Id, last: Id, filter: CauseFilter, limit: number): Awaitable<readonly CauseRow[]>
  ledger(): Awaitable<readonly LedgerRow[]>
  /** In the order in which the attempts were made. */
  attemptsAt(origin: Id): Awaitable<readonly { at: number; attempt: number; doc: string }[]>
  /** Retries whose parts may contain the origin, ordered by due time. Looks at the first ROWS_PER_PAGE retries of the destination. */
  retriesOf(destination: Id, origin: Id): Awaitable<readonly Pick<PendingRow<Id>, 'dueAtMs' | 'firstAttemptAtMs' | 'parts'>[]>
  /** Those of the keys of an ordered destination that wait or are held. */
  keysAmong(destination: Id, keys: readonly OrderKey[]): Awaitable<readonly KeyRow<Id>[]>
  /** The parts of what waits behind the head of the key, if they may contain the origin. Looks at the first ROWS_PER_PAGE rows of the key. */
  waitingParts(destination: Id, key: OrderKey, origin: Id): Awaitable<readonly StoredPart<Id>[]>
}

const FAILED = ['failed', 'expired', 'cancelled']

type SharedRows = 'attempts' | 'docs' | 'failures' | 'causes' | 'attemptsAt' | 'keysAmong'

/** `own`: the rows whose SQL depends on how an adapter orders and finds them. */
export function deliveryRows<Id extends RowId>(
  sql: Sql<Id>,
  own: SegmentLookups<Id> & Omit<DeliveryRows<Id>, SharedRows | keyof SegmentRows<Id>>,
): DeliveryRows<Id> {
  return {
    ...segmentRows(sql, own),
    ...own,
    async attempts(destination, deliveredOnly, first, last, limit) {
      const rows = await sql.all<AttemptRow<Id>>(
        `SELECT id, origin, destination, segment, at AS "atMs", attempt AS attempts, replay,
           CASE WHEN delivered${deliveredOnly ? '' : ' + failed + expired + cancelled'} > 0 THEN octet_length(doc) ELSE 0 END AS bytes
         FROM attempts WHERE ${destination === null ? '' : 'destination = ? AND '}id >= ? AND id <= ? ORDER BY id DESC LIMIT ?`,
        [...(destination === null ? [] : [destination]), first, last, limit],
      )
      return rows.map(withReplay)
    },
    keysAmong: (destination, keys) => keysAmong(sql, destination, keys),
    docs: (attempts) => sql.all(`SELECT id, doc FROM attempts WHERE ${sql.among('id')}`, [sql.list(attempts)]),
    async failures(destination, state, first, last, limit) {
      const some = (condition: string): string =>
        `SELECT * FROM (SELECT id, origin, idx AS "index", destination, segment, state, reason, attempts, replay, at AS "atMs"
          FROM failures WHERE ${condition}id >= ? AND id <= ? ORDER BY id DESC LIMIT ?) AS part`
      // For one destination: reads the index once per state and merges the results. For all destinations: reads by row id.
      const states = destination === null ? [null] : state === undefined ? FAILED : [state]
      const parts = states.map((each) => some(each === null ? '' : 'destination = ? AND state = ? AND '))
      const values = states.flatMap((each) => (each === null ? [first, last, limit] : [destination, each, first, last, limit]))
      const rows = await sql.all<FailureRow<Id>>(`${parts.join(' UNION ALL ')} ORDER BY id DESC LIMIT ?`, [...values, limit])
      return rows.map((row) => withReplay(sql.read(row, 'reason')))
    },
    async causes({ destinationId, state }, first, last, { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, sourceIds }, limit) {
      const ofSources = `AND EXISTS (SELECT 1 FROM segments g JOIN sources s ON s.num = g.source WHERE g.seq = n.segment AND ${sql.among('s.id', 'text')})`
      const rows = await sql.all<CauseRow>(
        `SELECT g.reason, g.count, g."firstAtMs", g."lastAtMs", f.origin || '-' || f.idx AS "deliveryId" FROM (
           SELECT reason, count(*) AS count, min(at) AS "firstAtMs", max(at) AS "lastAtMs", max(id) AS newest FROM (
             SELECT id, reason, at, segment FROM failures WHERE destination = ? AND state = ? AND id >= ? AND id <= ? ORDER BY id DESC LIMIT ?
           ) AS n WHERE at >= ? AND at <= ? ${sourceIds === undefined ? '' : ofSources} GROUP BY reason
         ) AS g JOIN failures f ON f.id = g.newest`,
        [
          (await own.destination(destinationId)) ?? null,
          state,
          first,
          last,
          limit,
          fromMs,
          toMs,
          ...(sourceIds === undefined ? [] : [sql.list(sourceIds)]),
        ],
      )
      return rows.map((row) => sql.read(row, 'reason'))
    },
    attemptsAt: (origin) =>
      sql.all('SELECT at, attempt, doc FROM attempts WHERE origin = ? AND id >= ? ORDER BY attempt, id', [origin, firstAfter(sql, origin)]),
  }
}

/** Rows about an origin are newer than it, except for the difference between the clocks of nodes. With this, older partitions are not read. */
function firstAfter<Id extends RowId>({ order }: Sql<Id>, origin: Id): Id {
  return order.at(order.msOf(origin) - order.skewMs)
}

function withReplay<Row extends { replay: boolean }>(row: Row): Row {
  return Object.assign(row, { replay: isTrue(row.replay) })
}
