// What operators see and do about keys of ordered destinations that wait or are held: see model/order/key-states.ts.

import type { RowId } from '../../model/messages.ts'
import type { NewAuditEntry } from './audit.ts'
import type { Page, PageRequest } from './pages.ts'

/** The message for which a key waits, or that holds it. */
export interface OrderHead {
  /** Null if it was purged. */
  messageId: string | null
  deliveryId: string
  /** Pending if the key waits. */
  state: 'pending' | 'failed' | 'expired'
  attempts: number
  /** Why the last attempt failed. Null if that is not known any more. */
  reason: string | null
  /** When the next attempt is due, in schedule time; null if there is none. */
  dueAtMs: number | null
}

export interface OrderedKey {
  /** The text of the key, read from the head. Null if the message was purged, or contains no such value. */
  key: string | null
  state: 'waiting' | 'held'
  /** The number of messages that wait behind the head. */
  waiting: number
  /** Since when it is not free. */
  sinceMs: number
  /** Whether an operator has skipped the head, which ends when its running attempt is over. */
  skipping: boolean
  head: OrderHead
}

export interface OrderCounts {
  waitingKeys: number
  heldKeys: number
  /** Without heads. */
  waitingMessages: number
}

/** Of a destination with keys that wait or are held. */
export interface OrderCountsRow extends OrderCounts {
  destinationId: string
}

export interface OrderView extends OrderCounts {
  oldest: OrderedKey | null
  /** Oldest first. */
  keys: Page<OrderedKey>
}

/** What was done about a key. */
export interface KeyAction {
  state: 'waiting' | 'held'
  deliveryId: string
  segment: RowId
  /** Whether the head has ended, or the key is released. False if the head ends when its running attempt is over. */
  isOver: boolean
}

export type KeyActionResult = ({ ok: true } & KeyAction) | { ok: false; reason: 'not_waiting' | 'not_head' }

/** `after` of audit entries is filled in: the delivery, and the state that the key had. */
export interface OrderStore {
  read(destinationId: string, page: PageRequest): Promise<OrderView>
  counts(destinationId: string): Promise<OrderCounts>
  /** The same for all destinations in one query. Those without waiting and held keys are left out. */
  allCounts(): Promise<OrderCountsRow[]>
  /** How many keys have more waiting messages than this; at most 1,000. */
  crowded(destinationId: string, maxWaiting: number): Promise<number>
  /**
   * Ends the head of a waiting key as cancelled, or releases a held key. With `messageId`, only if that is the head. If the head is being attempted, it
   * ends when the attempt is over, unless that succeeds.
   */
  skip(destinationId: string, key: string, messageId: string | undefined, audit?: NewAuditEntry): Promise<KeyActionResult>
  /** Makes the head of a waiting key due now. Does nothing to a held key: replay its head with `resume`. */
  retryNow(destinationId: string, key: string, messageId: string | undefined, audit?: NewAuditEntry): Promise<KeyActionResult>
}
