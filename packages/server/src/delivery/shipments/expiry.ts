// Ends deliveries without another attempt: their retry window is over, or too many messages wait behind them. Pure.

import type { OrderKey } from '../../model/order/order-key.ts'
import { withoutDeleted } from '../../store/port/without-deleted.ts'
import {
  type AttemptRecord,
  type ClaimedShipment,
  type Destination,
  type HeldKey,
  type IsDeleted,
  type KeptShipment,
  type Part,
  type RowId,
  type Settlement,
  type Shipment,
  SYSTEM_SOURCE,
} from '../../store/store.ts'
import { DeadLetterBuilder, type DeadLetterSettings } from './dead-letters.ts'

/** Why deliveries end without another attempt. */
export const WITHOUT_ATTEMPT = {
  overdue: { state: 'expired', reason: 'retry_window_over' },
  /** Too many messages with the same key wait behind the head. */
  crowded: { state: 'failed', reason: 'order_backlog' },
} as const
export type WithoutAttempt = keyof typeof WITHOUT_ATTEMPT

type EndingDestination = DeadLetterSettings & Partial<Pick<Destination, 'order'>>

/** A shipment of which the messages with these keys end. Null: all messages. */
export interface EndedShipment {
  claimed: ClaimedShipment
  keys: ReadonlySet<OrderKey> | null
}

/** Returns the settlement that ends all of these shipments as expired. */
export function expiry(
  destination: EndingDestination,
  shipments: readonly ClaimedShipment[],
  wallMs: number,
  isDeleted?: IsDeleted,
): Settlement {
  const all = shipments.map((claimed) => ({ claimed, keys: null }))
  return endingWithoutAttempt(destination, all, 'overdue', wallMs, isDeleted)
}

export function endingWithoutAttempt(
  destination: EndingDestination,
  shipments: readonly EndedShipment[],
  why: WithoutAttempt,
  wallMs: number,
  isDeleted?: IsDeleted,
): Settlement {
  const letters = DeadLetterBuilder.of(destination)
  const done: Shipment[] = []
  const kept: KeptShipment[] = []
  const holds: HeldKey[] = []
  const records: AttemptRecord[] = []
  const system = new Set<RowId>()
  const { state, reason } = WITHOUT_ATTEMPT[why]
  for (const { claimed, keys } of shipments) {
    const { shipment, bodies } = claimed
    const { attempt, replay } = shipment
    const left = keys === null ? [] : partsOf(shipment.parts, (key) => !keys.has(key))
    if (left.length === 0) done.push(shipment)
    else kept.push({ shipment, parts: left })
    for (const { origin, segment, indexes, keys: own } of keys === null
      ? shipment.parts
      : partsOf(shipment.parts, (key) => keys.has(key))) {
      if (bodies.get(segment)?.about.sourceId === SYSTEM_SOURCE) system.add(origin)
      const record: AttemptRecord = { origin, segment, attempt, replay, atMs: wallMs, requests: [], finals: [{ state, reason, indexes }] }
      records.push(letters?.add(record, bodies.get(segment)) ?? record)
      if (own === undefined || destination.order?.onFailure !== 'hold') continue
      for (const [at, index] of indexes.entries())
        holds.push({ key: own[at] as OrderKey, origin, segment, index, attempts: attempt, ended: state })
    }
  }
  const settlement: Settlement = {
    destinationId: destination.id,
    done,
    kept,
    remaining: [],
    records,
    letters: letters?.letters,
    holds,
    system: system.size > 0 ? system : undefined,
    bodyOf: (segment: RowId) => shipments.find(({ claimed }) => claimed.bodies.has(segment))?.claimed.bodies.get(segment),
  }
  return isDeleted === undefined ? settlement : withoutDeleted(settlement, isDeleted)
}

/** The messages whose keys are wanted. */
function partsOf(parts: readonly Part[], isWanted: (key: OrderKey) => boolean): Part[] {
  return parts.flatMap(({ origin, segment, indexes, keys = [] }) => {
    const places = [...indexes.keys()].filter((at) => isWanted(keys[at] as OrderKey))
    if (places.length === 0) return []
    return [{ origin, segment, indexes: places.map((at) => indexes[at] as number), keys: places.map((at) => keys[at] as OrderKey) }]
  })
}
