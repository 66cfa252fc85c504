// What columns hold of messages by their place in a segment: the parts of a shipment and the routes of a segment, as JSON in which rows
// are named as the adapter names them.

import type { Part, RowId } from '../port/model.ts'

/** Parts as stored: 0 for all messages of the segment. Whoever reads leaves out what is absent from the segment. */
export type StoredPart<Id extends RowId = RowId> = [origin: Id, segment: Id, indexes: readonly number[] | 0]

/**
 * Where messages were to go, as the segment keeps it: `s` shipments with how many were planned, `k` what was kept back and
 * why, which of a filter is followed by its rule. Destinations by their row; 0 for none. What is absent has to be left out.
 */
export interface Routes<Id extends RowId = RowId> {
  s: [destination: Id, origin: Id, indexes: readonly number[] | 0, planned: number][]
  k?: [destination: Id, reason: string, indexes: readonly number[] | 0][]
}

export function storedParts(parts: readonly Part[]): string {
  return JSON.stringify(parts.map(({ origin, segment, indexes }) => [origin, segment, indexes]))
}

/** Which of a segment's messages a part or a route stands for. A purged message is still owed until its delivery is cancelled. */
export function owedIndexes(stored: readonly number[] | 0, count: number, absent: readonly number[] | null): number[] {
  const all = stored === 0 ? Array.from({ length: count }, (_, index) => index) : [...stored]
  if (absent === null || absent.length === 0) return all
  const isAbsent = new Set(absent)
  return all.filter((index) => !isAbsent.has(index))
}
