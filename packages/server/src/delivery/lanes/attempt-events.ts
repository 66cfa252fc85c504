// Emits the events of the attempts of a flight.

import { traceIdOf } from '../../outbound/trace-context.ts'
import type { Destination } from '../../store/store.ts'
import type { DeliveryEvents } from '../events/events.ts'
import { rejectionOutcome } from '../link/outcome.ts'
import type { Unsent } from '../link/protocol.ts'
import type { Member } from '../shipments/member.ts'
import { traceOf } from '../shipments/unit.ts'
import type { Flight } from './flights.ts'

export function emitAttempts(events: DeliveryEvents, destination: Destination, { unit, deliveryId, results }: Flight): void {
  const { shipment, sourceId } = unit.members[0] as Member
  const { replay } = shipment
  const messages = unit.members
  const traceId = traceIdOf(traceOf(unit))
  let deliveredAtMs: number | null = null
  for (const { url, startedAtMs, outcome } of results) {
    if (outcome.verdict === 'success') {
      const answeredAtMs = startedAtMs + outcome.timings.totalMs
      if (deliveredAtMs === null || answeredAtMs < deliveredAtMs) deliveredAtMs = answeredAtMs
    }
    events.attempted({
      destination,
      deliveryId,
      sourceId,
      count: messages.length,
      messages,
      attempt: shipment.attempt + 1,
      replay,
      startedAtMs,
      traceId,
      url,
      outcome,
    })
  }
  if (deliveredAtMs === null) return
  const ran = results[0]?.outcome.ran
  const delivered = ran === undefined ? messages : messages.filter((_, position) => ran.messages[position]?.verdict === 'success')
  if (delivered.length > 0) events.delivered?.({ destination, messages: delivered, replay, atMs: deliveredAtMs })
}

/** Emits an attempt for each message that failed before it was sent. A message that the transformation dropped did not fail. */
export function emitRejections(events: DeliveryEvents, destination: Destination, flight: Flight, unsent: readonly Unsent[]): void {
  for (const { position, why } of unsent) {
    if (typeof why === 'string' || why.reason === 'dropped_by_transformation') continue
    const member = flight.unit.members[position] as Member
    events.attempted({
      destination,
      deliveryId: `${String(member.content.origin)}-${member.index}`,
      sourceId: member.sourceId,
      count: 1,
      messages: [member],
      attempt: flight.attempt,
      replay: flight.replay,
      startedAtMs: flight.startedAtMs,
      traceId: traceIdOf(member.trace),
      url: flight.urlAt(flight.urls[0] as number),
      outcome: rejectionOutcome(why),
    })
  }
}
