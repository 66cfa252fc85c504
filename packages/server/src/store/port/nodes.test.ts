import assert from 'node:assert/strict'
import { test } from 'node:test'
import { positionOf, shareOf } from './nodes.ts'

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

test('limits of one are spread over the nodes', () => {
  const holders = new Set(IDS.map((subject) => [0, 1, 2].find((rank) => shareOf(subject, 1, { rank, count: 3 }) === 1)))
  assert.deepEqual(holders, new Set([0, 1, 2]))
})

test('each node has a different position for a subject', () => {
  for (const subject of IDS) {
    const positions = [0, 1, 2, 3, 4].map((rank) => positionOf(subject, { rank, count: 5 }))
    assert.deepEqual(new Set(positions), new Set([0, 1, 2, 3, 4]))
  }
})
