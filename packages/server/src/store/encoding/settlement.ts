// A settlement on its way to the rows: attempts in the form they are stored in, and the refusal of one that does not add
// up. For each origin, the deliveries that come in and those that go out must be the same: compared by how many,
// by their sum and by the sum of their squares, which no one delivery lost, doubled or swapped for another leaves unchanged.

import type { AttemptRecord, Part, RowId, Settlement } from '../store.ts'
import { writeAttemptDoc } from './attempt-doc.ts'

/** An attempt record with its requests already in the form they are stored in. */
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
    throw new Error(`a settlement for ${destinationId} does not add up: of ${origin}, ${count} deliveries are left without a state`)
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
