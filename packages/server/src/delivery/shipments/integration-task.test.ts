import assert from 'node:assert/strict'
import test from 'node:test'
import type { Settlement } from '../../store/store.ts'
import { claimedOf, destination, items, NOW_MS, outcome, SINGLE } from '../fixtures/claimed-shipments.ts'
import { failure, type Ran, type RanMessage, type RanRequest } from '../link/outcome.ts'
import { Task } from './task.ts'
import type { Unit } from './unit.ts'

const BATCH = { size: 10, bytes: 500_000, lingerMs: 0 }
const ok: RanMessage = { verdict: 'success', reason: null, retryAfterMs: null, succeeded: [] }
const failed: RanMessage = { verdict: 'permanent', reason: 'invalid_payload', retryAfterMs: null, succeeded: ['a'] }
const retried = (...succeeded: string[]): RanMessage => ({ verdict: 'temporary', reason: 'http_503', retryAfterMs: null, succeeded })

function request(positions: number[], subscription = 'A'): RanRequest {
  return {
    positions,
    subscription,
    method: 'POST',
    url: 'https://tool.test/',
    startedAtMs: NOW_MS,
    outcome: outcome('success'),
    sent: null,
  }
}

function finish(task: Task, ran: Ran): Settlement {
  const unit = task.start(NOW_MS) as Unit
  task.finish(unit, [{ url: 'integration:tool', startedAtMs: NOW_MS, version: 3, outcome: outcome('success', { ran }) }])
  return task.settlement(destination, NOW_MS, NOW_MS, () => 0.5)
}

test('messages of a batch end or are retried one by one, each with the subscriptions that succeeded', () => {
  const task = new Task([claimedOf(1, [items(5)])], { batch: BATCH, type: 'integration' })
  const messages = [ok, failed, retried('a'), retried(), retried('a')]
  const { records, remaining } = finish(task, { messages, requests: [request([0, 1, 2, 3, 4]), request([3], 'B')] })
  assert.deepEqual(records[0]?.finals, [
    { state: 'delivered', reason: null, indexes: [0] },
    { state: 'failed', reason: 'invalid_payload', indexes: [1] },
  ])
  assert.deepEqual(
    remaining.map(({ progress, unit, attempt, parts }) => [progress, unit, attempt, parts.map(({ indexes }) => indexes)]),
    [
      [['a'], false, 1, [[2, 4]]],
      [null, false, 1, [[3]]],
    ],
  )
  assert.deepEqual(
    records[0]?.requests.map(({ step, indexes, version }) => [step, indexes, version]),
    [
      [{ subscription: 'A', method: 'POST' }, [0, 1, 2, 3, 4], 3],
      [{ subscription: 'B', method: 'POST' }, [3], 3],
    ],
  )
})

test('if the sender is lost, the same subscriptions have succeeded as before', () => {
  for (const urls of [null, ['b']]) {
    const task = new Task([claimedOf(1, [items(1)], { progress: urls })], { batch: SINGLE, type: 'integration' })
    const unit = task.start(NOW_MS) as Unit
    task.finish(unit, [{ url: 'integration:tool', startedAtMs: NOW_MS, version: 1, outcome: failure('sender_lost') }])
    const { remaining } = task.settlement(destination, NOW_MS, NOW_MS, () => 0.5)
    assert.deepEqual(remaining[0]?.progress, urls)
  }
})

test('a message for which no subscription is left is cancelled', () => {
  const task = new Task([claimedOf(1, [items(1)])], { batch: SINGLE, type: 'integration' })
  const messages: RanMessage[] = [{ verdict: 'permanent', reason: 'no_subscription', retryAfterMs: null, succeeded: [] }]
  const { records } = finish(task, { messages, requests: [request([0])] })
  assert.deepEqual(records[0]?.finals, [{ state: 'cancelled', reason: 'no_subscription', indexes: [0] }])
})

test('messages of several segments are each recorded with their own', () => {
  const task = new Task([claimedOf(1, [items(2)]), claimedOf(2, [items(2, 'n')])], { batch: BATCH, type: 'integration' })
  const { records } = finish(task, { messages: [ok, ok, failed, ok], requests: [request([0, 1, 2, 3])] })
  assert.deepEqual(
    records.map(({ origin, finals }) => [origin, finals.map(({ state, indexes }) => [state, indexes])]),
    [
      [10, [['delivered', [0, 1]]]],
      [
        20,
        [
          ['delivered', [1]],
          ['failed', [0]],
        ],
      ],
    ],
  )
  assert.equal(records[1]?.requests[0]?.gathered?.lead, 10)
})

test('messages of several shipments that were in one batch are retried in one batch', () => {
  const task = new Task([claimedOf(1, [items(2)]), claimedOf(2, [items(2, 'n')])], { batch: BATCH, type: 'integration' })
  const { remaining, done } = finish(task, { messages: [retried(), ok, retried(), retried('a')], requests: [request([0, 1, 2, 3])] })
  assert.equal(done.length, 2)
  assert.deepEqual(
    remaining.map(({ progress, parts }) => [progress, parts.map(({ origin, indexes }) => [origin, indexes])]),
    [
      [
        null,
        [
          [10, [0]],
          [20, [0]],
        ],
      ],
      [['a'], [[20, [1]]]],
    ],
  )
})

test('a message ends even if no request was recorded for it', () => {
  const task = new Task([claimedOf(1, [items(2)])], { batch: BATCH, type: 'integration' })
  const { records } = finish(task, { messages: [ok, failed], requests: [] })
  assert.deepEqual(
    records.flatMap(({ finals }) => finals.map(({ state, indexes }) => [state, indexes])),
    [
      ['delivered', [0]],
      ['failed', [1]],
    ],
  )
})

test('what an integration keeps is recorded with the outcomes, once, with the user of its message', () => {
  const task = new Task([claimedOf(1, [items(2)])], { batch: BATCH, type: 'integration' })
  const entry = { subscriptionId: 'a', key: 'k', value: 'v', setAtMs: NOW_MS, expiresAtMs: NOW_MS + 1 }
  const state = [
    { ...entry, position: 1 },
    { ...entry, position: null },
  ]
  const settlement = finish(task, { messages: [ok, ok], requests: [request([0, 1])], state })
  const { sourceId, segment, message } = settlement.state?.[0]?.owner ?? {}
  const part = settlement.done[0]?.parts[0]
  const content = items(2)[1]
  assert.deepEqual(
    [typeof sourceId, segment, message?.['userId'], message?.['type']],
    ['string', part?.segment, content?.['userId'], content?.['type']],
  )
  assert.deepEqual(settlement.state?.[1], { ...entry, owner: null })
  assert.equal(task.settlement(destination, NOW_MS, NOW_MS, () => 0.5).state, undefined)
})
