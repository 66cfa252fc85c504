import assert from 'node:assert/strict'
import { test } from 'node:test'
import { msOfRowId, RowIds, rowIdAt } from './row-ids.ts'

test('a row id contains its time', () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  const ids = new RowIds(0, () => now)
  for (let at = 0; at < 2_048; at++) assert.equal(msOfRowId(ids.next()), now)
  assert.equal(msOfRowId(rowIdAt(now)), now)
})

test('row ids increase when the clock stands still, goes back, or is behind the last known id at a start', () => {
  let now = Date.UTC(2026, 0, 1)
  const ids = new RowIds(0, () => now)
  let last = 0
  const grows = (numbers: RowIds): void => {
    const next = numbers.next()
    assert.ok(next > last && Number.isSafeInteger(next))
    last = next
  }
  for (let at = 0; at < 5_000; at++) grows(ids)
  now -= 3_600_000
  for (let at = 0; at < 100; at++) grows(ids)
  const later = new RowIds(last, () => now)
  grows(later)
  assert.ok(last > rowIdAt(now + 3_600_000), 'with a margin for ids that were assigned and not found')
  now += 7_200_000
  grows(later)
  assert.equal(last, rowIdAt(now), 'and it follows the clock again')
})

test('if the clock is ahead of the last known id at a start, ids follow the clock', () => {
  const now = Date.UTC(2026, 0, 1)
  assert.equal(msOfRowId(new RowIds(rowIdAt(now - 1), () => now).next()), now)
})

test('row ids are exact until the year 2109', () => {
  assert.ok(Number.isSafeInteger(rowIdAt(Date.UTC(2109, 0, 1)) + 2_047))
})
