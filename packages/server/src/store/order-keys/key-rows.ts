// The rows of keys of ordered destinations that are not free. The store has only the hash of a key.

import type { KeyState } from '../../model/order/key-states.ts'
import type { OrderKey } from '../../model/order/order-key.ts'
import { isTrue, type Sql } from '../encoding/sql.ts'
import type { RowId } from '../store.ts'

/** A key that waits or is held, and its head. */
export interface KeyRow<Id extends RowId> {
  destination: Id
  key: OrderKey
  state: KeyState
  since: number
  segment: Id
  origin: Id
  index: number
  due: number | null
  attempts: number
  ended: 'failed' | 'expired' | null
  skip: boolean
  waiting: number
}

export const KEY_COLUMNS = 'destination, key, state, since, segment, origin, idx AS "index", due, attempts, ended, skip, waiting'

/** Those of the keys that wait or are held. */
export async function keysAmong<Id extends RowId>(sql: Sql<Id>, destination: Id, keys: readonly OrderKey[]): Promise<KeyRow<Id>[]> {
  const rows = await sql.all<KeyRow<Id>>(
    `SELECT ${KEY_COLUMNS} FROM order_keys WHERE destination = ? AND ${sql.among('key')} AND state IN ('waiting', 'held')`,
    [destination, sql.list(keys)],
  )
  return rows.map(keyRow)
}

export function keyRow<Id extends RowId>(row: KeyRow<Id>): KeyRow<Id> {
  return Object.assign(row, { skip: isTrue(row.skip) })
}
