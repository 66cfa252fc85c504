import assert from 'node:assert/strict'
import test from 'node:test'
import { type Outcome, unanswered } from '../link/outcome.ts'
import { Health } from './health.ts'

const SERVED = new Set(['src'])

test('before the first attempt there are no rates', () => {
  const health = new Health(SERVED)
  assert.deepEqual(health.all(), { success: null, latencyMs: null })
  assert.deepEqual(health.of('a'), { success: null, latencyMs: null })
})

test('rates and percentiles are of each URL, and of all together', () => {
  const health = new Health(SERVED)
  for (let ms = 1; ms <= 100; ms++) health.attempted('a', ms <= 90, ms)
  for (let nth = 0; nth < 100; nth++) health.attempted('b', false, 1_000)
  assert.deepEqual(health.of('a'), { success: 0.9, latencyMs: { p50: 51, p95: 96, p99: 100 } })
  assert.deepEqual(health.of('b'), { success: 0, latencyMs: { p50: 1_000, p95: 1_000, p99: 1_000 } })
  assert.deepEqual(health.all(), { success: 0.45, latencyMs: { p50: 1_000, p95: 1_000, p99: 1_000 } })
})

test('only the last attempts count', () => {
  const health = new Health(SERVED)
  for (let nth = 0; nth < 1_000; nth++) health.attempted('a', false, 9)
  for (let nth = 0; nth < 512; nth++) health.attempted('a', true, 1)
  assert.deepEqual(health.of('a'), { success: 1, latencyMs: { p50: 1, p95: 1, p99: 1 } })
})

test('one attempt is every percentile', () => {
  const health = new Health(SERVED)
  health.attempted('a', true, 12.3456)
  assert.deepEqual(health.all(), { success: 1, latencyMs: { p50: 12.35, p95: 12.35, p99: 12.35 } })
})

test('attempts without an answer count as failures, and not in the latency', () => {
  const health = new Health(SERVED)
  for (let nth = 0; nth < 3; nth++) health.attempted('a', false, null)
  assert.deepEqual(health.of('a'), { success: 0, latencyMs: null })
  health.attempted('a', true, 40)
  assert.deepEqual(health.all(), { success: 0.25, latencyMs: { p50: 40, p95: 40, p99: 40 } })
})

test('URLs that are no longer used are forgotten', () => {
  const health = new Health(SERVED)
  health.attempted('a', true, 1)
  health.attempted('b', false, 1)
  health.keep(['b', 'c'])
  assert.deepEqual([health.of('a').success, health.all().success], [null, 0])
})

interface Request {
  startedAtMs?: number
  sourceIds?: readonly string[]
  receivedAtMs?: number
}

test('an email that is invalid says nothing about the mail server', () => {
  const judged = (reason: 'mail_invalid' | 'mail_refused'): boolean =>
    new Health(SERVED).judge([{ url: 'a', outcome: unanswered(reason, 'Refused.'), startedAtMs: 1, version: 1 }], ['a'], [])
  assert.deepEqual([judged('mail_invalid'), judged('mail_refused')], [false, true])
})

function failed(health: Health, reason: string, responseStart: string | null = null, request: Request = {}): void {
  const { startedAtMs = 1, sourceIds = ['src'], receivedAtMs = 1 } = request
  const outcome: Outcome = { ...unanswered('timeout', `Failed: ${reason}.`), reason, status: 500, responseStart }
  const messages = sourceIds.map((sourceId) => ({ sourceId, receivedAtMs }))
  health.judge([{ url: 'a', outcome, startedAtMs, version: 1 }], ['a'], messages)
}

function texts({ failure, mostFrequentFailure }: Health) {
  return [failure?.error, mostFrequentFailure?.error, mostFrequentFailure?.responseStart]
}

const QUOTED = ['Failed: http_500.', 'Failed: http_500.', 'quoted']
const FORGOTTEN = ['The receiver answered 500 Internal Server Error.', 'The receiver answered 500 Internal Server Error.', null]

test('the most frequent failure has the number of its attempts and the start of its last response', () => {
  const health = new Health(SERVED)
  assert.equal(health.mostFrequentFailure, null)
  failed(health, 'http_500', 'first')
  for (let nth = 0; nth < 3; nth++) failed(health, 'timeout', null)
  assert.deepEqual(health.mostFrequentFailure, { reason: 'timeout', error: 'Failed: timeout.', attempts: 3, responseStart: null })
  for (let nth = 0; nth < 4; nth++) failed(health, 'http_500', 'x'.repeat(1_000))
  const most = { reason: 'http_500', error: 'Failed: http_500.', attempts: 5 }
  assert.deepEqual(health.mostFrequentFailure, { ...most, responseStart: 'x'.repeat(300) })

  for (let nth = 0; nth < 512; nth++) health.attempted('a', true, 1)
  assert.equal(health.mostFrequentFailure, null, 'no recent attempt failed')
})

test('after a deletion, errors and responses are kept only of requests that were started later', () => {
  const health = new Health(SERVED)
  failed(health, 'integration_failed', 'about somebody')
  failed(health, 'http_500', 'quoted')
  failed(health, 'http_500', 'quoted')
  assert.deepEqual(texts(health), QUOTED)
  health.messagesDeleted(2)
  assert.deepEqual(texts(health), FORGOTTEN)
  assert.deepEqual([health.failure?.reason, health.mostFrequentFailure?.attempts], ['http_500', 2], 'what quotes nothing stays')
  failed(health, 'http_500', 'quoted', { startedAtMs: 2 })
  assert.deepEqual(texts(health), FORGOTTEN)
  failed(health, 'http_500', 'quoted', { startedAtMs: 3 })
  assert.deepEqual(texts(health), QUOTED)
  for (let nth = 0; nth < 5; nth++) failed(health, 'unknown', null)
  health.messagesDeleted(4)
  assert.deepEqual(texts(health), ['The attempt failed.', 'The attempt failed.', null])
})

test('errors and responses are kept only while the destination serves all sources of the messages', () => {
  const health = new Health(new Set(['a', 'b']))
  const both = { sourceIds: ['a', 'b'] }
  failed(health, 'http_500', 'quoted', both)
  health.serve(new Set(['a', 'b', 'c']))
  assert.deepEqual(texts(health), QUOTED)
  health.serve(new Set(['a', 'c']))
  assert.deepEqual(texts(health), FORGOTTEN)
  failed(health, 'http_500', 'quoted', both)
  assert.deepEqual(texts(health), FORGOTTEN, 'of messages that were pending')
  failed(health, 'http_500', 'quoted', { sourceIds: ['a', 'a'] })
  assert.deepEqual(texts(health), QUOTED)
})

test('errors and responses are kept no longer than the messages', () => {
  const health = new Health(SERVED)
  failed(health, 'http_500', 'quoted', { startedAtMs: 20, receivedAtMs: 10 })
  health.forgetBefore(10)
  assert.deepEqual(texts(health), QUOTED)
  health.forgetBefore(11)
  assert.deepEqual(texts(health), FORGOTTEN)
})

test('more reasons than a ring can tell apart share the last place', () => {
  const health = new Health(SERVED)
  for (let nth = 0; nth < 300; nth++) failed(health, `r${nth}`)
  assert.deepEqual([health.mostFrequentFailure?.reason, health.mostFrequentFailure?.attempts], ['r299', 46])
})
