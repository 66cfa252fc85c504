import assert from 'node:assert/strict'
import { test } from 'node:test'
import { troubledOf } from './troubled.ts'

type Health = NonNullable<Parameters<typeof troubledOf>[1]>[number]

const NOW_MS = Date.parse('2026-11-19T06:00:00Z')
const destination = (id: string) => ({ id, name: `The ${id}`, enabled: true, paused: false, filtered: false, sourceIds: ['src_1'] })
const healthOf = (destinationId: string, more: Partial<Health>): Health =>
  ({
    destinationId,
    breaker: 'closed',
    success: 1,
    pending: 0,
    oldestPendingAt: null,
    held: null,
    openSince: null,
    failure: null,
    mostFrequentFailure: null,
    ...more,
  }) as Health

test('destinations that fail, are degraded or are held back have problems, with their cause; paused, healthy and hidden ones do not', () => {
  const failure = { reason: 'connection_refused', error: 'The receiver refused the connection.' }
  const health = [
    healthOf('dead', { breaker: 'open', openSince: '2026-11-19T05:59:00Z', failure }),
    healthOf('flaky', { success: 0.5, mostFrequentFailure: { ...failure, attempts: 3, responseStart: null } }),
    healthOf('outdated', { held: 'the action is gone.' }),
    healthOf('well', {}),
    healthOf('paused', { breaker: 'open', openSince: '2026-11-19T05:59:00Z', failure }),
  ]
  const destinations = ['dead', 'flaky', 'outdated', 'well', 'hidden'].map(destination)
  const found = troubledOf([...destinations, { ...destination('paused'), paused: true }], health, NOW_MS)
  assert.deepEqual(
    found?.map(({ id, name }) => [id, name]),
    [
      ['dead', 'The dead'],
      ['flaky', 'The flaky'],
      ['outdated', 'The outdated'],
    ],
  )
  for (const { cause } of found?.slice(0, 2) ?? []) assert.match(cause, /refused the connection/)
  assert.match(found?.[2]?.cause ?? '', /the action is gone/)
})

test('nothing is said before both lists are known', () => {
  assert.equal(troubledOf(undefined, [], NOW_MS), undefined)
  assert.equal(troubledOf([], undefined, NOW_MS), undefined)
})
