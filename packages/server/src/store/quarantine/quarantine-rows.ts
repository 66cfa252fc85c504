// The row port of the quarantine.

import type { Awaitable } from '../encoding/row-port.ts'
import type { OriginRows } from '../history/delivery-ids.ts'
import type { SegmentRows } from '../history/segment-rows.ts'
import type { RowId } from '../port/model.ts'
import type { OwedAgain } from '../replays/replay-rows.ts'

/** A message in quarantine. */
export interface Place<Id extends RowId> {
  segment: Id
  index: number
}

export interface QuarantineRow<Id extends RowId> extends Place<Id> {
  planId: string
  rule: string
}

export interface LockedSegment<Id extends RowId> {
  seq: Id
  source: Id
  sourceDeleted: boolean
  routes: string
  bytes: number
}

export interface HeldQuery<Id extends RowId> {
  /** The row id of the source. */
  source?: Id | undefined
  planId?: string | undefined
  rule?: string | undefined
  /** The first row, and the direction in which the others follow. */
  from: Place<Id>
  oldestFirst: boolean
  limit: number
}

export interface QuarantineReadRows<Id extends RowId> extends SegmentRows<Id> {
  /** The row id of a source; undefined if it never existed. */
  source(id: string): Awaitable<Id | undefined>
  held(query: HeldQuery<Id>): Awaitable<readonly QuarantineRow<Id>[]>
  heldAt(places: readonly Place<Id>[]): Awaitable<readonly QuarantineRow<Id>[]>
}

/** Inside the transaction that ends the quarantine of messages. */
export interface QuarantineChanges<Id extends RowId> extends Pick<OriginRows<Id>, 'parseId'> {
  /** Locks the segments, so that the quarantine of their messages cannot end in another transaction. Segments that are not stored are missing. */
  lock(segments: readonly Id[]): Awaitable<readonly LockedSegment<Id>[]>
  /** Deletes the rows of messages whose segments are locked, and returns those that existed. */
  take(places: readonly Place<Id>[]): Awaitable<readonly Place<Id>[]>
  /** Locks the destinations against deletion until the transaction ends. Those that never existed are missing. */
  destinations(ids: readonly string[]): Awaitable<readonly { num: Id; id: string; deleted: boolean }[]>
  owe(shipments: readonly OwedAgain<Id>[], atMs: number): Awaitable<unknown>
  saveRoutes(segment: Id, routes: string): Awaitable<void>
  /** Counts messages of a source that left the quarantine. */
  count(source: Id, outcome: 'released' | 'deleted', count: number): Awaitable<void>
}
