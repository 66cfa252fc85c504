import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rowIdAt } from '../schema/row-ids.ts'
import { KeyAge } from './key-age.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

test('keys are old when the service has run for the deduplication time, whatever the clock says and however often it is restarted', () => {
  let now = 0
  let age = new KeyAge(undefined, 0, DAY_MS, () => now)
  let stored = age.mark(1_000)
  for (let hour = 1; hour <= 60; hour++) {
    now += HOUR_MS
    stored = age.mark(1_000 + hour)
    // The segment of 24 hours ago is old, and those after it are not.
    assert.equal(age.oldUpTo, hour < 24 ? 0 : 1_000 + hour - 24, `${hour}`)
    if (hour % 7 !== 0) continue
    now = 5 * hour
    age = new KeyAge(stored, rowIdAt(Date.now() + 365 * DAY_MS), DAY_MS, () => now)
  }
  assert.ok(stored.length < 1_000, 'the stored state is bounded')
})

test('running time that was not stored before a crash does not count', () => {
  let now = 0
  const before = new KeyAge(undefined, 0, DAY_MS, () => now)
  const stored = before.mark(7)
  now += DAY_MS
  assert.equal(before.oldUpTo, 7)
  assert.equal(new KeyAge(stored, 7, DAY_MS, () => now).oldUpTo, 0)
})

test('a store without stored ages uses the times of its segments', () => {
  const newest = rowIdAt(100 * DAY_MS)
  assert.equal(new KeyAge(undefined, newest, DAY_MS).oldUpTo, rowIdAt(99 * DAY_MS))
})
