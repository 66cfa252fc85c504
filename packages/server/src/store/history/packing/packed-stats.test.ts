import assert from 'node:assert/strict'
import { test } from 'node:test'
import { latencyBucket, latencyName, latencyOf, OLDEST_SECONDS, PENDING } from '../../port/stat-counts.ts'
import { addHour, FORTNIGHT_MS, type Fortnight, fortnightOf, hoursWithin, packFortnight, unpackFortnight } from './packed-stats.ts'

const HOUR_MS = 3_600_000
const AT_MS = fortnightOf(Date.UTC(2026, 10, 14))

test('a fortnight has the same counts after it was packed and unpacked, whatever their names and sizes', () => {
  const fortnight: Fortnight = new Map([
    [0, { attempts: 3, delivered: 9, failed: 1 }],
    [5, { __proto__count: 1, 'rejected.unknown_ünit': 2 ** 40, [PENDING]: 1 }],
    [167, { delivered: 127, owed: 128, cancelled: 129, [OLDEST_SECONDS]: 16_383 }],
  ])
  assert.deepEqual(unpackFortnight(packFortnight(fortnight)), fortnight)
  assert.deepEqual(unpackFortnight(packFortnight(new Map())), new Map())
  assert.deepEqual(unpackFortnight('{}'), new Map())
})

test('percentiles of packed hours are accurate to within 16 %, however often they are packed again', () => {
  for (let ms = 0.3; ms < 500_000; ms *= 1.7) {
    const fortnight: Fortnight = new Map()
    addHour(fortnight, AT_MS, { attempts: 1, [latencyName(latencyBucket(ms))]: 1 })
    const again = unpackFortnight(packFortnight(unpackFortnight(packFortnight(fortnight))))
    assert.deepEqual(again, unpackFortnight(packFortnight(fortnight)))
    const { p50 } = latencyOf(again.get(0) ?? {}) as { p50: number }
    assert.ok(Math.abs(p50 / ms - 1) < 0.16, `${ms} ms became ${p50}`)
  }
})

test('of a fortnight, the hours of a period are returned in order', () => {
  const fortnight: Fortnight = new Map()
  for (const hour of [9, 3, 5, 7]) addHour(fortnight, AT_MS + hour * HOUR_MS, { accepted: hour })
  const within = hoursWithin(AT_MS, packFortnight(fortnight), AT_MS + 3 * HOUR_MS, AT_MS + 9 * HOUR_MS)
  assert.deepEqual(
    within.map(({ at, counts }) => [(at - AT_MS) / HOUR_MS, counts]),
    [
      [3, { accepted: 3 }],
      [5, { accepted: 5 }],
      [7, { accepted: 7 }],
    ],
  )
  assert.equal(fortnightOf(AT_MS + FORTNIGHT_MS - 1), AT_MS)
})
