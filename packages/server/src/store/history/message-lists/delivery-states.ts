// The states of the deliveries in a list of messages. They are derived from the attempts, because no table has a row for each delivery: a delivery that no
// attempt has ended is pending. The work is bounded; deliveries whose attempts were not read have no state.

import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import type { Awaitable } from '../../encoding/sql.ts'
import type { DeliveryState, RowId } from '../../store.ts'

export interface Ending<Id extends RowId> {
  id: Id
  origin: Id
  delivered: number
  /** Whether all deliveries that it ended were delivered. */
  isOnlyDelivered: boolean
  bytes: number
}

/** The row port. */
export interface EndingRows<Id extends RowId> {
  /** The attempts of these origins that ended deliveries, oldest first, at most `limit`. `bytes`: the size of the doc. */
  endings(origins: readonly Id[], limit: number): Awaitable<readonly Ending<Id>[]>
  /** AttemptDoc as JSON. */
  endingDocs(attempts: readonly Id[]): Awaitable<readonly { id: Id; doc: string }[]>
}

/** The maximum number of attempts of one page. Each ended at least one delivery. */
export const MAX_ENDINGS = 20_000
/** The maximum size of the docs that one page reads. Most are not read: if an attempt delivered all messages, that is known without them. */
const DOC_BYTES = 4 * 1024 * 1024
const DOCS_AT_ONCE = 200

export interface PlacedDelivery<Id extends RowId> {
  origin: Id
  index: number
  /** The number of messages that were planned for the origin, if it is known. */
  planned: number | null
}

export interface KnownState {
  state: DeliveryState
  reason: string | null
}

const PENDING: KnownState = { state: 'pending', reason: null }
const DELIVERED: KnownState = { state: 'delivered', reason: null }

/** Returns the state of each delivery in the same order; undefined if it is not known. */
export async function deliveryStates<Id extends RowId>(
  rows: EndingRows<Id>,
  deliveries: readonly PlacedDelivery<Id>[],
): Promise<(KnownState | undefined)[]> {
  const origins = [...new Set(deliveries.map(({ origin }) => origin))]
  if (origins.length === 0) return []
  const endings = await rows.endings(origins, MAX_ENDINGS)
  // The attempts of an origin may have been cut off by the limit.
  const isComplete = endings.length < MAX_ENDINGS
  const plannedOf = new Map(deliveries.map(({ origin, planned }) => [origin, planned]))
  const delivered = new Map<Id, number>()
  for (const { origin, delivered: count, isOnlyDelivered } of endings) {
    delivered.set(origin, isOnlyDelivered ? (delivered.get(origin) ?? 0) + count : Number.NEGATIVE_INFINITY)
  }
  const isAllDelivered = (origin: Id): boolean => (delivered.get(origin) ?? 0) >= (plannedOf.get(origin) ?? Number.POSITIVE_INFINITY)
  const found = new Map<string, KnownState>()
  const unread = new Set<Id>()
  let bytesLeft = DOC_BYTES
  const wanted = endings.filter(({ origin }) => !isAllDelivered(origin))
  for (let at = 0; at < wanted.length; at += DOCS_AT_ONCE) {
    const some = wanted.slice(at, at + DOCS_AT_ONCE).filter(({ origin, bytes }) => {
      if (bytesLeft >= bytes) {
        bytesLeft -= bytes
        return true
      }
      unread.add(origin)
      return false
    })
    const originOf = new Map(some.map(({ id, origin }) => [id, origin]))
    for (const { id, doc } of await rows.endingDocs(some.map((ending) => ending.id))) {
      for (const [state, reason, indexes] of (JSON.parse(doc) as AttemptDoc).f) {
        for (const index of indexes) found.set(`${originOf.get(id)}-${index}`, { state, reason })
      }
    }
  }
  return deliveries.map(({ origin, index }) => {
    if (isAllDelivered(origin)) return DELIVERED
    const known = found.get(`${origin}-${index}`)
    if (known !== undefined) return known
    return isComplete && !unread.has(origin) ? PENDING : undefined
  })
}
