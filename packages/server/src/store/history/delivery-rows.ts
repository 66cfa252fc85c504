// The row port of lists of deliveries: shipments, attempts, failures and replays.

import type { Awaitable } from '../encoding/row-port.ts'
import type { StoredPart } from '../encoding/stored-parts.ts'
import type { LedgerRow } from '../port/books.ts'
import type { DeliveryRow, FailureCause } from '../port/history.ts'
import type { RowId } from '../port/model.ts'
import type { TimeRange } from '../port/pages.ts'
import type { OriginRows, ResolvedDelivery } from './delivery-ids.ts'
import type { SegmentRows } from './segment-rows.ts'

/** The position of a pending shipment in the adapter's order. A cursor contains it. */
export type PendingPlace = readonly (number | string)[]

/** A shipment that is pending. */
export interface PendingRow<Id extends RowId> {
  place: PendingPlace
  destination: Id
  attempts: number
  replay: boolean
  dueAtMs: number
  parts: readonly StoredPart<Id>[]
}

/** A delivery with the state from its row. */
export type FoundDelivery<Id extends RowId> = ResolvedDelivery<Id> & Pick<DeliveryRow, 'state' | 'reason' | 'attempts' | 'replay' | 'atMs'>

/** A delivery that did not end as delivered. */
export interface FailureRow<Id extends RowId> extends FoundDelivery<Id> {
  id: Id
  atMs: number
}

export interface AttemptRow<Id extends RowId> extends Omit<FailureRow<Id>, 'index' | 'state' | 'reason'> {
  /** The size of its doc; 0 if it ended no delivery that matches the query. */
  bytes: number
}

/** `replayedAtMs`: when the replay was requested; null if the delivery is not a replay. */
export type ReplayLinks = Pick<DeliveryRow, 'replayOf' | 'replayJobId' | 'replayedBy'> & { replayedAtMs: number | null }

/** Deliveries of one destination that ended in the same state. */
export type CauseShare = Pick<FailureCause, 'destinationId' | 'state'>
/** The deliveries of a share that have the same reason. */
export type CauseRow = Omit<FailureCause, keyof CauseShare | 'isPartial'>

export interface DeliveryRows<Id extends RowId> extends SegmentRows<Id>, OriginRows<Id> {
  /** The row id of a destination; undefined if it never existed. */
  destination(id: string): Awaitable<Id | undefined>
  /** The position of the first pending shipment of a destination, or of all destinations if `destination` is null. */
  firstPending(destination: Id | null): PendingPlace
  /**
   * Reads shipments from a position on, some at a time. The order is stable: claiming or releasing a shipment does not change its position. Shipments
   * that were never attempted and are older than `first` may be left out, because their row ids are in the order of time.
   */
  pending(destination: Id | null, from: PendingPlace, first: Id): AsyncIterable<readonly PendingRow<Id>[]>
  /** Newest first, with row ids from `first` to `last`. */
  attempts(destination: Id | null, deliveredOnly: boolean, first: Id, last: Id, limit: number): Awaitable<readonly AttemptRow<Id>[]>
  /** AttemptDoc as JSON. One doc may be several megabytes, because it contains the responses of receivers to each message of a batch. */
  docs(attempts: readonly Id[]): Awaitable<readonly { id: Id; doc: string }[]>
  /** The attempts of these origins with these numbers, oldest first, and the size of their docs. A call in parts has several with one number. */
  numberedAttempts(of: readonly { origin: Id; attempt: number }[]): Awaitable<readonly { id: Id; origin: Id; bytes: number }[]>
  /** Failures, also newest first. An adapter may ignore `destination` and `state` if no index helps: the caller checks each row. */
  failures(destination: Id | null, state: string | undefined, first: Id, last: Id, limit: number): Awaitable<readonly FailureRow<Id>[]>
  /** One for each delivery, in the same order. */
  replayLinks(deliveries: readonly ResolvedDelivery<Id>[]): Awaitable<readonly ReplayLinks[]>
  /** Failures of a destination and state, grouped by reason: the newest `limit` with row ids from `first` to `last`. */
  causes(of: CauseShare, first: Id, last: Id, times: TimeRange, limit: number): Awaitable<readonly CauseRow[]>
  ledger(): Awaitable<readonly LedgerRow[]>
  /** In the order in which the attempts were made. */
  attemptsAt(origin: Id): Awaitable<readonly { at: number; attempt: number; doc: string }[]>
  /** Retries whose parts may contain the origin, ordered by due time. Looks at the first ROWS_PER_PAGE retries of the destination. */
  retriesOf(destination: Id, origin: Id): Awaitable<readonly { dueAtMs: number; parts: readonly StoredPart<Id>[] }[]>
}
