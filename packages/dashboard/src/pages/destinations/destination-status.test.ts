import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byUrgency, holdOf, type Seen, type StatusName, statusOf } from './destination-status.ts'

const NOW = Date.parse('2026-11-15T12:00:00.000Z')
const SEEN: Seen = { breaker: 'closed', success: 1, pending: 0, oldestPendingAt: null }
const of = (seen: Partial<Seen>, destination = {}): string =>
  statusOf({ enabled: true, paused: false, sourceIds: ['src_1'], ...destination }, { ...SEEN, ...seen }, NOW).name

test('a word for each way that a destination can do', () => {
  assert.equal(of({}), 'healthy')
  assert.equal(of({ success: null }), 'idle')
  assert.equal(of({ success: 0.94 }), 'struggling')
  assert.equal(of({ success: 0.96 }), 'healthy')
  assert.equal(of({ breaker: 'open', success: 0 }), 'failing')
  assert.equal(of({ breaker: 'probing' }), 'failing')
  assert.equal(of({ pending: 1, oldestPendingAt: '2026-11-15T10:59:00.000Z' }), 'behind')
  assert.equal(of({ pending: 1, oldestPendingAt: '2026-11-15T11:01:00.000Z' }), 'healthy')
  assert.equal(of({ success: null }, { sourceIds: [] }), 'unconnected')
  assert.equal(of({ breaker: 'open' }, { enabled: false }), 'disabled')
  assert.equal(of({ breaker: 'open' }, { paused: true }), 'paused')
  assert.equal(of({ pending: 1, oldestPendingAt: '2026-11-15T10:59:00.000Z' }, { paused: true }), 'paused')
  assert.equal(of({}, { enabled: false, paused: true }), 'disabled', 'new messages skip it, which is the worse')
})

test('what is disabled skips new messages, and what is paused keeps them', () => {
  const says = (destination: { enabled: boolean; paused: boolean }, pending: number): string =>
    statusOf({ sourceIds: [], ...destination }, { ...SEEN, pending }, NOW).says
  assert.equal(says({ enabled: false, paused: false }, 2), 'Disabled. What it is owed is held; new messages skip it.')
  assert.equal(says({ enabled: true, paused: true }, 2), 'Paused. What it is owed is held; new messages are kept for it too.')
  assert.equal(says({ enabled: true, paused: true }, 0), 'Paused. Nothing is held yet; new messages are kept for it too.')
  assert.equal(holdOf({ enabled: true, paused: false }), null)
})

test('who needs help comes first', () => {
  assert.deepEqual((['healthy', 'paused', 'failing', 'behind'] satisfies StatusName[]).sort(byUrgency), [
    'failing',
    'behind',
    'paused',
    'healthy',
  ])
})
