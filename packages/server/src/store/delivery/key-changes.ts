// What a settlement changes about keys, from the shipments that it ends and those that it adds. Pure; both adapters apply the changes in the
// transaction of the settlement. Settlements of shipments without keys change none.

import type { OrderKey } from '../../model/order/order-key.ts'
import type { AttemptRecord, KeyChange, KeyedMessage, Part, Settlement, ShipmentDraft } from '../store.ts'
import { splitWaiting } from './ordered-shipments.ts'

export function keyChanges({ done, kept, remaining, holds = [] }: Settlement): KeyChange[] {
  const isOrdered = done.some(({ order }) => order !== undefined) || kept.some(({ shipment }) => shipment.order !== undefined)
  if (!isOrdered) return []
  const changes = new Map<OrderKey, KeyChange>()
  const mark = (event: KeyChange['event'], parts: readonly Part[], head: Pick<KeyChange, 'attempts' | 'dueAtMs'> = {}): void => {
    for (const message of keyedMessages(parts))
      if (changes.get(message.key)?.event !== event) changes.set(message.key, { ...message, event, ...head })
  }
  // A key of a new shipment is free until a message of it fails.
  for (const { order, parts } of [...done, ...kept.map(({ shipment }) => shipment)]) {
    if (order?.row === 'waiting') mark('advanced', parts)
    else if (order?.row === 'head') mark('ended', parts)
  }
  // A head of which a part is still in flight has not ended.
  for (const { shipment, parts } of kept) {
    if (shipment.order?.row === 'head') for (const { key } of keyedMessages(parts)) changes.delete(key)
  }
  // Of several messages of a failed batch, the first one holds the key.
  for (const hold of holds) if (changes.get(hold.key)?.event !== 'hold') changes.set(hold.key, { ...hold, event: 'hold' })
  for (const { parts, order, attempt, dueAtMs } of remaining)
    if (order?.row === 'head') mark('retry', parts, { attempts: attempt, dueAtMs })
  return [...changes.values()]
}

export function* keyedMessages(parts: readonly Part[]): Iterable<KeyedMessage> {
  for (const { origin, segment, indexes, keys = [] } of parts) {
    for (const [at, key] of keys.entries()) yield { key, origin, segment, index: indexes[at] as number }
  }
}

/** Leaves out of a head what an operator has ended while it was attempted. Returns the draft without these messages, if any are left, and their records. */
export function withoutSkipped(
  draft: ShipmentDraft,
  atMs: number,
  isSkipped: (key: OrderKey) => boolean,
): { draft: ShipmentDraft | null; records: AttemptRecord[] } {
  const { free, waiting } = splitWaiting(draft.parts, (key) => !isSkipped(key))
  if (waiting.size === 0) return { draft, records: [] }
  const { attempt, replay } = draft
  const records = [...waiting.values()].flat().map((part) => skippedRecord(part, { attempt, replay, atMs }))
  return { draft: free.length === 0 ? null : { ...draft, parts: free }, records }
}

export function skippedRecord(
  { origin, segment, indexes }: Part,
  { attempt, replay, atMs }: Pick<AttemptRecord, 'attempt' | 'replay' | 'atMs'>,
): AttemptRecord {
  const finals = [{ state: 'cancelled' as const, reason: 'skipped_by_operator', indexes }]
  return { origin, segment, attempt, replay, atMs, requests: [], finals }
}
