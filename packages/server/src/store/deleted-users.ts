// Users whose messages are not to be sent any more, from the moment a deletion is known here until its purge is over: a purge
// takes its time, and what it has not reached is still in the store, in memory, or on its way from one to the other. Everything
// that goes to whoever sends passes here. What is deleted comes without its content, as if it had been purged already. What is
// in flight at that moment is not called back. The same for every store.

import type { JsonObject } from '@switchyard/protocol'
import { isOfUsers } from './encoding/purged-content.ts'
import type { ClaimedShipment, IsDeleted, RowId, SegmentContent, Taker } from './store.ts'

/** The messages that a deletion is about. */
export interface DeletedMessages {
  /** Null: of every source. */
  sourceIds: ReadonlySet<string> | null
  userIds: ReadonlySet<string>
  /** Whether the deletion is about what was accepted in this segment: what came later may stay. */
  covers: (segment: RowId, sourceId: string, message: JsonObject) => boolean
}

export class DeletedUsers {
  readonly #open = new Map<RowId, DeletedMessages>()
  readonly #taker: () => Taker | null

  constructor(taker: () => Taker | null) {
    this.#taker = taker
  }

  has(deletion: RowId): boolean {
    return this.#open.has(deletion)
  }

  get deletions(): IterableIterator<RowId> {
    return this.#open.keys()
  }

  /** When it returns, nothing that the deletion is about will be sent any more. */
  add(deletion: RowId, deleted: DeletedMessages): void {
    this.#open.set(deletion, deleted)
    this.#taker()?.deleted((...message) => isDeleted(deleted, ...message))
  }

  /** Its purge is over, and so is every reading that began before. */
  remove(deletion: RowId): void {
    this.#open.delete(deletion)
  }

  without(claimed: ClaimedShipment): ClaimedShipment {
    if (this.#open.size === 0) return claimed
    const contents = new Map<RowId, SegmentContent>()
    for (const [segment, content] of claimed.contents) {
      const isGone = (item: JsonObject | null): boolean => item !== null && this.#isDeleted(content.sourceId, segment, item)
      contents.set(
        segment,
        content.items.some(isGone) ? { ...content, items: content.items.map((item) => (isGone(item) ? null : item)) } : content,
      )
    }
    return { ...claimed, contents }
  }

  /** Between the store and the taker. */
  guard(taker: Taker): Taker {
    return {
      wants: (destinationId, bytes) => taker.wants(destinationId, bytes),
      take: (claimed) => taker.take(this.without(claimed)),
      lost: (destinationId, bytes) => taker.lost(destinationId, bytes),
      deleted: (isDeleted) => taker.deleted(isDeleted),
      wake: (destinationId) => taker.wake(destinationId),
      reshare: () => taker.reshare?.(),
      fenced: () => taker.fenced?.(),
    }
  }

  #isDeleted(...message: Parameters<IsDeleted>): boolean {
    for (const deleted of this.#open.values()) if (isDeleted(deleted, ...message)) return true
    return false
  }
}

function isDeleted({ sourceIds, userIds, covers }: DeletedMessages, ...[sourceId, segment, message]: Parameters<IsDeleted>): boolean {
  // The message that tells of a deletion is no message of the user.
  if (message['type'] === 'delete' || !isOfUsers(message, userIds)) return false
  return (sourceIds === null || sourceIds.has(sourceId)) && covers(segment, sourceId, message)
}
