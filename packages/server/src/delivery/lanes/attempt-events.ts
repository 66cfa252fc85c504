// Emits the events of the attempts of a flight.

import { traceIdOf } from '../../outbound/trace-context.ts'
import type { Destination } from '../../store/store.ts'
import type { AttemptEvent, DeliveryEvents } from '../events/events.ts'
import { rejectionOutcome } from '../link/outcome.ts'
import type { Unsent } from '../link/protocol.ts'
import type { Member } from '../shipments/member.ts'
import type { UnitOutcome } from '../shipments/part-record.ts'
import { deliveryIdOf, traceOf } from '../shipments/unit.ts'
import type { Flight } from './flights.ts'

export function emitAttempts(events: DeliveryEvents, destination: Destination, flight: Flight): void {
  const { unit, results } = flight
  const messages = unit.members
  const traceId = traceIdOf(traceOf(unit))
  let deliveredAtMs: number | null = null
  for (const result of results) {
    const { startedAtMs, outcome } = result
    if (outcome.verdict === 'success') {
      const answeredAtMs = startedAtMs + outcome.timings.totalMs
      if (deliveredAtMs === null || answeredAtMs < deliveredAtMs) deliveredAtMs = answeredAtMs
    }
    events.attempted(attemptOf(destination, flight, messages, traceId, result))
  }
  if (deliveredAtMs === null) return
  const ran = results[0]?.outcome.ran
  const delivered = ran === undefined ? messages : messages.filter((_, position) => ran.messages[position]?.verdict === 'success')
  if (delivered.length > 0) events.delivered?.({ destination, messages: delivered, replay: flight.replay, atMs: deliveredAtMs })
}

/** Emits an attempt for each message that failed before it was sent. A message that the transformation dropped did not fail. */
export function emitRejections(events: DeliveryEvents, destination: Destination, flight: Flight, unsent: readonly Unsent[]): void {
  const { startedAtMs } = flight
  const url = flight.urlAt(flight.urls[0] as number)
  for (const { position, why } of unsent) {
    if (typeof why === 'string' || why.reason === 'dropped_by_transformation') continue
    const member = flight.unit.members[position] as Member
    events.attempted(
      attemptOf(destination, flight, [member], traceIdOf(member.trace), { url, startedAtMs, outcome: rejectionOutcome(why) }),
    )
  }
}

function attemptOf(
  destination: Destination,
  { attempt, replay }: Flight,
  messages: readonly Member[],
  traceId: string | null,
  { url, startedAtMs, outcome }: Omit<UnitOutcome, 'version'>,
): AttemptEvent {
  const deliveryId = deliveryIdOf(messages)
  const { sourceId } = messages[0] as Member
  return { destination, deliveryId, sourceId, count: messages.length, messages, attempt, replay, startedAtMs, traceId, url, outcome }
}
