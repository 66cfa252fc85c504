// The rows that lists of deliveries are made of, as an adapter gives them: shipments, attempts, failures and replays.

import type { Awaitable } from '../encoding/row-port.ts'
import type { StoredPart } from '../encoding/stored-parts.ts'
import type { LedgerRow } from '../port/books.ts'
import type { DeliveryRow, FailureCause } from '../port/history.ts'
import type { RowId } from '../port/model.ts'
import type { TimeRange } from '../port/pages.ts'
import type { NamedDelivery, OriginRows } from './named-deliveries.ts'
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

/** A delivery as the row says that it came to its state. */
export type FoundDelivery<Id extends RowId> = NamedDelivery<Id> & Pick<DeliveryRow, 'state' | 'reason' | 'attempts' | 'replay' | 'atMs'>

/** A delivery that did not end as delivered. */
export interface FailureRow<Id extends RowId> extends FoundDelivery<Id> {
  id: Id
  atMs: number
}

export interface AttemptRow<Id extends RowId> extends Omit<FailureRow<Id>, 'index' | 'state' | 'reason'> {
  /** Of its doc; 0: it ended nothing that is asked for. */
  bytes: number
}

/** With when a delivery was asked for that repeats another. */
export type ReplayLinks = Pick<DeliveryRow, 'replayOf' | 'replayJobId' | 'replayedBy'> & { replayedAtMs: number | null }

/** Deliveries of one destination that came to one state. */
export type CauseShare = Pick<FailureCause, 'destinationId' | 'state'>
/** A group of a share by its reason. */
export type CauseRow = Omit<FailureCause, keyof CauseShare | 'isPartial'>

export interface DeliveryRows<Id extends RowId> extends SegmentRows<Id>, OriginRows<Id> {
  /** The row of a destination; undefined when there never was one. */
  destination(id: string): Awaitable<Id | undefined>
  /** Where the pending work of a destination begins, or of all. */
  firstPending(destination: Id | null): PendingPlace
  /** From a place on, some at a time, in an order that a row keeps while it is claimed and released. */
  pending(destination: Id | null, from: PendingPlace): AsyncIterable<readonly PendingRow<Id>[]>
  /** Newest first, with names from `first` to `last`. */
  attempts(destination: Id | null, deliveredOnly: boolean, first: Id, last: Id, limit: number): Awaitable<readonly AttemptRow<Id>[]>
  /** JSON of AttemptDoc. One may be megabytes, with what receivers answered to each message of a batch. */
  docs(attempts: readonly Id[]): Awaitable<readonly { id: Id; doc: string }[]>
  /** Failures, likewise newest first. Narrowed to a destination or a state only where an index leads to just those: the caller looks at each. */
  failures(destination: Id | null, state: string | undefined, first: Id, last: Id, limit: number): Awaitable<readonly FailureRow<Id>[]>
  /** Of each delivery, in order. */
  replayLinks(deliveries: readonly NamedDelivery<Id>[]): Awaitable<readonly ReplayLinks[]>
  /** Failures of a destination and state by reason: the newest `limit` with names from `first` to `last`. */
  causes(of: CauseShare, first: Id, last: Id, times: TimeRange, limit: number): Awaitable<readonly CauseRow[]>
  ledger(): Awaitable<readonly LedgerRow[]>
  /** In the order in which they were made. */
  attemptsAt(origin: Id): Awaitable<readonly { at: number; attempt: number; doc: string }[]>
  /** Retries whose parts may name the origin, the next one first, among the first ROWS_PER_PAGE of the destination. */
  retriesOf(destination: Id, origin: Id): Awaitable<readonly { dueAtMs: number; parts: readonly StoredPart<Id>[] }[]>
}
