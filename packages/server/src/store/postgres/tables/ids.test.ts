import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isRowId, movedNum, movedRowId, msOfRowId, NODE_NUMBERS, RowIds, rowAndIndex } from './ids.ts'

/** A row number as SQLite creates it. */
const sqliteId = fc
  .tuple(fc.integer({ min: 1_000_000_000_000, max: 4_398_046_511_103 }), fc.integer({ min: 0, max: 2_047 }))
  .map(([ms, counter]) => ms * 2_048 + counter)

test('migrated rows keep their order and time, and their ids stay distinct', () => {
  fc.assert(
    fc.property(sqliteId, sqliteId, (one, other) => {
      const [a, b] = [movedRowId(one), movedRowId(other)]
      assert.ok(isRowId(a))
      assert.equal(msOfRowId(a), Math.floor(one / 2_048))
      assert.equal(Math.sign(one - other), a === b ? 0 : a < b ? -1 : 1)
    }),
  )
})

test('the id of a migrated row contains no node’s number', () => {
  fc.assert(
    fc.property(sqliteId, (id) => {
      assert.equal(Number((BigInt(movedRowId(id)) >> 12n) & 511n), NODE_NUMBERS)
    }),
  )
  const own = new RowIds(NODE_NUMBERS - 1, () => 1_800_000_000_000).next()
  assert.notEqual(own, movedRowId(1_800_000_000_000 * 2_048))
})

test('numbers from 1 become row ids before any other row, in the same order; 0 stays 0', () => {
  const ids = [1, 2, 4_096, 5_000_000].map(movedNum)
  assert.ok(ids.every(isRowId))
  assert.deepEqual(ids, [...ids].sort())
  assert.ok((ids.at(-1) as string) < movedRowId(1_000_000_000_000 * 2_048))
  assert.equal(movedNum(0), '0')
})

test('a delivery or message is found by its id, and by its id from before a migration', () => {
  const old = 1_800_000_000_000 * 2_048 + 7
  const row = movedRowId(old)
  assert.deepEqual(rowAndIndex(`${row}-12`), { row, index: 12 })
  assert.deepEqual(rowAndIndex(`${old}-12`), { row, index: 12 })
  for (const wrong of [
    `${old}`,
    `${old}-`,
    `${old}-012`,
    `${old}-12345`,
    `0${old}-1`,
    '9999999999999999-1',
    '9999999999999999999-1',
    `${old}1-1`,
    '12-1',
  ])
    assert.equal(rowAndIndex(wrong), undefined, wrong)
})
