// Reads the keys of an ordered destination that wait or are held, oldest first, with their heads.
// The text of a key is read from a message. Of a purged message nothing is shown.

import { groupBy } from '../encoding/group-by.ts'
import { lastReasons } from '../history/deliveries.ts'
import type { DeliveryRows } from '../history/delivery-rows.ts'
import { messageFields } from '../history/message-content.ts'
import { rowCursorOf } from '../history/paging.ts'
import { eachMessage } from '../history/waiting-for.ts'
import type { KeyRow } from '../order-keys/key-rows.ts'
import { keyTextIn } from '../order-keys/key-text.ts'
import type { OrderCounts, OrderCountsRow, OrderedKey, OrderView, PageRequest, RowId } from '../store.ts'
import type { OrderReadRows } from './order-rows.ts'

export interface OrderSnapshot<Id extends RowId> {
  deliveries: DeliveryRows<Id>
  keys: OrderReadRows<Id>
}

export interface OrderReads {
  /** `by`: the setting of the destination. */
  read(destinationId: string, by: string, page: PageRequest): Promise<OrderView>
  counts(destinationId: string): Promise<OrderCounts>
  allCounts(): Promise<OrderCountsRow[]>
  crowded(destinationId: string, maxWaiting: number): Promise<number>
}

const NOTHING: OrderCounts = { waitingKeys: 0, heldKeys: 0, waitingMessages: 0 }

export function orderReads<Id extends RowId>(inSnapshot: <T>(work: (rows: OrderSnapshot<Id>) => Promise<T>) => Promise<T>): OrderReads {
  return {
    read: (destinationId, by, { limit, cursor }) =>
      inSnapshot(async ({ deliveries, keys }) => {
        const start = rowCursorOf(deliveries.order, 'o', cursor, [0, 0] as const)
        const destination = await deliveries.destination(destinationId)
        if (destination === undefined) return { ...NOTHING, oldest: null, keys: { data: [], next: null } }
        const rows = await keys.keys(destination, start, limit + 1)
        const [first] = cursor === null ? rows : await keys.keys(destination, [0, 0], 1)
        const data = await described(deliveries, rows.slice(0, limit), by)
        const [oldest = null] = cursor === null ? data : await described(deliveries, first === undefined ? [] : [first], by)
        const next = rows[limit]
        const place = next === undefined ? null : JSON.stringify(['o', next.since, next.key])
        return { ...(await countsOf(keys, destination)), oldest, keys: { data, next: place } }
      }),
    counts: (destinationId) =>
      inSnapshot(async ({ deliveries, keys }) => {
        const destination = await deliveries.destination(destinationId)
        return destination === undefined ? NOTHING : countsOf(keys, destination)
      }),
    allCounts: () =>
      inSnapshot(async ({ keys }) => {
        const rows = groupBy(await keys.allCounts(), ({ id }) => id)
        return Array.from(rows, ([destinationId, own]) => ({ destinationId, ...sumOf(own) }))
      }),
    crowded: (destinationId, maxWaiting) =>
      inSnapshot(async ({ deliveries, keys }) => {
        const destination = await deliveries.destination(destinationId)
        return destination === undefined ? 0 : keys.crowded(destination, maxWaiting)
      }),
  }
}

async function countsOf<Id extends RowId>(keys: OrderReadRows<Id>, destination: Id): Promise<OrderCounts> {
  return sumOf(await keys.counts(destination))
}

function sumOf(rows: readonly { state: string; keys: number; waiting: number }[]): OrderCounts {
  const keysIn = (state: string): number => rows.find((row) => row.state === state)?.keys ?? 0
  return {
    waitingKeys: keysIn('waiting'),
    heldKeys: keysIn('held'),
    waitingMessages: rows.reduce((sum, { waiting }) => sum + waiting, 0),
  }
}

async function described<Id extends RowId>(deliveries: DeliveryRows<Id>, rows: readonly KeyRow<Id>[], by: string): Promise<OrderedKey[]> {
  if (rows.length === 0) return []
  const seed = await deliveries.seed()
  const found = rows.map(({ origin, index, segment, destination, attempts, due }) => {
    return { origin, index, segment, destination, attempts, replay: false, state: 'pending', reason: null, atMs: due } as const
  })
  const reasons = await lastReasons(deliveries, found)
  const messages = new Map<KeyRow<Id>, { messageId: string | null; key: string | null }>()
  await eachMessage(deliveries, rows, (row, content) => {
    messages.set(row, { messageId: messageFields(content, row.index).messageId, key: keyTextIn(content, row.index, row.key, seed, by) })
  })
  return rows.map((row) => {
    const { state, waiting, since, skip, origin, index, ended, attempts, due } = row
    const { messageId = null, key = null } = messages.get(row) ?? {}
    const deliveryId = `${origin}-${index}`
    const isHeld = state === 'held'
    const head = {
      messageId,
      deliveryId,
      state: isHeld ? (ended ?? 'failed') : ('pending' as const),
      attempts,
      reason: reasons.get(deliveryId) ?? null,
      dueAtMs: isHeld ? null : due,
    }
    return { key, state: state as 'waiting' | 'held', waiting, sinceMs: since, skipping: skip, head }
  })
}
