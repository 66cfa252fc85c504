import assert from 'node:assert/strict'
import { test } from 'node:test'
import { funnelOf } from './funnel-steps.ts'

test('everything that was received is accepted or left on the way, and a backlog counts while it lasts', () => {
  const at = '2026-11-15T09:00:00.000Z'
  const points = [
    { at, accepted: 5, duplicates: 1, rejected: { a: 2, b: 1 }, suppressed: 1, quarantined: 2, owed: 6, pending: 9 },
    { at, accepted: 2, owed: 2, delivered: 4, failed: 1, expired: 1, cancelled: 1, pending: 1 },
  ]
  const { messages, deliveries } = funnelOf(points)
  const shown = [...messages, ...deliveries].map(({ name, count, left }) => [
    name,
    count,
    left.map((each) => `${each.count} ${each.name}`).join(),
  ])
  assert.deepEqual(shown, [
    ['Received', 12, '3 rejected,1 duplicates,1 suppressed'],
    ['Accepted', 7, '2 quarantined'],
    ['Routed', 8, ''],
    ['Delivered', 4, '1 failed,1 expired,1 cancelled,1 waiting'],
  ])
  assert.deepEqual(
    funnelOf(points, 3).deliveries[1]?.left.at(-1),
    { name: 'waiting', count: 3 },
    'as in the ledger, if the period ends now',
  )
  assert.deepEqual(funnelOf([...points, { at }]).deliveries[1]?.left.at(-1), { name: 'waiting', count: 0 })
})
