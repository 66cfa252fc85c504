// The row ports of keys of ordered destinations that are not free: reading them, and changing one in a transaction.

import type { OrderKey } from '../../model/order/order-key.ts'
import type { Awaitable, Sql } from '../encoding/sql.ts'
import { type SegmentLookups, type SegmentRows, segmentRows } from '../history/segment-rows.ts'
import { KEY_COLUMNS, type KeyRow, keyRow } from '../order-keys/key-rows.ts'
import type { AttemptRecord, KeyChange, Part, RowId } from '../store.ts'

const LISTED = ['waiting', 'held'] as const
const MOST_CROWDED = 1_000

/** The place of a key in the list of a destination: oldest first. */
export type KeyPlace = readonly [since: number, key: OrderKey]

export interface OrderReadRows<Id extends RowId> {
  counts(destination: Id): Awaitable<readonly { state: string; keys: number; waiting: number }[]>
  allCounts(): Awaitable<readonly { id: string; state: string; keys: number; waiting: number }[]>
  /** Keys that wait or are held, from a place on. */
  keys(destination: Id, from: KeyPlace, limit: number): Awaitable<readonly KeyRow<Id>[]>
  crowded(destination: Id, maxWaiting: number): Awaitable<number>
}

export function orderReadRows<Id extends RowId>(sql: Sql<Id>): OrderReadRows<Id> {
  return {
    counts: (destination) =>
      sql.all(
        `SELECT state, count(*) AS keys, CAST(coalesce(sum(waiting), 0) AS bigint) AS waiting FROM order_keys
         WHERE destination = ? AND state IN ('waiting', 'held') GROUP BY state`,
        [destination],
      ),
    allCounts: () =>
      sql.all(
        `SELECT d.id AS id, k.state AS state, count(*) AS keys, CAST(coalesce(sum(k.waiting), 0) AS bigint) AS waiting
         FROM order_keys k JOIN destinations d ON d.num = k.destination WHERE k.state IN ('waiting', 'held') GROUP BY d.id, k.state`,
        [],
      ),
    async keys(destination, [since, key], limit) {
      const some = `SELECT * FROM (SELECT ${KEY_COLUMNS} FROM order_keys
        WHERE destination = ? AND state = ? AND (since, key) >= (?, ?) ORDER BY since, key LIMIT ?) AS part`
      const rows = await sql.all<KeyRow<Id>>(`${some} UNION ALL ${some} ORDER BY since, key LIMIT ?`, [
        ...LISTED.flatMap((state) => [destination, state, since, key, limit]),
        limit,
      ])
      return rows.map(keyRow)
    },
    async crowded(destination, maxWaiting) {
      // The second condition is that of the index.
      const [row] = await sql.all<{ count: number }>(
        `SELECT count(*) AS count FROM (SELECT 1 FROM order_keys
           WHERE destination = ? AND waiting > ? AND waiting > 99 AND state IN ('waiting', 'held') LIMIT ${MOST_CROWDED}) AS part`,
        [destination, maxWaiting],
      )
      return row?.count ?? 0
    },
  }
}

/** The row of a head that nobody has claimed. */
export interface HeadRow<Id extends RowId> {
  id: Id
  due: number
  attempts: number
  replay: boolean
  parts: readonly Part[]
}

export interface OrderChanges<Id extends RowId> extends SegmentRows<Id> {
  /** The row id of a destination; undefined if it does not exist. */
  destination(id: string): Awaitable<Id | undefined>
  /** Locks the key until the transaction ends. Undefined if it neither waits nor is held. */
  key(destination: Id, key: OrderKey): Awaitable<KeyRow<Id> | undefined>
  /** Locks the keys of which one of the messages is the head. */
  keysOf(segment: Id, indexes: readonly number[]): Awaitable<readonly KeyRow<Id>[]>
  /** Locks the head until the transaction ends, if nobody has claimed it. */
  head(key: KeyRow<Id>): Awaitable<HeadRow<Id> | undefined>
  /** Keeps only these messages of a head. */
  keepHead(destination: Id, head: HeadRow<Id>, parts: readonly Part[]): Awaitable<unknown>
  /** Makes a head due at once, for all its keys. */
  makeDue(destination: Id, head: HeadRow<Id>): Awaitable<unknown>
  /** The head ends when its attempt is over. */
  flag(key: KeyRow<Id>): Awaitable<unknown>
  /** Appends the records of deliveries that have ended without an attempt. */
  record(destination: Id, records: readonly AttemptRecord[]): Awaitable<unknown>
  change(destination: Id, change: KeyChange, atMs: number): Awaitable<unknown>
}

type SharedChanges = keyof SegmentRows<RowId> | 'key' | 'keysOf' | 'flag'

export function orderChanges<Id extends RowId>(
  sql: Sql<Id>,
  own: SegmentLookups<Id> & Omit<OrderChanges<Id>, SharedChanges>,
): OrderChanges<Id> {
  const locked = async (condition: string, values: readonly (RowId | null)[]): Promise<KeyRow<Id>[]> => {
    const rows = await sql.all<KeyRow<Id>>(
      `SELECT ${KEY_COLUMNS} FROM order_keys WHERE ${condition} AND state IN ('waiting', 'held') ORDER BY destination, key ${sql.lock('FOR UPDATE')}`,
      values,
    )
    return rows.map(keyRow)
  }
  return {
    ...segmentRows(sql, own),
    ...own,
    key: async (destination, key) => (await locked('destination = ? AND key = ?', [destination, key]))[0],
    keysOf: async (segment, indexes) => (await locked('segment = ?', [segment])).filter(({ index }) => indexes.includes(index)),
    flag: ({ destination, key }) =>
      sql.run('UPDATE order_keys SET skip = ? WHERE destination = ? AND key = ?', [sql.flag(true), destination, key]),
  }
}
