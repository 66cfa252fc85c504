// The shipments of a batch to ordered destinations: messages with a key are in shipments of their own, by partition, and the others in one without
// keys, as for any destination. Both adapters use this. A destination without `order` costs one lookup.

import { type OrderKey, orderKeyText, partitionOf } from '../../model/order/order-key.ts'
import type { Seed } from '../encoding/fingerprint.ts'
import { orderKeyOf } from '../encoding/order-key-hash.ts'
import type { AcceptBatch, Configuration, KeylessCount, Part, RoutedShipment } from '../store.ts'

/** A shipment of a batch. If it has keys, one for each index, it has no messages without one. */
export interface PlannedShipment extends RoutedShipment {
  keys?: readonly OrderKey[] | undefined
  partition?: number | undefined
  /** The indexes of messages that should have a key and have none. */
  keyless?: readonly number[] | undefined
}

/** `partOf`: the partition of a key. Each shipment has messages of one partition only. A store for one process puts all keys into one. */
export function plannedShipments(
  { routing, content }: Pick<AcceptBatch, 'routing' | 'content'>,
  { destinations }: Configuration,
  seed: Seed,
  partOf: (key: OrderKey) => number,
): readonly PlannedShipment[] {
  if (routing.shipments.every(({ destinationId }) => destinations.get(destinationId)?.order == null)) return routing.shipments
  return routing.shipments.flatMap((shipment): PlannedShipment[] => {
    const order = destinations.get(shipment.destinationId)?.order
    if (order == null) return [shipment]
    const { destinationId } = shipment
    const unordered: number[] = []
    const keyless: number[] = []
    const ordered = new Map<number, { indexes: number[]; keys: OrderKey[] }>()
    for (const index of shipment.indexes ?? content.items.keys()) {
      const item = content.items[index]
      const text = item == null ? null : orderKeyText(order.by, item, content)
      if (text === null) {
        unordered.push(index)
        // Dead letters have no key on purpose.
        if (item != null && item['type'] !== 'dead_letter') keyless.push(index)
        continue
      }
      const key = orderKeyOf(text, seed)
      const partition = partOf(key)
      const own = ordered.get(partition) ?? { indexes: [], keys: [] }
      own.indexes.push(index)
      own.keys.push(key)
      ordered.set(partition, own)
    }
    const planned: PlannedShipment[] = Array.from(ordered, ([partition, own]) => ({ destinationId, partition, ...own }))
    if (unordered.length > 0) planned.push({ destinationId, indexes: unordered, keyless })
    return planned
  })
}

/** How many messages of a batch have no key, by ordered destination. Undefined if all have one. */
export function keylessCounts(planned: readonly PlannedShipment[], duplicates: readonly number[]): KeylessCount[] | undefined {
  if (planned.every(({ keyless = [] }) => keyless.length === 0)) return undefined
  const repeated = new Set(duplicates)
  return planned
    .map(({ destinationId, keyless = [] }) => ({ destinationId, messages: keyless.filter((index) => !repeated.has(index)).length }))
    .filter(({ messages }) => messages > 0)
}

/** The keys of parts, in order. */
export function keysOf(parts: readonly Part[]): OrderKey[] {
  return parts.flatMap(({ keys = [] }) => keys)
}

/** Splits the parts of a shipment by partition. */
export function byPartition(parts: readonly Part[]): Map<number, Part[]> {
  const all = new Map<number, Part[]>()
  for (const { origin, segment, indexes, keys = [] } of parts) {
    const own = new Map<number, { indexes: number[]; keys: OrderKey[] }>()
    for (const [at, index] of indexes.entries()) {
      const key = keys[at] as OrderKey
      const some = own.get(partitionOf(key)) ?? { indexes: [], keys: [] }
      some.indexes.push(index)
      some.keys.push(key)
      own.set(partitionOf(key), some)
    }
    for (const [partition, some] of own) all.set(partition, [...(all.get(partition) ?? []), { origin, segment, ...some }])
  }
  return all
}

/** Splits the parts of a shipment: those with free keys, and by key those that must wait. */
export function splitWaiting(parts: readonly Part[], isFree: (key: OrderKey) => boolean): { free: Part[]; waiting: Map<OrderKey, Part[]> } {
  const free: Part[] = []
  const waiting = new Map<OrderKey, Part[]>()
  for (const { origin, segment, indexes, keys = [] } of parts) {
    const own = new Map<OrderKey | null, { indexes: number[]; keys: OrderKey[] }>()
    for (const [at, index] of indexes.entries()) {
      const key = keys[at] as OrderKey
      const group = isFree(key) ? null : key
      const some = own.get(group) ?? { indexes: [], keys: [] }
      some.indexes.push(index)
      some.keys.push(key)
      own.set(group, some)
    }
    for (const [key, some] of own) {
      const part = { origin, segment, ...some }
      if (key === null) free.push(part)
      else waiting.set(key, [...(waiting.get(key) ?? []), part])
    }
  }
  return { free, waiting }
}
