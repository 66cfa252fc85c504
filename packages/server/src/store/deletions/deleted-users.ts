// Users whose messages must not be sent any more, from the moment this node learns of a deletion until its purge is complete. A purge
// takes time, and messages that it has not reached yet are still in the store, in memory, or being passed from the store to delivery.
// Every message that the store passes to delivery goes through here. The content of a deleted message is removed, as if it had been
// purged already. A request that is in flight at that moment is not cancelled. Used by both adapters.

import type { JsonObject } from '@switchyard/protocol'
import type { SegmentBody } from '../port/stored-messages.ts'
import { withoutDeleted } from '../port/without-deleted.ts'
import type { ClaimedShipment, IsDeleted, RowId, Settlement, ShipmentConsumer } from '../store.ts'
import { isOfUsers } from './purged-content.ts'

/** The messages that a deletion is about. */
export interface DeletedMessages {
  /** Null means all sources. */
  sourceIds: ReadonlySet<string> | null
  userIds: ReadonlySet<string>
  /** Whether the deletion covers messages accepted in this segment. Later ones are not deleted. */
  covers: (segment: RowId, sourceId: string, message: JsonObject) => boolean
}

export class DeletedUsers {
  readonly #open = new Map<RowId, DeletedMessages>()
  /** Their purges are complete, but settlements that were built before may still be written. */
  readonly #purged = new Map<RowId, DeletedMessages>()
  readonly #consumer: () => ShipmentConsumer | null

  constructor(consumer: () => ShipmentConsumer | null) {
    this.#consumer = consumer
  }

  /** When this returns, no message that the deletion covers will be sent any more. */
  add(deletion: RowId, deleted: DeletedMessages): void {
    this.#open.set(deletion, deleted)
    this.#consumer()?.dropMessages((...message) => isDeleted(deleted, ...message))
  }

  /** Must be called only when the purge is complete and every read that began before has ended. Settlements are still checked. */
  purged(deletion: RowId): void {
    const deleted = this.#open.get(deletion)
    if (deleted === undefined) return
    this.#open.delete(deletion)
    this.#purged.set(deletion, deleted)
  }

  /** Must be called only when, in addition, no settlement from before the deletion can still be written. */
  remove(deletion: RowId): void {
    this.#open.delete(deletion)
    this.#purged.delete(deletion)
  }

  /** Leaves out the data of deleted users. Must be called right before the settlement is written. */
  withoutUsers(settlement: Settlement): Settlement {
    const all = [...this.#open.values(), ...this.#purged.values()]
    if (all.length === 0) return settlement
    return withoutDeleted(settlement, (...message) => all.some((deleted) => isDeleted(deleted, ...message)))
  }

  without(claimed: ClaimedShipment): ClaimedShipment {
    if (this.#open.size === 0) return claimed
    const bodies = new Map<RowId, SegmentBody>()
    for (const [segment, body] of claimed.bodies) {
      const { sourceId, items } = body.content
      const gone = items.flatMap((item, at) => (item !== null && this.#isDeleted(sourceId, segment, item) ? [at] : []))
      bodies.set(segment, gone.length > 0 ? body.without(gone) : body)
    }
    return { ...claimed, bodies }
  }

  /** Wraps a consumer so that it receives no content of deleted messages. */
  guard(consumer: ShipmentConsumer): Required<ShipmentConsumer> {
    return {
      reserve: (destinationId, bytes, messages) => consumer.reserve(destinationId, bytes, messages),
      deliver: (claimed) => consumer.deliver(this.without(claimed)),
      cancelReservation: (destinationId, bytes) => consumer.cancelReservation(destinationId, bytes),
      dropMessages: (isDeleted) => consumer.dropMessages(isDeleted),
      wake: (destinationId, work) => consumer.wake(destinationId, work),
      partitionsChanged: (change) => consumer.partitionsChanged?.(change),
      sharesChanged: () => consumer.sharesChanged?.(),
      claimsLost: () => consumer.claimsLost?.(),
      writable: (isWritable) => consumer.writable?.(isWritable),
    }
  }

  #isDeleted(...message: Parameters<IsDeleted>): boolean {
    for (const deleted of this.#open.values()) if (isDeleted(deleted, ...message)) return true
    return false
  }
}

function isDeleted({ sourceIds, userIds, covers }: DeletedMessages, ...[sourceId, segment, message]: Parameters<IsDeleted>): boolean {
  // The message that announces a deletion to receivers does not count as a message of the user.
  if (message['type'] === 'delete' || !isOfUsers(message, userIds)) return false
  return (sourceIds === null || sourceIds.has(sourceId)) && covers(segment, sourceId, message)
}
