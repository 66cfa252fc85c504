// What the quarantine changes in the routes of a segment: quarantined messages are in no shipment, and a message that was released or
// deleted says so. Pure.

import type { AcceptBatch, RowId, SkipReason, StoredMessage } from '../store.ts'
import { owedIndexes, type Routes } from './stored-parts.ts'

const QUARANTINED: SkipReason = 'quarantined'

/** `expired`: nobody released or deleted the message in time. */
export type QuarantineOutcome = 'released' | 'deleted' | 'expired'

/** The batch with a routing that sends none of the quarantined messages. */
export function withoutQuarantined(batch: AcceptBatch): AcceptBatch {
  const { routing, quarantined = [], messageIds } = batch
  if (quarantined.length === 0) return batch
  const held = quarantined.map(({ index }) => index)
  const others = <Of extends { indexes: readonly number[] | null }>(all: readonly Of[]): Of[] =>
    all
      .map((each) => ({ ...each, indexes: owedIndexes(each.indexes ?? 0, messageIds.length, held) }))
      .filter(({ indexes }) => indexes.length > 0)
  const skip = { destinationId: null, reason: QUARANTINED, indexes: held }
  return { ...batch, routing: { shipments: others(routing.shipments), skips: [...others(routing.skips), skip] } }
}

/** The column `routes` after messages of the segment left the quarantine. `skips`: why released messages are not sent to a destination. */
export function withOutcome(
  column: string,
  outcome: QuarantineOutcome,
  atMs: number,
  indexes: readonly number[],
  skips: NonNullable<Routes['k']> = [],
): string {
  const routes = JSON.parse(column) as Routes
  const ended = new Set(indexes)
  const k = (routes.k ?? []).flatMap(([destination, reason, of]): typeof skips => {
    if (outcome !== 'released' || reason !== QUARANTINED || of === 0) return [[destination, reason, of]]
    const left = of.filter((index) => !ended.has(index))
    return left.length === 0 ? [] : [[destination, reason, left]]
  })
  const after: Routes = { ...routes, k: [...k, ...skips], q: [...(routes.q ?? []), [outcome, atMs, indexes]] }
  return JSON.stringify(after)
}

/** Undefined if the message was never in quarantine. */
export function quarantineOf<Id extends RowId>({ k = [], q = [] }: Routes<Id>, index: number): StoredMessage['quarantine'] {
  const ended = q.find(([, , indexes]) => indexes.includes(index))
  if (ended !== undefined) return { state: ended[0], atMs: ended[1] }
  const isHeld = k.some(([, reason, indexes]) => reason === QUARANTINED && (indexes === 0 || indexes.includes(index)))
  return isHeld ? { state: 'held', atMs: null } : undefined
}
