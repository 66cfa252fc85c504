// After a batch is committed: its new work goes to delivery, straight from memory, as far as delivery wanted it.

import type { AcceptResult, RowId, SegmentContent, Shipment, Taker } from '../store.ts'

/** What was planned for a destination, and whether delivery wanted to have it at once. */
export interface Wanted {
  destinationId: string
  own: boolean
}

export interface Accepted extends AcceptResult {
  /** Those that were wanted, claimed. */
  owned: Shipment[]
  /** Destinations for which work was left in the store. */
  left: string[]
}

/** `bytes`: of the body, as delivery was asked with. */
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

/** What was wanted does not come. */
export function lose(taker: Taker | null, wanted: readonly Wanted[], bytes: number): void {
  for (const { destinationId, own } of wanted) if (own) taker?.lost(destinationId, bytes)
}
