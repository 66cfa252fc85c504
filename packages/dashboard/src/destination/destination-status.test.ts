import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byUrgency, holdOf, type StatusHealth, type StatusName, statusOf } from './destination-status.ts'

const NOW = Date.parse('2026-11-15T12:00:00.000Z')
const HEALTH: StatusHealth = {
  breaker: 'closed',
  success: 1,
  pending: 0,
  oldestPendingAt: null,
  held: null,
  openSince: null,
  failure: null,
  mostFrequentFailure: null,
}
const nameOf = (health: Partial<StatusHealth>, settings = {}): string =>
  statusOf({ enabled: true, paused: false, sourceIds: ['src_1'], ...settings }, { ...HEALTH, ...health }, NOW).name

test('names the status of a destination', () => {
  assert.equal(nameOf({}), 'healthy')
  assert.equal(nameOf({ success: null }), 'idle')
  assert.equal(nameOf({ success: 0.94 }), 'degraded')
  assert.equal(nameOf({ success: 0.96 }), 'healthy')
  assert.equal(nameOf({ breaker: 'open', success: 0 }), 'failing')
  const refused = (attempts: number) => ({ error: 'The receiver answered 422.', attempts, responseStart: null })
  assert.equal(nameOf({ success: 0, mostFrequentFailure: refused(10) }), 'failing', 'without a circuit breaker, for permanent failures')
  assert.equal(nameOf({ success: 0, mostFrequentFailure: refused(9) }), 'degraded')
  assert.equal(nameOf({ success: 0.01, mostFrequentFailure: refused(10) }), 'degraded')
  assert.equal(nameOf({ breaker: 'probing' }), 'failing')
  assert.equal(nameOf({ held: 'An action is gone.', breaker: 'open' }), 'held')
  assert.equal(nameOf({ held: 'An action is gone.' }, { paused: true }), 'paused')
  assert.equal(nameOf({ pending: 1, oldestPendingAt: '2026-11-15T10:59:00.000Z' }), 'behind')
  assert.equal(nameOf({ pending: 1, oldestPendingAt: '2026-11-15T11:01:00.000Z' }), 'healthy')
  assert.equal(nameOf({ success: null }, { sourceIds: [] }), 'no source')
  assert.equal(nameOf({ breaker: 'open' }, { enabled: false }), 'disabled')
  assert.equal(nameOf({ breaker: 'open' }, { paused: true }), 'paused')
  assert.equal(nameOf({ pending: 1, oldestPendingAt: '2026-11-15T10:59:00.000Z' }, { paused: true }), 'paused')
  assert.equal(nameOf({}, { enabled: false, paused: true }), 'disabled', 'disabled wins: new messages skip the destination')
})

test('says why a destination fails before anything else', () => {
  const failure = { reason: 'connection_refused', error: 'Connection refused.' }
  const summary = (health: Partial<StatusHealth>): string =>
    statusOf({ enabled: true, paused: false, sourceIds: ['src_1'] }, { ...HEALTH, ...health }, NOW).summary
  const open = { breaker: 'open', openSince: '2026-11-15T11:48:00.000Z' } as const
  assert.equal(summary({ ...open, failure }), 'Connection refused. Failing for 12 min. One delivery is tried at a time.')
  assert.equal(summary({ ...open, breaker: 'probing', failure }), 'Connection refused. Failing for 12 min. One delivery is being tried.')
  assert.equal(summary(open), 'Attempts have failed for 12 min. One delivery is tried at a time.', 'another node made the attempt')
  const mostFrequentFailure = { error: 'The receiver answered 500.', attempts: 1_041, responseStart: '{\n  "error": "oops" }' }
  assert.equal(
    summary({ success: 0.5, failure, mostFrequentFailure }),
    'The receiver answered 500. The response began with “{ "error": "oops" }”. 1,041 recent attempts failed for this reason; 50% of all recent attempts succeeded.',
  )
  assert.equal(
    summary({ success: 0.5, mostFrequentFailure: { error: 'Connection refused.', attempts: 1, responseStart: null } }),
    'Connection refused. 1 recent attempt failed for this reason; 50% of all recent attempts succeeded.',
  )
  assert.match(summary({ success: 0.5, mostFrequentFailure: { ...mostFrequentFailure, responseStart: 'x'.repeat(300) } }), /“x{120}…”/)
})

test('a warehouse with a table that cannot be loaded is degraded, and the table and the reason are named', () => {
  const failing = { table: 'shop.order_completed', error: 'The permission is missing.' }
  const seen = (failingTables: StatusHealth['failingTables'] & object) =>
    statusOf({ enabled: true, paused: false, sourceIds: ['src_1'] }, { ...HEALTH, failingTables }, NOW)
  assert.deepEqual(seen([]).name, 'healthy')
  const { name, summary } = seen([failing])
  assert.equal(name, 'degraded')
  assert.equal(
    summary,
    'shop.order_completed cannot be loaded: The permission is missing. All remaining tables are loaded. Messages of tables that cannot be loaded are retried.',
  )
  assert.match(seen([failing, failing, failing]).summary, /2 other tables cannot be loaded either\./)
})

test('says that new messages skip a disabled destination and are queued for a paused one', () => {
  const summary = (settings: { enabled: boolean; paused: boolean }, pending: number): string =>
    statusOf({ sourceIds: [], ...settings }, { ...HEALTH, pending }, NOW).summary
  assert.equal(summary({ enabled: false, paused: false }, 2), 'Disabled. Pending deliveries are held; new messages skip this destination.')
  assert.equal(
    summary({ enabled: true, paused: true }, 2),
    'Paused. Pending deliveries are held; new messages are queued until you resume it.',
  )
  assert.equal(
    summary({ enabled: true, paused: true }, 0),
    'Paused. No deliveries are pending; new messages are queued until you resume it.',
  )
  assert.equal(holdOf({ enabled: true, paused: false }), null)
})

test('sorts the most urgent first', () => {
  assert.deepEqual((['healthy', 'paused', 'failing', 'behind'] satisfies StatusName[]).sort(byUrgency), [
    'failing',
    'behind',
    'paused',
    'healthy',
  ])
})
