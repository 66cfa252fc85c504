// Prepares a settlement for the rows: converts attempts to the form in which they are stored, and rejects a settlement that is not balanced. For
// each origin, the deliveries before and after must be the same. Their count, the sum of their indexes and the sum of the squares
// are compared: losing, duplicating or swapping a single delivery always changes one of these.

import type { AttemptRecord, Part, RowId, Settlement } from '../store.ts'
import { writeAttemptDoc } from './attempt-doc.ts'

/** An attempt record with its requests in the form in which they are stored. */
export interface RecordRow<Id extends RowId = RowId> {
  origin: Id
  segment: Id
  attempt: number
  atMs: number
  replay: boolean
  delivered: number
  failed: number
  expired: number
  cancelled: number
  doc: string
  /** One entry for each message that ended without success. */
  failures: { state: string; reason: string | null; index: number }[]
}

export function countOf({ parts }: { parts: readonly Part[] }): number {
  return parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
}

export function assertBalanced({ destinationId, done, kept, remaining, records }: Settlement): void {
  const sums = new Map<RowId, [count: number, sum: number, squares: number]>()
  const add = (origin: RowId, indexes: readonly number[], sign: 1 | -1): void => {
    let sum = sums.get(origin)
    if (sum === undefined) {
      sum = [0, 0, 0]
      sums.set(origin, sum)
    }
    for (const index of indexes) {
      sum[0] += sign
      sum[1] += sign * index
      sum[2] += sign * index * index
    }
  }
  for (const { parts } of done) for (const { origin, indexes } of parts) add(origin, indexes, 1)
  for (const { shipment } of kept) for (const { origin, indexes } of shipment.parts) add(origin, indexes, 1)
  for (const { parts } of kept) for (const { origin, indexes } of parts) add(origin, indexes, -1)
  for (const { parts } of remaining) for (const { origin, indexes } of parts) add(origin, indexes, -1)
  for (const { origin, finals } of records) for (const { indexes } of finals) add(origin, indexes, -1)
  for (const [origin, [count, sum, squares]] of sums) {
    if (count === 0 && sum === 0 && squares === 0) continue
    throw new Error(`unbalanced settlement for ${destinationId}: ${count} deliveries of origin ${origin} would have no state`)
  }
}

export function recordRow<Id extends RowId>(record: AttemptRecord): RecordRow<Id> {
  const counts = { delivered: 0, failed: 0, expired: 0, cancelled: 0 }
  const failures: RecordRow<Id>['failures'] = []
  for (const { state, reason, indexes } of record.finals) {
    counts[state] += indexes.length
    if (state !== 'delivered') for (const index of indexes) failures.push({ state, reason, index })
  }
  const { origin, segment, attempt, replay, atMs } = record
  return { origin: origin as Id, segment: segment as Id, attempt, atMs, replay, ...counts, doc: writeAttemptDoc(record), failures }
}
