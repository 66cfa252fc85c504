import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Backlog, forecast, forecastText, rateOf } from './backlog-forecast.ts'

const BACKLOG: Backlog = {
  enabled: true,
  paused: false,
  breaker: 'closed',
  pending: 1_200,
  success: 1,
  oldestPendingAt: '2026-11-15T12:00:00.000Z',
  retryWindowMs: 3_600_000,
  rate: { settled: 600, attempts: 600, overMs: 120_000 },
  earlier: null,
}
const words = (changes: Partial<Backlog>): string => forecastText(forecast({ ...BACKLOG, ...changes }))

test('says when a backlog is gone at the present rate', () => {
  assert.equal(words({}), 'about 4 min at the present rate')
  assert.equal(words({ pending: 40 }), 'a few seconds at the present rate')
  assert.equal(words({ pending: 200 }), 'less than a minute at the present rate')
  assert.equal(words({ pending: 36_000 }), 'about 2 h at the present rate')
  assert.equal(words({ pending: 42_000 }), 'about 2 h 20 min at the present rate')
  assert.equal(words({ pending: 360_000 }), 'about 20 h at the present rate')
  assert.equal(words({ pending: 5_000_000 }), 'about 12 days at the present rate')
})

test('says no number where there is none', () => {
  assert.equal(words({ pending: 0 }), 'nothing waits')
  assert.equal(words({ rate: null }), 'not known yet')
  const none = { settled: 0, attempts: 0, overMs: 120_000 }
  assert.equal(words({ rate: none }), 'not draining: nothing was due in the last minutes')
  assert.equal(words({ rate: { ...none, attempts: 40 }, success: 0 }), 'not draining: every attempt fails')
  assert.equal(
    words({ rate: { ...none, attempts: 40 }, success: 0.8 }),
    'being sent: 40 requests in the last minutes, outcomes not written yet',
  )
  assert.equal(words({ breaker: 'open' }), 'not draining: the breaker is open')
  assert.equal(words({ breaker: 'probing' }), 'not draining: the breaker is open')
  assert.equal(words({ enabled: false, breaker: 'open' }), 'disabled: held until it is enabled')
  assert.equal(words({ paused: true, breaker: 'open' }), 'paused: held until it is resumed')
  assert.equal(words({ paused: true, earlier: { pending: 1_199, agoMs: 5_000 } }), 'paused: held until it is resumed, and growing')
})

test('believes what the backlog did while somebody looked', () => {
  assert.equal(words({ earlier: { pending: 1_000, agoMs: 30_000 } }), 'about 4 min at the present rate', 'seen too shortly')
  assert.equal(words({ earlier: { pending: 1_000, agoMs: 60_000 } }), 'growing: more comes in than goes out')
  assert.equal(words({ earlier: { pending: 1_200, agoMs: 60_000 } }), 'growing: more comes in than goes out')
  assert.equal(words({ earlier: { pending: 1_320, agoMs: 60_000 } }), 'about 10 min at the present rate')
  assert.equal(words({ pending: 20, earlier: { pending: 10, agoMs: 60_000 } }), 'a few seconds at the present rate', 'what is in flight')
})

test('says until when nothing can expire', () => {
  const open = forecast({ ...BACKLOG, breaker: 'open' })
  assert.deepEqual(open, { kind: 'stuck', why: 'breaker', safeUntilMs: Date.parse('2026-11-15T13:00:00.000Z') })
  assert.deepEqual(forecast({ ...BACKLOG, breaker: 'open', oldestPendingAt: null }), {
    kind: 'stuck',
    why: 'breaker',
    safeUntilMs: null,
  })
})

test('the rate is of the last minutes, with the one under way', () => {
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
    'minutes of rest before do not count',
  )
  assert.equal(rateOf([], 0), null)
})
