// Columns that refer to messages by their index in a segment: the parts of a shipment and the routes of a segment. Both are JSON with the
// row ids of the adapter.

import type { Part, RowId, Skip } from '../../model/messages.ts'
import type { OrderKey } from '../../model/order/order-key.ts'

/**
 * A part as it is stored. Indexes are 0 for all messages of the segment; readers must leave out messages that are absent from it. Keys, one for each
 * index, are there only if the messages are delivered in order. Then the indexes are never 0.
 */
export type StoredPart<Id extends RowId = RowId> = [origin: Id, segment: Id, indexes: readonly number[] | 0, keys?: readonly OrderKey[]]

/**
 * The routing plan of a segment. `s`: shipments, each with the number of messages that were planned. `k`: messages that were not sent, with
 * the reason; if the reason is a filter, its rule follows. Destinations are given by their row id, 0 for none. Readers must leave out messages
 * that are absent from the segment. `q`: messages that left the quarantine, and when. `t`: after the retention time, only the messages in
 * quarantine were kept; the others are empty.
 */
export interface Routes<Id extends RowId = RowId> {
  s: [destination: Id, origin: Id, indexes: readonly number[] | 0, planned: number][]
  k?: [destination: Id, reason: string, indexes: readonly number[] | 0][]
  q?: [outcome: 'released' | 'deleted' | 'expired', atMs: number, indexes: readonly number[]][]
  t?: 1
}

/** `Routes.k` for messages that are not sent to a destination. */
export function storedSkips<Id extends RowId>(
  skips: readonly Skip[],
  numOf: (destinationId: string) => Id,
  none: Id,
): NonNullable<Routes<Id>['k']> {
  return skips.map(({ destinationId, reason, rule, indexes }) => [
    destinationId === null ? none : numOf(destinationId),
    rule === undefined ? reason : `${reason} ${rule}`,
    indexes ?? 0,
  ])
}

/** Reads the absent column: the indexes of duplicates in a segment. SQLite has a list as JSON, PostgreSQL an array. */
export function absentIndexes(column: string | readonly number[] | null): readonly number[] {
  return typeof column === 'string' ? (JSON.parse(column) as number[]) : (column ?? [])
}

export function storedParts(parts: readonly Part[]): string {
  return JSON.stringify(
    parts.map(({ origin, segment, indexes, keys }) => (keys === undefined ? [origin, segment, indexes] : [origin, segment, indexes, keys])),
  )
}

/** The part with the messages that are owed: without those that are absent from the segment. */
export function owedPart<Id extends RowId>(
  [origin, segment, stored, keys]: StoredPart<Id>,
  count: number,
  absent: readonly number[] | null,
): Part {
  const indexes = owedIndexes(stored, count, absent)
  if (keys === undefined || stored === 0) return { origin, segment, indexes }
  if (indexes.length === stored.length) return { origin, segment, indexes, keys }
  const byIndex = new Map(stored.map((index, at) => [index, keys[at] as OrderKey]))
  return { origin, segment, indexes, keys: indexes.map((index) => byIndex.get(index) as OrderKey) }
}

/** The indexes of the segment's messages that a part or a route refers to. Includes purged messages, whose deliveries are pending until they are cancelled. */
export function owedIndexes(stored: readonly number[] | 0, count: number, absent: readonly number[] | null): number[] {
  const all = stored === 0 ? Array.from({ length: count }, (_, index) => index) : [...stored]
  if (absent === null || absent.length === 0) return all
  const isAbsent = new Set(absent)
  return all.filter((index) => !isAbsent.has(index))
}
