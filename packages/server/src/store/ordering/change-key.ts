// What operators, and deletions of users, do to keys that wait or are held. Each function runs in one transaction that has locked the key, so a settlement
// or a claim comes before or after it. It works on any node: the node that delivers the partition finds the change in the store.

import type { OrderKey } from '../../model/order/order-key.ts'
import { skippedRecord } from '../delivery/key-changes.ts'
import { splitWaiting } from '../delivery/ordered-shipments.ts'
import { messageFields } from '../history/message-content.ts'
import { readSegment } from '../history/segment-rows.ts'
import type { KeyRow } from '../order-keys/key-rows.ts'
import type { KeyActionResult, RowId } from '../store.ts'
import type { OrderChanges } from './order-rows.ts'

export interface KeyRequest {
  destinationId: string
  key: OrderKey
  messageId: string | undefined
  /** The delivery that must be the head. */
  deliveryId?: string | undefined
}

type Found<Id extends RowId> = { row: KeyRow<Id> } | Extract<KeyActionResult, { ok: false }>

export async function skipKey<Id extends RowId>(rows: OrderChanges<Id>, request: KeyRequest, atMs: number): Promise<KeyActionResult> {
  const found = await find(rows, request)
  if (!('row' in found)) return found
  const { row } = found
  if (row.state === 'held') {
    await release(rows, row, atMs)
    return done(row, true)
  }
  const head = await rows.head(row)
  if (head === undefined) {
    await rows.flag(row)
    return done(row, false)
  }
  const { destination, key } = row
  const { free, waiting } = splitWaiting(head.parts, (other) => other !== key)
  await rows.keepHead(destination, head, free)
  const { attempts: attempt, replay } = head
  const ended = [...waiting.values()].flat()
  await rows.record(
    destination,
    ended.map((part) => skippedRecord(part, { attempt, replay, atMs })),
  )
  await release(rows, row, atMs)
  return done(row, true)
}

export async function retryKeyNow<Id extends RowId>(rows: OrderChanges<Id>, request: KeyRequest): Promise<KeyActionResult> {
  const found = await find(rows, request)
  if (!('row' in found)) return found
  const { row } = found
  const head = row.state === 'held' ? undefined : await rows.head(row)
  if (head !== undefined) await rows.makeDue(row.destination, head)
  return done(row, head !== undefined)
}

/**
 * Messages were purged. A key that one of them held is released, because nothing could be resumed. A head among them is due at once, and ends as
 * cancelled when it is claimed, so that what waits behind it, such as the delete message, does not wait for its retry.
 */
export async function forgetHeads<Id extends RowId>(
  rows: OrderChanges<Id>,
  purged: readonly { segment: Id; indexes: readonly number[] }[],
  atMs: number,
): Promise<void> {
  for (const { segment, indexes } of purged) {
    for (const row of await rows.keysOf(segment, indexes)) {
      if (row.state === 'held') await release(rows, row, atMs)
      else {
        const head = await rows.head(row)
        if (head !== undefined) await rows.makeDue(row.destination, head)
      }
    }
  }
}

async function find<Id extends RowId>(
  rows: OrderChanges<Id>,
  { destinationId, key, messageId, deliveryId }: KeyRequest,
): Promise<Found<Id>> {
  const destination = await rows.destination(destinationId)
  const row = destination === undefined ? undefined : await rows.key(destination, key)
  if (row === undefined) return { ok: false, reason: 'not_waiting' }
  if (deliveryId !== undefined && deliveryId !== `${row.origin}-${row.index}`) return { ok: false, reason: 'not_head' }
  if (messageId === undefined) return { row }
  const segment = await readSegment(rows, row.segment, [row.index])
  const own = segment === undefined ? null : messageFields(segment.content, row.index).messageId
  return own === messageId ? { row } : { ok: false, reason: 'not_head' }
}

async function release<Id extends RowId>(rows: OrderChanges<Id>, row: KeyRow<Id>, atMs: number): Promise<void> {
  const { key, origin, segment, index } = row
  await rows.change(row.destination, { key, origin, segment, index, event: 'skipped' }, atMs)
}

function done<Id extends RowId>({ state, origin, index, segment }: KeyRow<Id>, isOver: boolean): KeyActionResult {
  return { ok: true, state: state as 'waiting' | 'held', deliveryId: `${origin}-${index}`, segment, isOver }
}
