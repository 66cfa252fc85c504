// The rows that lists of deliveries are made of, as an adapter gives them: shipments, attempts, failures and replays.

import type { Awaitable } from '../encoding/row-port.ts'
import type { StoredPart } from '../encoding/stored-parts.ts'
import type { LedgerRow } from '../port/books.ts'
import type { FailureCause } from '../port/history.ts'
import type { FinalStateName, RowId } from '../port/model.ts'
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

export interface AttemptRow<Id extends RowId> {
  id: Id
  origin: Id
  destination: Id
  segment: Id
  atMs: number
  attempts: number
  replay: boolean
  /** JSON of AttemptDoc; null: it ended nothing that is asked for. */
  doc: string | null
}

/** A delivery that did not end as delivered. */
export interface FailureRow<Id extends RowId> {
  id: Id
  origin: Id
  index: number
  destination: Id
  segment: Id
  state: FinalStateName
  reason: string | null
  attempts: number
  replay: boolean
  atMs: number
}

/** What a delivery's name stands for. */
export interface Origin<Id extends RowId> {
  destination: Id
  segment: Id
  /** 0: all of the segment but what is absent. */
  indexes: readonly number[] | 0
  replay: boolean
}

export interface NamedDelivery<Id extends RowId> {
  origin: Id
  index: number
  segment: Id
  destination: Id
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
  /** What the parts of a shipment do not say of their segments. */
  segmentFacts(names: readonly Id[]): Awaitable<readonly SegmentFacts<Id>[]>
  /** Newest first, with names from `first` to `last`. */
  attempts(destination: Id | null, deliveredOnly: boolean, first: Id, last: Id, limit: number): Awaitable<readonly AttemptRow<Id>[]>
  /** The same of failures. Narrowed to a destination or a state only where an index leads to just those: the caller looks at each. */
  failures(destination: Id | null, state: string | undefined, first: Id, last: Id, limit: number): Awaitable<readonly FailureRow<Id>[]>
  /** Of each delivery, in order. */
  replayLinks(deliveries: readonly NamedDelivery<Id>[]): Awaitable<readonly ReplayLinks<Id>[]>
  /** Which messages of a segment may be of a user is told by its keys. */
  keys(names: readonly Id[]): Awaitable<readonly { seq: Id; source: Id; keys: Uint8Array }[]>
  /** Failures of a destination and state by reason: the newest `limit` with names from `first` to `last`. */
  causes(of: CauseShare, first: Id, last: Id, times: Times, limit: number): Awaitable<readonly CauseRow[]>
  ledger(): Awaitable<readonly LedgerRow[]>
  origin(name: Id): Awaitable<Origin<Id> | undefined>
  /** In the order in which they were made. */
  attemptsAt(origin: Id): Awaitable<readonly { at: number; attempt: number; doc: string }[]>
  /** Retries whose parts may name the origin, the next one first, among the first ROWS_PER_PAGE of the destination. */
  retriesOf(destination: Id, origin: Id): Awaitable<readonly { dueAtMs: number; parts: readonly StoredPart<Id>[] }[]>
}

export interface SegmentFacts<Id extends RowId> {
  seq: Id
  count: number
  absent: readonly number[] | null
  receivedAtMs: number
}
