// Events of the delivery stage, for the log, the metrics and the live view. app.ts connects the listeners. Events are emitted after the
// fact; a listener cannot change anything.

import { traceIdOf } from '../outbound/trace-context.ts'
import type { Destination, Part, RowId, Settlement } from '../store/store.ts'
import type { BreakerState } from './lanes/breaker.ts'
import type { Unsent } from './senders/protocol.ts'
import type { Flight } from './sending/flights.ts'
import { type Outcome, rejectionOutcome } from './sending/outcome.ts'
import type { Member } from './shipments/member.ts'
import { traceOf } from './shipments/task.ts'

export type { Verdict } from '../destinations/kind.ts'
export type { BreakerState } from './lanes/breaker.ts'

/** A request to one URL has ended. */
export interface AttemptEvent {
  destination: Destination
  deliveryId: string
  /** The source of the first message, to which the delivery id belongs as well. */
  sourceId: string
  count: number
  /** Reading a field of a message, except its source and its time, parses the messages again. */
  messages: readonly AttemptedMessage[]
  /** From 1. */
  attempt: number
  replay: boolean
  startedAtMs: number
  /** The trace id of the request; null if it has none. */
  traceId: string | null
  url: string
  outcome: Outcome
}

export interface AttemptedMessage {
  messageId: string | null
  sourceId: string
  type: string | null
  /** The message as sent; null if it cannot be serialized. */
  json: string | null
  receivedAtMs: number
}

/** The results of the deliveries in one settlement, emitted once the settlement is durable. */
export interface SettledEvent {
  destination: Destination
  delivered: number
  failed: number
  expired: number
  cancelled: number
  /** Deliveries that were attempted and will be retried. */
  retried: number
  /** How many of the deliveries that failed, expired or will be retried are messages of the source `system`. */
  system?: { failed: number; expired: number }
}

/** A request that at least one URL answered with success. */
export interface DeliveredEvent {
  destination: Destination
  messages: readonly AttemptedMessage[]
  replay: boolean
  /** When the first successful response arrived, in wall time. */
  atMs: number
}

export interface DeliveryEvents {
  attempted(event: AttemptEvent): void
  /** Called once per successful request, after `attempted`. */
  delivered?(event: DeliveredEvent): void
  settled?(event: SettledEvent): void
  breaker(destination: Destination, state: BreakerState): void
  /** Called for a bug, or when the store rejects a settlement. */
  trouble(destination: Destination, error: unknown): void
}

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

export function settledEvent(destination: Destination, { done, kept, remaining, records, system }: Settlement): SettledEvent {
  const event: SettledEvent = { destination, delivered: 0, failed: 0, expired: 0, cancelled: 0, retried: 0 }
  for (const { finals } of records) for (const { state, indexes } of finals) event[state] += indexes.length
  // Deliveries that were not started keep their attempt number and are not retries.
  const attempt = (done[0] ?? kept[0]?.shipment)?.attempt ?? 0
  const retried = remaining.filter((left) => left.attempt > attempt).flatMap(({ parts }) => parts)
  for (const { indexes } of retried) event.retried += indexes.length
  if (system !== undefined) event.system = failuresOf(system, records, retried)
  return event
}

function failuresOf(
  origins: ReadonlySet<RowId>,
  records: Settlement['records'],
  retried: readonly Part[],
): { failed: number; expired: number } {
  const counts = { failed: 0, expired: 0 }
  for (const { origin, finals } of records) {
    if (!origins.has(origin)) continue
    for (const { state, indexes } of finals) {
      if (state === 'failed' || state === 'expired') counts.failed += indexes.length
      if (state === 'expired') counts.expired += indexes.length
    }
  }
  for (const { origin, indexes } of retried) if (origins.has(origin)) counts.failed += indexes.length
  return counts
}
