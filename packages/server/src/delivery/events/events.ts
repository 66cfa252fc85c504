// Events of the delivery stage, for the log, the metrics and the live view. app.ts connects the listeners. Events are emitted after the
// fact; a listener cannot change anything.

import type { Destination, Part, RowId, Settlement, Shipment } from '../../store/store.ts'
import { isLoad, loadOf } from '../link/load-progress.ts'
import type { Outcome } from '../link/outcome.ts'

export type { Verdict } from '../../destinations/port/kind.ts'

/** Of a destination: see lanes/breaker.ts. */
export type BreakerState = 'closed' | 'open' | 'probing'

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
  /** The loads of a warehouse that have ended: nothing of them is left to be repeated. */
  loads?: readonly string[]
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

export function settledEvent(destination: Destination, { done, kept, remaining, records, system }: Settlement): SettledEvent {
  const event: SettledEvent = { destination, delivered: 0, failed: 0, expired: 0, cancelled: 0, retried: 0 }
  for (const { finals } of records) for (const { state, indexes } of finals) event[state] += indexes.length
  // Deliveries that were not started keep their attempt number and are not retries.
  const attempt = (done[0] ?? kept[0]?.shipment)?.attempt ?? 0
  const retried = remaining.filter((left) => left.attempt > attempt).flatMap(({ parts }) => parts)
  for (const { indexes } of retried) event.retried += indexes.length
  if (system !== undefined) event.system = failuresOf(system, records, retried)
  const left = new Set([...kept.map(({ shipment }) => shipment), ...remaining].flatMap(loadsOf))
  const loads = done.flatMap(loadsOf).filter((load) => !left.has(load))
  if (loads.length > 0) event.loads = loads
  return event
}

function loadsOf({ progress }: Pick<Shipment, 'progress'>): string[] {
  return isLoad(progress) ? [loadOf(progress).id] : []
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
