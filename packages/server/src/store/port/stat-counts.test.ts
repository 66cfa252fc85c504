import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addCounts,
  LATENCY_BUCKETS,
  latencyBucket,
  latencyName,
  latencyOf,
  rejectedByCode,
  rejectedName,
  type StatCounts,
} from './stat-counts.ts'

function latencies(...ms: number[]): StatCounts {
  const counts: StatCounts = {}
  for (const each of ms) addCounts(counts, { [latencyName(latencyBucket(each))]: 1 })
  return counts
}

test('a percentile read from buckets is accurate to within 5 %, from a tenth of a millisecond to ten minutes', () => {
  for (let ms = 0.11; ms < 600_000; ms *= 1.037) {
    const { p50 } = latencyOf(latencies(ms)) ?? assert.fail()
    assert.ok(Math.abs(p50 / ms - 1) < 0.05, `${ms} ms became ${p50} ms`)
  }
})

test('percentiles are computed from all measurements', () => {
  const counts = latencies(...Array.from({ length: 90 }, () => 10), ...Array.from({ length: 8 }, () => 100), 1_000, 1_000)
  const { p50, p95, p99 } = latencyOf(counts) ?? assert.fail()
  assert.ok(p50 > 9.5 && p50 < 10.5, String(p50))
  assert.ok(p95 > 95 && p95 < 105, String(p95))
  assert.ok(p99 > 950 && p99 < 1_050, String(p99))
  assert.equal(latencyOf({ attempts: 3 }), null)
})

test('impossible durations have a bucket too', () => {
  for (const ms of [0, -5, Number.NaN]) assert.equal(latencyBucket(ms), 0)
  for (const ms of [1e12, Number.POSITIVE_INFINITY]) assert.equal(latencyBucket(ms), LATENCY_BUCKETS - 1)
})

test('counts are added by name, whatever the name', () => {
  const counts: StatCounts = {}
  addCounts(counts, { accepted: 1, constructor: 2 })
  addCounts(counts, { accepted: 4, constructor: 8, [rejectedName('event_required')]: 1 })
  assert.deepEqual(Object.entries(counts), [
    ['accepted', 5],
    ['constructor', 10],
    ['rejected.event_required', 1],
  ])
  assert.deepEqual(rejectedByCode(counts), { event_required: 1 })
})
