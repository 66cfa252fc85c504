// The rows that lists of deliveries are made of, as an adapter gives them: shipments, attempts, failures and replays.

import type { Awaitable } from '../encoding/row-port.ts'
import type { StoredPart } from '../encoding/stored-parts.ts'
import type { LedgerRow } from '../port/books.ts'
import type { DeliveryState, FailureCause } from '../port/history.ts'
import type { RowId } from '../port/model.ts'
import type { Times } from './paging.ts'
import type { SegmentRows } from './segment-rows.ts'

/** Where a row of pending work lies in the adapter's order: what a cursor holds of it. */
export type PendingPlace = readonly (number | string)[]

/** A shipment. */
export interface PendingRow<Id extends RowId> {
  place: PendingPlace
  destination: Id
  attempts: number
  replay: boolean
  dueAtMs: number
  parts: readonly StoredPart<Id>[]
}

/** Which delivery of which message. */
export interface NamedDelivery<Id extends RowId> {
  origin: Id
  index: number
  segment: Id
  destination: Id
}

/** A delivery as the row says that it came to its state. */
export interface FoundDelivery<Id extends RowId> extends NamedDelivery<Id> {
  state: DeliveryState
  reason: string | null
  attempts: number
  replay: boolean
  atMs: number | null
}

/** A delivery that did not end as delivered. */
export interface FailureRow<Id extends RowId> extends FoundDelivery<Id> {
  id: Id
  atMs: number
}

export interface AttemptRow<Id extends RowId> extends Omit<FailureRow<Id>, 'index' | 'state' | 'reason'> {
  /** JSON of AttemptDoc; null: it ended nothing that is asked for. */
  doc: string | null
}

/** What a delivery's name stands for. */
export interface Origin<Id extends RowId> {
  destination: Id
  segment: Id
  indexes: readonly number[]
  replay: boolean
}

/** What a delivery repeats and when that was asked for, and the newest of its message to the same destination if that is later. */
export interface ReplayLinks<Id extends RowId> {
  replayOf: string | null
  replayJobId: string | null
  replayedAtMs: number | null
  replayedBy: Id | null
}

/** Deliveries of one destination that came to one state. */
export interface CauseShare {
  destinationId: string
  state: FailureCause['state']
}

/** A group of a share by its reason, and the delivery that is its newest. */
export interface CauseRow {
  reason: string | null
  count: number
  first: number
  last: number
  origin: RowId
  idx: number
}

export interface DeliveryRows<Id extends RowId> extends SegmentRows<Id> {
  /** The row of a destination; undefined when there never was one. */
  destination(id: string): Awaitable<Id | undefined>
  /** Where the pending work of a destination begins, or of all. */
  firstPending(destination: Id | null): PendingPlace
  /** From a place on, some at a time, in an order that a row keeps while it is claimed and released. */
  pending(destination: Id | null, from: PendingPlace): AsyncIterable<readonly PendingRow<Id>[]>
  /** Newest first, with names from `first` to `last`. */
  attempts(destination: Id | null, deliveredOnly: boolean, first: Id, last: Id, limit: number): Awaitable<readonly AttemptRow<Id>[]>
  /** The same of failures. Narrowed to a destination or a state only where an index leads to just those: the caller looks at each. */
  failures(destination: Id | null, state: string | undefined, first: Id, last: Id, limit: number): Awaitable<readonly FailureRow<Id>[]>
  /** Of each delivery, in order. */
  replayLinks(deliveries: readonly NamedDelivery<Id>[]): Awaitable<readonly ReplayLinks<Id>[]>
  /** Failures of a destination and state by reason: the newest `limit` with names from `first` to `last`. */
  causes(of: CauseShare, first: Id, last: Id, times: Times, limit: number): Awaitable<readonly CauseRow[]>
  ledger(): Awaitable<readonly LedgerRow[]>
  origin(name: Id): Awaitable<Origin<Id> | undefined>
  /** In the order in which they were made. */
  attemptsAt(origin: Id): Awaitable<readonly { at: number; attempt: number; doc: string }[]>
  /** Retries whose parts may name the origin, the next one first, among the first ROWS_PER_PAGE of the destination. */
  retriesOf(destination: Id, origin: Id): Awaitable<readonly { dueAtMs: number; parts: readonly StoredPart<Id>[] }[]>
}
