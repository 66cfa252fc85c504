import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byNeed, type Seen, type StandingName, standingOf } from './standing.ts'

const NOW = Date.parse('2026-11-15T12:00:00.000Z')
const SEEN: Seen = { breaker: 'closed', success: 1, pending: 0, oldestPendingAt: null }
const of = (seen: Partial<Seen>, destination = {}): string =>
  standingOf({ enabled: true, sourceIds: ['src_1'], ...destination }, { ...SEEN, ...seen }, NOW).name

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
  assert.equal(of({ breaker: 'open' }, { enabled: false }), 'paused')
})

test('who needs help comes first', () => {
  assert.deepEqual((['healthy', 'paused', 'failing', 'behind'] satisfies StandingName[]).sort(byNeed), [
    'failing',
    'behind',
    'paused',
    'healthy',
  ])
})
