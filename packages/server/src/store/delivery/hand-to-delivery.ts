// After a batch is committed, hands those of its shipments to delivery that delivery asked for, straight from memory.

import type { AcceptResult, RowId, SegmentContent, Shipment, Taker } from '../store.ts'

/** A destination that a shipment is planned for, and whether delivery asked to get the shipment at once. */
export interface Wanted {
  destinationId: string
  own: boolean
}

export interface Accepted extends AcceptResult {
  /** The shipments that delivery asked for, already claimed. */
  owned: Shipment[]
  /** Destinations whose shipments were left in the store. */
  left: string[]
}

/** `bytes`: the size of the body that delivery was told when it was asked. */
export function handOver(taker: Taker | null, accepted: Accepted, wanted: readonly Wanted[], content: SegmentContent, bytes: number): void {
  if (taker === null) return
  const { segment, duplicates, owned, left } = accepted
  const isDuplicate = new Set(duplicates)
  const present =
    isDuplicate.size === 0 ? content : { ...content, items: content.items.map((item, at) => (isDuplicate.has(at) ? null : item)) }
  for (const shipment of owned) taker.take({ shipment, contents: new Map([[segment as RowId, present]]), bytes })
  if (owned.length < wanted.length) {
    const isOwned = new Set(owned.map(({ destinationId }) => destinationId))
    lose(
      taker,
      wanted.filter(({ destinationId }) => !isOwned.has(destinationId)),
      bytes,
    )
  }
  for (const destinationId of left) taker.wake(destinationId)
}

/** Tells delivery that shipments it asked for will not come. */
export function lose(taker: Taker | null, wanted: readonly Wanted[], bytes: number): void {
  for (const { destinationId, own } of wanted) if (own) taker?.lost(destinationId, bytes)
}
