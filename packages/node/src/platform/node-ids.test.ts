import assert from 'node:assert/strict'
import test from 'node:test'
import { newId } from './node-ids.ts'

test('ids are different UUIDs of version 4, with every digit in every place', () => {
  const ids = Array.from({ length: 1_000 }, newId)
  assert.equal(new Set(ids).size, ids.length)
  for (const id of ids) assert.match(id, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  for (const place of [0, 7, 9, 17, 20, 24, 35]) assert.equal(new Set(ids.map((id) => id[place])).size, 16)
})
