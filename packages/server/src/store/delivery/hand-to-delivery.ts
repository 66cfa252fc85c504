// After a batch is committed, passes the shipments for which delivery has reserved memory to delivery, without reading them from the store.

import { type SegmentAbout, SegmentBody } from '../port/stored-messages.ts'
import type { AcceptBatch, AcceptResult, RowId, Shipment, ShipmentConsumer } from '../store.ts'

/** A destination for which a shipment is planned, and whether delivery has reserved memory for the shipment. */
export interface PlannedHandOver {
  destinationId: string
  isReserved: boolean
}

export interface Accepted extends AcceptResult {
  /** The shipments for which delivery has reserved memory. They are already claimed. */
  claimed: Shipment[]
  /** The ids of the destinations whose shipments stay in the store until they are claimed. */
  unclaimed: string[]
  /** The same for those whose shipments are ordered. */
  ordered: string[]
}

export function handToDelivery(
  consumer: ShipmentConsumer | null,
  accepted: Accepted,
  planned: readonly PlannedHandOver[],
  { content, body }: Pick<AcceptBatch, 'content' | 'body'>,
): void {
  if (consumer === null) return
  const { segment, duplicates, claimed, unclaimed, ordered } = accepted
  const bytes = body.length
  const { sourceId, receivedAtMs, ip, browser, trace, violations } = content
  const about: SegmentAbout = { sourceId, receivedAtMs, ip, browser, trace }
  if (violations !== undefined) about.violations = violations
  for (const shipment of claimed) {
    const own = new SegmentBody(body, about, duplicates, duplicates.length === 0 ? content : null)
    consumer.deliver({ shipment, bodies: new Map([[segment as RowId, own]]), bytes })
  }
  if (claimed.length < planned.length) {
    const isClaimed = new Set(claimed.map(({ destinationId }) => destinationId))
    cancelReservations(
      consumer,
      planned.filter(({ destinationId }) => !isClaimed.has(destinationId)),
      bytes,
    )
  }
  for (const destinationId of unclaimed) consumer.wake(destinationId)
  // Each destination once: it may have a shipment for each partition.
  for (const destinationId of new Set(ordered)) consumer.wake(destinationId, 'ordered')
}

/** Releases the memory that delivery has reserved for shipments that were not stored. */
export function cancelReservations(consumer: ShipmentConsumer | null, planned: readonly PlannedHandOver[], bytes: number): void {
  for (const { destinationId, isReserved } of planned) if (isReserved) consumer?.cancelReservation(destinationId, bytes)
}

/** A shipment that was never attempted. */
export function freshShipment(id: RowId, claim: number, destinationId: string, segment: RowId, indexes: readonly number[]): Shipment {
  return {
    id,
    claim,
    destinationId,
    attempt: 0,
    firstAttemptAtMs: null,
    dueAtMs: 0,
    unit: false,
    progress: null,
    replay: false,
    parts: [{ origin: id, segment, indexes }],
  }
}
