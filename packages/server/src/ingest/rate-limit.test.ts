import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRateLimit } from './rate-limit.ts'

test('a source may send its limit, a batch is let in whole, and what it took too much is waited for', () => {
  const limit = createRateLimit(10)
  assert.equal(limit.take('a', 6, 0), 0)
  assert.equal(limit.take('a', 30, 0), 0)
  assert.equal(limit.take('a', 1, 0), 3)
  assert.equal(limit.take('b', 1, 0), 0, 'another source is not concerned')
  assert.equal(limit.take('a', 1, 2_000), 1)
  assert.equal(limit.take('a', 1, 2_700), 0)
})

test('an idle source does not save up more than a second', () => {
  const limit = createRateLimit(10)
  assert.equal(limit.take('a', 10, 0), 0)
  assert.equal(limit.take('a', 10, 1_000_000), 0)
  assert.equal(limit.take('a', 1, 1_000_000), 1)
})
