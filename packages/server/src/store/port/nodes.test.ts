import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeOf, shareOf } from './nodes.ts'

const IDS = Array.from({ length: 50 }, (_, at) => `dst_${at * 7919}`)

test('the shares of all nodes add up to the limit, whatever the limit and the number of nodes', () => {
  for (const subject of IDS) {
    for (let count = 1; count <= 12; count++) {
      for (const limit of [1, 2, 3, 7, 10, 100, 1_000]) {
        const shares = Array.from({ length: count }, (_, rank) => shareOf(subject, limit, { rank, count }))
        assert.equal(
          shares.reduce((sum, share) => sum + share, 0),
          limit,
          `${subject}: ${limit} over ${count}`,
        )
        assert.ok(Math.max(...shares) - Math.min(...shares) <= 1)
      }
    }
  }
})

test('limits of one are not all the same node’s', () => {
  const holders = new Set(IDS.map((subject) => [0, 1, 2].find((rank) => shareOf(subject, 1, { rank, count: 3 }) === 1)))
  assert.deepEqual(holders, new Set([0, 1, 2]))
})

test('each node has a place of its own for a subject', () => {
  for (const subject of IDS) {
    const places = [0, 1, 2, 3, 4].map((rank) => placeOf(subject, { rank, count: 5 }))
    assert.deepEqual(new Set(places), new Set([0, 1, 2, 3, 4]))
  }
})
