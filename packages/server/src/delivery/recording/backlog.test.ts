import assert from 'node:assert/strict'
import test from 'node:test'
import { Backlog } from './backlog.ts'

const NOTHING = { shipments: [], moreFresh: false, nextRetryAtMs: null }

test('at the start the store may have work, until a claim finds none', () => {
  const backlog = new Backlog()
  assert.ok(backlog.hasFresh)
  backlog.claimStarted(true)
  backlog.claimSucceeded(NOTHING)
  assert.deepEqual([backlog.hasFresh, backlog.nextRetryAtMs, backlog.hasDueRetries(9)], [false, null, false])
})

test('work announced during a claim is still known after its answer', () => {
  const backlog = new Backlog()
  backlog.claimStarted(true)
  backlog.wake()
  backlog.returned(3, 700)
  backlog.claimSucceeded({ ...NOTHING, nextRetryAtMs: 900 })
  assert.deepEqual([backlog.hasFresh, backlog.nextRetryAtMs], [true, 700])
  assert.deepEqual([backlog.hasDueRetries(699), backlog.hasDueRetries(700)], [false, true])
})

test('a claim of retries only does not clear announced new shipments', () => {
  const backlog = new Backlog()
  backlog.claimStarted(false)
  backlog.claimSucceeded(NOTHING)
  assert.ok(backlog.hasFresh)
})

test('a claim may report that work is left, and a failed claim changes nothing', () => {
  const backlog = new Backlog()
  backlog.claimStarted(true)
  backlog.claimSucceeded({ ...NOTHING, moreFresh: true, nextRetryAtMs: 500 })
  assert.ok(backlog.hasFresh)
  const known = backlog.claimStarted(true)
  backlog.claimFailed(known)
  assert.deepEqual([backlog.hasFresh, backlog.nextRetryAtMs], [true, 500])
})
