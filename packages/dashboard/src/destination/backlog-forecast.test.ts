import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Backlog, forecast, forecastText, rateOf } from './backlog-forecast.ts'

const BACKLOG: Backlog = {
  enabled: true,
  paused: false,
  breaker: 'closed',
  pending: 1_200,
  success: 1,
  rate: { settled: 600, attempts: 600, overMs: 120_000 },
  earlier: null,
}
const words = (changes: Partial<Backlog>): string => forecastText(forecast({ ...BACKLOG, ...changes }))

test('estimates when a backlog will be empty at the current rate', () => {
  assert.equal(words({}), 'empty in about 4 min at the current rate')
  assert.equal(words({ pending: 40 }), 'empty in a few seconds at the current rate')
  assert.equal(words({ pending: 200 }), 'empty in less than a minute at the current rate')
  assert.equal(words({ pending: 36_000 }), 'empty in about 2 h at the current rate')
  assert.equal(words({ pending: 42_000 }), 'empty in about 2 h 20 min at the current rate')
  assert.equal(words({ pending: 360_000 }), 'empty in about 20 h at the current rate')
  assert.equal(words({ pending: 5_000_000 }), 'empty in about 12 days at the current rate')
})

test('gives no time where none can be estimated', () => {
  assert.equal(words({ pending: 0 }), 'no pending deliveries')
  assert.equal(words({ rate: null }), 'estimating …')
  const none = { settled: 0, attempts: 0, overMs: 120_000 }
  assert.equal(words({ rate: none }), 'not draining: no attempt was due in the last few minutes')
  assert.equal(words({ rate: { ...none, attempts: 40 }, success: 0 }), 'not draining: all recent attempts failed')
  assert.equal(
    words({ rate: { ...none, attempts: 40 }, success: 0.8 }),
    'sending: 40 requests in the last few minutes, outcomes not stored yet',
  )
  assert.equal(words({ breaker: 'open' }), 'not draining: circuit breaker open')
  assert.equal(words({ breaker: 'probing' }), 'not draining: circuit breaker open')
  assert.equal(words({ enabled: false, breaker: 'open' }), 'held while disabled')
  assert.equal(words({ paused: true, breaker: 'open' }), 'held while paused')
  assert.equal(words({ paused: true, earlier: { pending: 1_199, agoMs: 5_000 } }), 'held while paused; growing')
})

test('prefers the observed change of the backlog over the rate', () => {
  assert.equal(
    words({ earlier: { pending: 1_000, agoMs: 30_000 } }),
    'empty in about 4 min at the current rate',
    'observed for too short a time',
  )
  assert.equal(words({ earlier: { pending: 1_000, agoMs: 60_000 } }), 'growing: messages arrive faster than they are delivered')
  assert.equal(words({ earlier: { pending: 1_200, agoMs: 60_000 } }), 'growing: messages arrive faster than they are delivered')
  assert.equal(words({ earlier: { pending: 1_320, agoMs: 60_000 } }), 'empty in about 10 min at the current rate')
  assert.equal(
    words({ pending: 20, earlier: { pending: 10, agoMs: 60_000 } }),
    'empty in a few seconds at the current rate',
    'only deliveries in flight',
  )
})

test('says why a backlog does not drain', () => {
  assert.deepEqual(forecast({ ...BACKLOG, breaker: 'open' }), { kind: 'stuck', why: 'breaker' })
})

test('measures the rate over the last minutes, including the current one', () => {
  const points = [
    { at: '2026-11-15T11:57:00.000Z', delivered: 9_000 },
    { at: '2026-11-15T11:58:00.000Z', attempts: 41, delivered: 10, failed: 2, expired: 500 },
    { at: '2026-11-15T11:59:00.000Z', delivered: 20 },
    { at: '2026-11-15T12:00:00.000Z' },
  ]
  assert.deepEqual(rateOf(points, Date.parse('2026-11-15T12:00:30.000Z')), { settled: 32, attempts: 41, overMs: 150_000 })
  assert.deepEqual(rateOf(points.slice(3), Date.parse('2026-11-15T12:00:00.100Z')), { settled: 0, attempts: 0, overMs: 1_000 })
  const begun = [
    { at: '2026-11-15T11:58:00.000Z' },
    { at: '2026-11-15T11:59:00.000Z', attempts: 5 },
    { at: '2026-11-15T12:00:00.000Z', delivered: 7 },
  ]
  assert.deepEqual(
    rateOf(begun, Date.parse('2026-11-15T12:00:30.000Z')),
    { settled: 7, attempts: 5, overMs: 90_000 },
    'idle minutes before the first attempt do not count',
  )
  assert.equal(rateOf([], 0), null)
})
