// The store as delivery uses it: shipments are claimed, settled and released.

import type { JsonObject } from '@switchyard/protocol'
import type { FinalStateName, Part, RequestRecord, RowId, SegmentContent } from './model.ts'

/** Deliveries to one destination that are attempted together. */
export interface Shipment {
  id: RowId
  /** Which claim of it this is: the fence against settling what another has taken. */
  claim: number
  destinationId: string
  /** Attempts made so far. */
  attempt: number
  /** In schedule time, as dueAtMs: see clock.ts. Null before the first attempt. */
  firstAttemptAtMs: number | null
  dueAtMs: number
  /** A batch, sent and retried as one request. */
  unit: boolean
  /** The URLs that are left to try; null: all that the destination has. From the store they come without the values of queries: see hidden-url.ts. */
  urls: readonly string[] | null
  replay: boolean
  parts: readonly Part[]
}

export interface ClaimedShipment {
  shipment: Shipment
  /** By segment. A segment that is gone (purged whole) is missing. */
  contents: ReadonlyMap<RowId, SegmentContent>
  /** Bytes of the segments as stored: what holding it in memory is charged with. */
  bytes: number
}

export type ShipmentDraft = Omit<Shipment, 'id' | 'claim'>

export interface FinalState {
  state: FinalStateName
  reason: string | null
  indexes: readonly number[]
}

/** What happened to the messages of one part in one attempt. */
export interface AttemptRecord {
  origin: RowId
  segment: RowId
  /** The attempt's number, from 1; 0 when none was made (cancelled, expired while waiting). */
  attempt: number
  replay: boolean
  atMs: number
  requests: readonly RequestRecord[]
  finals: readonly FinalState[]
}

/** A claimed shipment that is not over: it stays held under the same claim, with fewer deliveries. */
export interface KeptShipment {
  /** As it was before. */
  shipment: Shipment
  /** What is left of it, at least one delivery. */
  parts: readonly Part[]
}

/**
 * One atomic change: claimed shipments go, or are kept with what is left of them; what is owed another attempt is stored as new
 * shipments, held by nobody; and what happened is recorded. The next settlement of a shipment that was kept is made when this
 * one has ended.
 */
export interface Settlement {
  destinationId: string
  done: readonly Shipment[]
  kept: readonly KeptShipment[]
  remaining: readonly ShipmentDraft[]
  records: readonly AttemptRecord[]
}

export interface ClaimRequest {
  destinationId: string
  nowMs: number
  /** Most shipments that were never attempted. */
  maxFresh: number
  /** Most shipments that wait for a retry and are due. */
  maxRetries: number
  /** Stops after the shipment that passes this. */
  maxBytes: number
}

export interface Claim {
  shipments: readonly ClaimedShipment[]
  /** Whether there are more fresh ones than were asked for. */
  moreFresh: boolean
  /** When the next unclaimed retry is due; null when none waits. */
  nextRetryAtMs: number | null
}

/** Takes a message as it was accepted, or only the fields that tell whose it is: type, userId, previousId. */
export type IsDeleted = (sourceId: string, segment: RowId, message: JsonObject) => boolean

/** The taker of new work, so that the usual way is accept → deliver from memory → settle, with nothing read back. */
export interface Taker {
  /** Asked before the commit: whether the new shipment is to be taken at once rather than left in the store. */
  wants(destinationId: string, bytes: number): boolean
  /** After the commit, what was wanted. */
  take(claimed: ClaimedShipment): void
  /** The commit failed: what was wanted does not exist. */
  lost(destinationId: string, bytes: number): void
  /** Messages of these users were deleted: those that are not in flight must not be sent any more. */
  deleted(isDeleted: IsDeleted): void
  /** New work that was not asked for came to the store: retries by replay, deletions, shipments left in the store. */
  wake(destinationId: string): void
  /** This process's shares of destinations' limits may be others than before: see DeliveryStore.share. */
  reshare?(): void
  /** What this process holds is no longer its own. What was not started is forgotten, not given back: others may have it. */
  fenced?(): void
}

export interface DeliveryStore {
  attach(taker: Taker): void
  claim(request: ClaimRequest): Promise<Claim>
  /** Retries whose first attempt lies before a time, due or not: those whose window is over. */
  claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): Promise<readonly ClaimedShipment[]>
  /** Gives back what was claimed and not attempted. */
  release(shipments: readonly Shipment[]): void
  /** Resolves after the commit. Tries again by itself while the store is unavailable. Rejects with NotHeld. */
  settle(settlement: Settlement): Promise<void>
  /** How many of the requests that may be in flight to a destination at once are this process's: all, where it is alone. */
  share(destinationId: string, maxInFlight: number): number
}

/** What was to be settled is no longer held by this process: its time ran out, and another has it or had it. */
export class NotHeld extends Error {
  override name = 'NotHeld'
}
