import assert from 'node:assert/strict'
import { test } from 'node:test'
import { msOfRowId, NEWEST, NODE_NUMBERS, OLDEST, RowIds, rowAndIndex, rowIdAt } from './ids.ts'

test('names grow, also when the clock stands still, goes back, or a millisecond has more than it has names for', () => {
  const clock = [1_800_000_000_000, 1_800_000_000_000, 1_799_999_999_000, 1_800_000_000_001]
  let at = 0
  const ids = new RowIds(3, () => clock[Math.min(at, clock.length - 1)] as number)
  const names: string[] = []
  for (; at < clock.length; at++) for (let nth = 0; nth < 5_000; nth++) names.push(ids.next())
  const sorted = [...names].sort()
  assert.deepEqual(names, sorted)
  assert.equal(new Set(names).size, names.length)
  assert.ok(names.every((name) => name.length === 19))
})

test('nodes never give the same name, and a name tells its time', () => {
  const nowMs = 1_800_000_000_123
  const names = new Set<string>()
  for (const node of [0, 1, 2, NODE_NUMBERS - 1]) {
    const ids = new RowIds(node, () => nowMs)
    for (let nth = 0; nth < 1_000; nth++) names.add(ids.next())
  }
  assert.equal(names.size, 4_000)
  assert.ok([...names].every((name) => msOfRowId(name) === nowMs && name >= rowIdAt(nowMs) && name < rowIdAt(nowMs + 1)))
  assert.ok(OLDEST < rowIdAt(nowMs) && rowIdAt(nowMs) < NEWEST)
})

test('a name that no row can have is none', () => {
  const row = rowIdAt(1_800_000_000_000)
  assert.deepEqual(rowAndIndex(`${row}-7`), { row, index: 7 })
  for (const id of [
    '',
    '1',
    '-1',
    `${row}`,
    `${row}-`,
    `${row}-01`,
    `${row}-99999`,
    `0${row}-1`,
    '9999999999999999999-1',
    `${row}-1 `,
    `${row}-1;--`,
  ]) {
    assert.equal(rowAndIndex(id), undefined, id)
  }
})
