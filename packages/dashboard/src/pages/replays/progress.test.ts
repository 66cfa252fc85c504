import assert from 'node:assert/strict'
import test from 'node:test'
import { canStillChange, donePercent, outcomeSentence, rateText, remainingMs, selectionText, shares } from './progress.ts'

const OUTCOMES = { pending: 10, delivered: 30, failed: 5, expired: 0, cancelled: 0 }

test('shares are percentages of the total, in a fixed order, without zeros', () => {
  assert.deepEqual(shares({ total: 100, outcomes: OUTCOMES, skipped: 15 }), [
    { name: 'delivered', count: 30, percent: 30 },
    { name: 'pending', count: 10, percent: 10 },
    { name: 'failed', count: 5, percent: 5 },
    { name: 'skipped', count: 15, percent: 15 },
  ])
})

test('a job whose deliveries are queued and pending is not done', () => {
  const none = { ...OUTCOMES, pending: 0 }
  assert.equal(donePercent({ total: 0, done: 0, outcomes: none }), 100)
  assert.equal(donePercent({ total: 3, done: 2, outcomes: none }), 66)
  assert.equal(donePercent({ total: 53, done: 53, outcomes: { ...none, pending: 53 } }), 0)
  assert.equal(donePercent({ total: 100, done: 100, outcomes: OUTCOMES }), 90)
})

test('a job can still change while it runs or has pending deliveries', () => {
  assert.ok(canStillChange({ state: 'finished', outcomes: OUTCOMES }))
  assert.ok(!canStillChange({ state: 'finished', outcomes: { ...OUTCOMES, pending: 0 } }))
  assert.ok(canStillChange({ state: 'running', outcomes: { ...OUTCOMES, pending: 0 } }))
})

test('estimates the remaining time of a running job with a rate limit', () => {
  assert.equal(remainingMs({ state: 'running', total: 1_000, done: 500, ratePerSecond: 50 }), 10_000)
  assert.equal(remainingMs({ state: 'running', total: 1_000, done: 500, ratePerSecond: null }), null)
  assert.equal(remainingMs({ state: 'paused', total: 1_000, done: 500, ratePerSecond: 50 }), null)
})

test('describes the rate and the selection', () => {
  assert.equal(rateText(null), 'no rate limit')
  assert.equal(selectionText({ states: ['failed', 'expired'], reason: 'timeout', total: 3 }), 'failed or expired with timeout')
  assert.equal(selectionText({ states: null, reason: null, total: 1 }), '1 delivery by id')
})

test('the outcome of a job in words', () => {
  const none = { pending: 0, delivered: 0, failed: 0, expired: 0, cancelled: 0 }
  assert.equal(outcomeSentence({ total: 50, done: 50, skipped: 0, outcomes: { ...none, delivered: 50 } }), 'All 50 delivered')
  assert.equal(
    outcomeSentence({ total: 50, done: 50, skipped: 0, outcomes: { ...none, failed: 40, expired: 10 } }),
    '0 of 50 delivered, 50 failed or expired',
  )
  assert.equal(
    outcomeSentence({ total: 50, done: 40, skipped: 5, outcomes: { ...none, delivered: 20, pending: 15 } }),
    '50% done: 20 of 50 delivered, 15 pending, 5 skipped',
  )
})
