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

/** Delivery, as the store calls it. New shipments are handed over in memory, so that in the usual case nothing is read back from the store. */
export interface ShipmentConsumer {
  /**
   * Called before the commit. If it returns true, the new shipment is passed to `deliver` after the commit, and memory for it is reserved until
   * then. If it returns false, the shipment stays in the store until it is claimed.
   */
  reserve(destinationId: string, bytes: number): boolean
  /** Called after the commit with a shipment for which `reserve` returned true. */
  deliver(claimed: ClaimedShipment): void
  /** The shipment for which `reserve` returned true was not stored, because the commit failed or every message of it was a duplicate. */
  cancelReservation(destinationId: string, bytes: number): void
  /** Messages were deleted. Those that are not in flight must no longer be sent. */
  dropMessages(isDeleted: IsDeleted): void
  /** The store has new work for the destination that can be claimed: replays, delete messages, or shipments that were not handed over. */
  wake(destinationId: string): void
  /** This process's shares of the destinations' limits may have changed: see DeliveryStore.share. */
  sharesChanged?(): void
  /**
   * This process has lost its claims. Shipments that were not started must be dropped from memory and not released, because another process may
   * hold them now.
   */
  claimsLost?(): void
}

export interface DeliveryStore {
  attach(consumer: ShipmentConsumer): void
  claim(request: ClaimRequest): Promise<Claim>
  /** Retries whose first attempt lies before a time, due or not: those whose window is over. */
  claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): Promise<readonly ClaimedShipment[]>
  /** Gives back what was claimed and not attempted. */
  release(shipments: readonly Shipment[]): void
  /** Resolves after the commit. Tries again by itself while the store is unavailable. Rejects with ClaimLost. */
  settle(settlement: Settlement): Promise<void>
  /** How many of the requests that may be in flight to a destination at once are this process's: all, where it is alone. */
  share(destinationId: string, maxInFlight: number): number
}

/** The shipment cannot be settled: this process no longer holds it. Its lease expired, and another process holds it or has settled it. */
export class ClaimLost extends Error {
  override name = 'ClaimLost'
}
