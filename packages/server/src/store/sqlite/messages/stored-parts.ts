// The parts of a shipment as its column holds them.

import type { Part } from '../../store.ts'

/** Indexes: 0 for all messages of the segment. */
export type StoredPart = [origin: number, segment: number, indexes: readonly number[] | 0]

export function storedParts(parts: readonly Part[]): string {
  return JSON.stringify(parts.map(({ origin, segment, indexes }) => [origin, segment, indexes]))
}
