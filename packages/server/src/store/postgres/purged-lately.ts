// Messages purged a moment ago. What was read from the store before their purge may reach whoever sends after word of it: they
// are taken out on the way. Kept for longer than such a reading can take, and no longer.

import type { ClaimedShipment, RowId, SegmentContent, Taker } from '../store.ts'
import type { PurgedMessages } from './purge-words.ts'

const KEPT_MS = 30_000

export class PurgedLately {
  #now = new Map<RowId, Set<number>>()
  #before = new Map<RowId, Set<number>>()
  #turnAt = 0

  add(purged: readonly PurgedMessages[]): void {
    this.#turn()
    for (const { segment, indexes } of purged) {
      const known = this.#now.get(segment) ?? new Set()
      for (const index of indexes) known.add(index)
      this.#now.set(segment, known)
    }
  }

  without(claimed: ClaimedShipment): ClaimedShipment {
    if (this.#now.size === 0 && this.#before.size === 0) return claimed
    this.#turn()
    const contents = new Map<RowId, SegmentContent>(claimed.contents)
    let isChanged = false
    for (const [segment, content] of claimed.contents) {
      const [now, before] = [this.#now.get(segment), this.#before.get(segment)]
      if (now === undefined && before === undefined) continue
      const items = content.items.map((item, at) => (now?.has(at) || before?.has(at) ? null : item))
      contents.set(segment, { ...content, items })
      isChanged = true
    }
    return isChanged ? { ...claimed, contents } : claimed
  }

  /** Between the store and the taker, who is handed nothing that was purged. */
  guard(taker: Taker): Taker {
    return {
      wants: (destinationId, bytes) => taker.wants(destinationId, bytes),
      take: (claimed) => taker.take(this.without(claimed)),
      lost: (destinationId, bytes) => taker.lost(destinationId, bytes),
      purged: (segment, indexes) => taker.purged(segment, indexes),
      wake: (destinationId) => taker.wake(destinationId),
      reshare: () => taker.reshare?.(),
      fenced: () => taker.fenced?.(),
    }
  }

  #turn(): void {
    const now = performance.now()
    if (now < this.#turnAt) return
    // After a long pause neither has anything that is still of use.
    this.#before = now < this.#turnAt + KEPT_MS ? this.#now : new Map()
    this.#now = new Map()
    this.#turnAt = now + KEPT_MS
  }
}
