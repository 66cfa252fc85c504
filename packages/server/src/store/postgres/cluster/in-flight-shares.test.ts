import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onShares, shareOf } from './in-flight-shares.ts'
import type { Membership } from './membership.ts'

test('a node without a valid lease has no share', () => {
  assert.equal(shareOf('dst_1', 10, { count: 2, rank: 0, isLeaseValid: true }), 5)
  assert.equal(shareOf('dst_1', 10, { count: 2, rank: 0, isLeaseValid: false }), 0)
})

test('listeners are called when a node joins or leaves, and when this node has joined again', () => {
  const listeners: (() => void)[] = []
  const membership = { holder: '1', rank: 0, count: 1, onChange: (listener: () => void) => listeners.push(listener) }
  let calls = 0
  onShares(membership as unknown as Membership, () => calls++)
  const after = (change: Partial<typeof membership>): number => {
    Object.assign(membership, change)
    calls = 0
    for (const listener of listeners) listener()
    return calls
  }
  assert.equal(after({}), 1, 'the first time')
  assert.equal(after({}), 0)
  assert.equal(after({ count: 2 }), 1)
  assert.equal(after({ rank: 1 }), 1)
  assert.equal(after({}), 0)
  assert.equal(after({ holder: '2' }), 1)
})
