import assert from 'node:assert/strict'
import test from 'node:test'
import { Health } from './health.ts'

test('before the first attempt there are no rates', () => {
  const health = new Health()
  assert.deepEqual(health.all(), { success: null, latencyMs: null })
  assert.deepEqual(health.of('a'), { success: null, latencyMs: null })
})

test('rates and percentiles are of each URL, and of all together', () => {
  const health = new Health()
  for (let ms = 1; ms <= 100; ms++) health.attempted('a', ms <= 90, ms)
  for (let nth = 0; nth < 100; nth++) health.attempted('b', false, 1_000)
  assert.deepEqual(health.of('a'), { success: 0.9, latencyMs: { p50: 51, p95: 96, p99: 100 } })
  assert.deepEqual(health.of('b'), { success: 0, latencyMs: { p50: 1_000, p95: 1_000, p99: 1_000 } })
  assert.deepEqual(health.all(), { success: 0.45, latencyMs: { p50: 1_000, p95: 1_000, p99: 1_000 } })
})

test('only the last attempts count', () => {
  const health = new Health()
  for (let nth = 0; nth < 1_000; nth++) health.attempted('a', false, 9)
  for (let nth = 0; nth < 512; nth++) health.attempted('a', true, 1)
  assert.deepEqual(health.of('a'), { success: 1, latencyMs: { p50: 1, p95: 1, p99: 1 } })
})

test('one attempt is every percentile', () => {
  const health = new Health()
  health.attempted('a', true, 12.3456)
  assert.deepEqual(health.all(), { success: 1, latencyMs: { p50: 12.35, p95: 12.35, p99: 12.35 } })
})

test('attempts without an answer count as failures, and not in the latency', () => {
  const health = new Health()
  for (let nth = 0; nth < 3; nth++) health.attempted('a', false, null)
  assert.deepEqual(health.of('a'), { success: 0, latencyMs: null })
  health.attempted('a', true, 40)
  assert.deepEqual(health.all(), { success: 0.25, latencyMs: { p50: 40, p95: 40, p99: 40 } })
})

test('URLs that are no longer used are forgotten', () => {
  const health = new Health()
  health.attempted('a', true, 1)
  health.attempted('b', false, 1)
  health.keep(['b', 'c'])
  assert.deepEqual([health.of('a').success, health.all().success], [null, 0])
})
