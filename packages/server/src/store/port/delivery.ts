// The part of the port that delivery uses: claims, settles and releases shipments.

import type { JsonObject } from '@switchyard/protocol'
import type { FinalStateName, Part, Progress, RequestRecord, RowId, TraceContext } from '../../model/messages.ts'
import type { KeyEvent, OrderedRow } from '../../model/order/key-states.ts'
import type { OrderKey } from '../../model/order/order-key.ts'
import type { StateChange } from './integration-state.ts'
import type { SegmentBody } from './stored-messages.ts'

/** Deliveries to one destination that are attempted together. */
export interface Shipment {
  id: RowId
  /** The number of this claim. A settlement under an older number is rejected, because another holder has claimed the shipment since. */
  claim: number
  destinationId: string
  /** Attempts made so far. */
  attempt: number
  /** In schedule time, like dueAtMs: see clock.ts. Null before the first attempt. */
  firstAttemptAtMs: number | null
  dueAtMs: number
  /** Whether this is a batch that is sent and retried as one request. */
  unit: boolean
  progress: Progress
  replay: boolean
  parts: readonly Part[]
  /** Only if its messages are delivered in order. Then its parts have keys. */
  order?: OrderedPlace | undefined
}

/** Where a shipment whose messages are delivered in order is in the store. */
export interface OrderedPlace {
  row: OrderedRow
  /** The place in the order of acceptance. */
  ord: RowId
  /** The key of all its messages, if they wait behind others. */
  key?: OrderKey | undefined
}

export interface ClaimedShipment {
  shipment: Shipment
  /** By segment. A segment that was purged completely is missing. */
  bodies: ReadonlyMap<RowId, SegmentBody>
  /** The stored size of the segments. Counts against the memory limit while the shipment is held in memory. */
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
  /** The number of the attempt, from 1. 0 if no attempt was made: cancelled, or expired while waiting. */
  attempt: number
  replay: boolean
  atMs: number
  requests: readonly RequestRecord[]
  finals: readonly FinalState[]
  /** The messages that are owed to another destination from now on, because their delivery failed or expired. */
  deadLetter?: DeadLetterNote | undefined
}

/** Which messages of a record became dead letters. The messageId of each is the prefix followed by its index. */
export interface DeadLetterNote {
  destinationId: string
  prefix: string
  indexes: readonly number[]
  /** Alerts about that destination. It does not get them as dead letters either. */
  withheld?: readonly number[] | undefined
}

/**
 * Messages of one source whose deliveries failed or expired, as they are owed to another destination: a new segment with one message for each.
 * The items have `messageId`, and the fields that identify the user of the original message, so that they are deleted with the user.
 */
export interface DeadLetters {
  /** The destination that they are owed to. If it was deleted meanwhile, nothing is stored. */
  destinationId: string
  sourceId: string
  /** When the deliveries ended, in wall time. */
  atMs: number
  trace: TraceContext | null
  /** The approximate size of the items. */
  bytes: number
  /** What the original messages had in common because they were sent as a batch. The items do not repeat it. */
  context?: JsonObject | null
  integrations?: JsonObject | null
  items: readonly (JsonObject & { messageId: string })[]
}

/** A claimed shipment that is settled in part. It stays claimed, under the same claim, with fewer deliveries. */
export interface KeptShipment {
  /** The shipment before this settlement. */
  shipment: Shipment
  /** The remaining deliveries, at least one. */
  parts: readonly Part[]
}

/**
 * One atomic change. Claimed shipments are deleted (`done`), or kept with their remaining deliveries (`kept`). Deliveries that need another attempt
 * are stored as new, unclaimed shipments (`remaining`). The attempts are recorded (`records`). Dead letters are stored, and owed to their
 * destination (`letters`). What an integration keeps for later messages is stored (`state`). A shipment that was kept may be settled again only after this settlement has resolved.
 */
export interface Settlement {
  destinationId: string
  done: readonly Shipment[]
  kept: readonly KeptShipment[]
  remaining: readonly ShipmentDraft[]
  records: readonly AttemptRecord[]
  letters?: readonly DeadLetters[] | undefined
  state?: readonly StateChange[] | undefined
  /** The keys that are held from now on, because a message failed or expired. */
  holds?: readonly HeldKey[] | undefined
  /** The origins of parts that are messages of the source `system`, if there are any. Their failures cause no alerts. */
  system?: ReadonlySet<RowId> | undefined
  /** The messages that the records are about, so that data of users who were deleted meanwhile can be left out: see without-deleted.ts. */
  bodyOf?: ((segment: RowId) => SegmentBody | undefined) | undefined
}

/** A message and its key. */
export interface KeyedMessage {
  key: OrderKey
  origin: RowId
  segment: RowId
  index: number
}

/** A key that is held, the message that holds it, and how that ended. */
export interface HeldKey extends KeyedMessage {
  attempts?: number | undefined
  ended?: 'failed' | 'expired' | undefined
}

/** What a settlement changes about a key. */
export interface KeyChange extends HeldKey {
  event: KeyEvent
  /** When the head is due, in schedule time. Only if the event is `retry`. */
  dueAtMs?: number | undefined
}

/** The head of keys of which too many messages wait. */
export interface CrowdedHead {
  claimed: ClaimedShipment
  /** These of its keys. */
  keys: ReadonlySet<OrderKey>
}

