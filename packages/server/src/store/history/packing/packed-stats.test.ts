import assert from 'node:assert/strict'
import { test } from 'node:test'
import { latencyBucket, latencyName, latencyOf, OLDEST_SECONDS, PENDING } from '../../port/stat-counts.ts'
import { addHour, hoursWithin, packWeek, unpackWeek, WEEK_MS, type Week, weekOf } from './packed-stats.ts'

const HOUR_MS = 3_600_000
const AT_MS = weekOf(Date.UTC(2026, 10, 14))

test('a week has the same counts after it was packed and unpacked, whatever their names and sizes', () => {
  const week: Week = new Map([
    [0, { attempts: 3, delivered: 9, failed: 1 }],
    [5, { __proto__count: 1, 'rejected.unknown_ünit': 2 ** 40, [PENDING]: 1 }],
    [167, { delivered: 127, owed: 128, cancelled: 129, [OLDEST_SECONDS]: 16_383 }],
  ])
  assert.deepEqual(unpackWeek(packWeek(week)), week)
  assert.deepEqual(unpackWeek(packWeek(new Map())), new Map())
  assert.deepEqual(unpackWeek('{}'), new Map())
})

test('percentiles of packed hours are accurate to within 16 %, however often they are packed again', () => {
  for (let ms = 0.3; ms < 500_000; ms *= 1.7) {
    const week: Week = new Map()
    addHour(week, AT_MS, { attempts: 1, [latencyName(latencyBucket(ms))]: 1 })
    const again = unpackWeek(packWeek(unpackWeek(packWeek(week))))
    assert.deepEqual(again, unpackWeek(packWeek(week)))
    const { p50 } = latencyOf(again.get(0) ?? {}) as { p50: number }
    assert.ok(Math.abs(p50 / ms - 1) < 0.16, `${ms} ms became ${p50}`)
  }
})

test('of a week, the hours of a period are returned in order', () => {
  const week: Week = new Map()
  for (const hour of [9, 3, 5, 7]) addHour(week, AT_MS + hour * HOUR_MS, { accepted: hour })
  const within = hoursWithin(AT_MS, packWeek(week), AT_MS + 3 * HOUR_MS, AT_MS + 9 * HOUR_MS)
  assert.deepEqual(
    within.map(({ at, counts }) => [(at - AT_MS) / HOUR_MS, counts]),
    [
      [3, { accepted: 3 }],
      [5, { accepted: 5 }],
      [7, { accepted: 7 }],
    ],
  )
  assert.equal(weekOf(AT_MS + WEEK_MS - 1), AT_MS)
})
