import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClaimedShipment, Destination } from '../../store/store.ts'
import { endingWithoutAttempt } from './expiry.ts'

const SHIPMENT = {
  id: 1,
  claim: 1,
  destinationId: 'd',
  attempt: 2,
  firstAttemptAtMs: 1,
  dueAtMs: 2,
  unit: true,
  progress: null,
  replay: false,
  parts: [{ origin: 8, segment: 7, indexes: [0, 1, 3], keys: [10, 11, 10] }],
  order: { row: 'head', ord: 8 },
} as const
const CLAIMED: ClaimedShipment = { shipment: SHIPMENT, bodies: new Map(), bytes: 10 }
const destination = (onFailure: 'skip' | 'hold') =>
  ({ id: 'd', deadLetter: null, order: { by: 'user', onFailure, maxWaiting: 100 } }) as Destination

test('of a batch, the messages of crowded keys fail, and the others are kept', () => {
  const crowded = [{ claimed: CLAIMED, keys: new Set([10]) }]
  const { done, kept, records, holds } = endingWithoutAttempt(destination('skip'), crowded, 'crowded', 5)
  assert.deepEqual([done, holds], [[], []])
  assert.deepEqual(kept[0]?.parts, [{ origin: 8, segment: 7, indexes: [1], keys: [11] }])
  assert.deepEqual(records[0]?.finals, [{ state: 'failed', reason: 'order_backlog', indexes: [0, 3] }])
})

test('an overdue head expires as a whole, and holds its keys if the destination holds keys', () => {
  const overdue = [{ claimed: CLAIMED, keys: null }]
  const { done, kept, records, holds } = endingWithoutAttempt(destination('hold'), overdue, 'overdue', 5)
  assert.deepEqual([done.length, kept.length], [1, 0])
  assert.deepEqual(records[0]?.finals, [{ state: 'expired', reason: 'retry_window_over', indexes: [0, 1, 3] }])
  assert.deepEqual(
    holds?.map(({ key, index, attempts, ended }) => [key, index, attempts, ended]),
    [
      [10, 0, 2, 'expired'],
      [11, 1, 2, 'expired'],
      [10, 3, 2, 'expired'],
    ],
  )
})
