import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onShares, shareOf } from './in-flight-shares.ts'
import type { Membership } from './membership.ts'

test('a node that is not sure of its lease has no share', () => {
  assert.equal(shareOf('dst_1', 10, { count: 2, rank: 0, isLeaseValid: true }), 5)
  assert.equal(shareOf('dst_1', 10, { count: 2, rank: 0, isLeaseValid: false }), 0)
})

test('shares are told to be others when a node comes or goes, and when this one is another', () => {
  const beats: (() => void)[] = []
  const membership = { holder: '1', rank: 0, count: 1, onChange: (listener: () => void) => beats.push(listener) }
  let told = 0
  onShares(membership as unknown as Membership, () => told++)
  const after = (change: Partial<typeof membership>): number => {
    Object.assign(membership, change)
    told = 0
    for (const beat of beats) beat()
    return told
  }
  assert.equal(after({}), 1, 'the first time')
  assert.equal(after({}), 0)
  assert.equal(after({ count: 2 }), 1)
  assert.equal(after({ rank: 1 }), 1)
  assert.equal(after({}), 0)
  assert.equal(after({ holder: '2' }), 1)
})