export interface ClaimRequest {
  destinationId: string
  nowMs: number
  /** The maximum number of shipments that were never attempted. */
  maxFresh: number
  /** The maximum number of retries that are due. */
  maxRetries: number
  /** Claims no more shipments once their total size exceeds this. */
  maxBytes: number
}

export interface Claim {
  shipments: readonly ClaimedShipment[]
  /** Whether there are more shipments that were never attempted. */
  moreFresh: boolean
  /** When the next unclaimed retry is due; null if there is none. */
  nextRetryAtMs: number | null
}

export interface OrderedClaimRequest {
  destinationId: string
  nowMs: number
  /** The maximum number of shipments that were never attempted, of heads that are due, and of shipments of draining keys. */
  maxFresh: number
  maxHeads: number
  maxWaiting: number
  /** Claims no more shipments once their total size exceeds this. */
  maxBytes: number
  /**
   * Keys with messages on their way back to the store. The lane gives other messages of these keys back at once. So the store leaves them out as far as
   * it can, and gives new ones only in shipments of their own. Otherwise they would go back only when the last message of their request has ended,
   * and the key might wait for one request after the other without end.
   */
  leaving?: readonly OrderKey[] | undefined
}

export interface OrderedClaim {
  /** Heads first, then new shipments, then those of draining keys, each in the order in which they are to be sent. */
  shipments: readonly ClaimedShipment[]
  /** Whether there are more shipments that were never attempted, or of draining keys. */
  more: boolean
  /** When the next unclaimed head is due; null if there is none. */
  nextHeadAtMs: number | null
}

/** `message` is a message as it was accepted, or only the fields that identify its user: type, userId, previousId. */
export type IsDeleted = (sourceId: string, segment: RowId, message: JsonObject) => boolean

/** `gained`: there may be more to claim. `leaving`: what was claimed and not started must be released, so that another process can deliver it. */
export type PartitionChange = 'gained' | 'leaving'

/** Delivery, as the store calls it. New shipments are handed over in memory, so that in the usual case nothing is read back from the store. */
export interface ShipmentConsumer {
  /**
   * Called before the commit. If it returns true, the new shipment is passed to `deliver` after the commit, and memory for it is reserved until
   * then. If it returns false, the shipment stays in the store until it is claimed. `messages`: how many are in the batch.
   */
  reserve(destinationId: string, bytes: number, messages?: number): boolean
  /** Called after the commit with a shipment for which `reserve` returned true. */
  deliver(claimed: ClaimedShipment): void
  /** The shipment for which `reserve` returned true was not stored, because the commit failed or every message of it was a duplicate. */
  cancelReservation(destinationId: string, bytes: number): void
  /** Messages were deleted. Those that are not in flight must no longer be sent. */
  dropMessages(isDeleted: IsDeleted): void
  /**
   * The store has new work for the destination that can be claimed: replays, delete messages, or shipments that were not handed over. `ordered`: only
   * shipments that are delivered in order.
   */
  wake(destinationId: string, work?: 'ordered'): void
  /** The partitions of ordered destinations that this process delivers have changed, or are about to. */
  partitionsChanged?(change: PartitionChange): void
  /** This process's shares of the destinations' limits may have changed: see DeliveryStore.share. */
  sharesChanged?(): void
  /**
   * This process has lost its claims. Shipments that were not started must be dropped from memory and not released, because another process may
   * hold them now.
   */
  claimsLost?(): void
  /**
   * Called with false when a write failed because the store is unavailable, and with true when one succeeded again. In between outcomes cannot be
   * recorded, so whatever is sent may be sent again.
   */
  writable?(isWritable: boolean): void
}

export interface DeliveryStore {
  attach(consumer: ShipmentConsumer): void
  claim(request: ClaimRequest): Promise<Claim>
  /**
   * Claims shipments whose messages are delivered in order. Messages of keys that are not free are moved behind those that wait, and not returned.
   * A process makes one such claim at a time for a destination.
   */
  claimOrdered(request: OrderedClaimRequest): Promise<OrderedClaim>
  /**
   * Until when this process may start requests of ordered destinations, in milliseconds of the monotonic clock of the machine (timing/monotonic.ts).
   * Later, another process may deliver them. Infinite if there is only one process.
   */
  orderedUntilMs(): number
  /** Claims heads of keys of which more than `maxWaiting` messages wait. */
  claimCrowded(destinationId: string, maxWaiting: number, limit: number): Promise<readonly CrowdedHead[]>
  /** Claims retries whose first attempt was before a time, so that their retry window is over, whether they are due or not. */
  claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): Promise<readonly ClaimedShipment[]>
  /** Releases shipments that were claimed and not attempted. */
  release(shipments: readonly Shipment[]): void
  /** Resolves after the commit. Retries by itself while the store is unavailable. Rejects with ClaimLost if a claim is no longer current. */
  settle(settlement: Settlement): Promise<void>
  /** This process's share of the destination's limit of requests in flight. All of it if there is only one process. */
  share(destinationId: string, maxInFlight: number): number
}

/** The shipment cannot be settled: this process no longer holds it. Its lease expired, and another process holds it or has settled it. */
export class ClaimLost extends Error {
  override name = 'ClaimLost'
}
