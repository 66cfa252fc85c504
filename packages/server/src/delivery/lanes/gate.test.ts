import assert from 'node:assert/strict'
import test from 'node:test'
import type { OrderKey } from '../../model/order/order-key.ts'
import type { Destination } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'
import { FAILURES_TO_OPEN } from './breaker.ts'
import { Gate, type Hold } from './gate.ts'

const WINDOW_MS = 60_000

function gateOf(change: Partial<Destination> = {}) {
  const state = { nowMs: 0, share: 50, hold: null as Hold | null }
  const told: string[] = []
  const destination = {
    id: 'dst',
    type: 'webhook',
    urls: ['https://example.com/'],
    enabled: true,
    paused: false,
    maxInFlight: 50,
    retryWindowMs: WINDOW_MS,
    ...change,
  } as Destination
  const gate = new Gate({
    store: { share: (_id, maxInFlight) => Math.min(state.share, maxInFlight) },
    clock: { scheduleMs: () => state.nowMs },
    random: () => 0.5,
    events: { breaker: (_destination, breaker) => told.push(breaker) },
    destination: () => destination,
    holdOf: () => state.hold,
    onBlocked: () => told.push('blocked'),
  })
  const judge = (outcome: Pick<Outcome, 'verdict'> & Partial<Outcome>, key: OrderKey | null = null): void =>
    gate.judge([{ url: 'https://example.com/', startedAtMs: 0, version: 1, outcome: outcome as Outcome }], key)
  const answer = (verdict: Outcome['verdict'], retryAfterMs: number | null = null): void => judge({ verdict, retryAfterMs })
  return { gate, state, told, answer, judge }
}

test('of emails, at most 20 are in flight, and of the loads of a warehouse one', () => {
  assert.equal(gateOf({ urls: ['smtps://mail.example.com:465'] }).gate.allowance(0), 20)
  assert.equal(gateOf({ urls: ['smtps://mail.example.com:465'], maxInFlight: 5 }).gate.allowance(0), 5)
  assert.equal(gateOf({ type: 'warehouse' }).gate.allowance(0), 1)
})

test('the gate is held if the destination is disabled or paused, or the lane was stopped', () => {
  assert.equal(gateOf({ enabled: false }).gate.isHeld, true)
  assert.equal(gateOf({ paused: true }).gate.isHeld, true)
  const { gate } = gateOf()
  assert.deepEqual([gate.isHeld, gate.isBlocked(0), gate.allowance(0)], [false, false, 50])
  gate.stop()
  assert.deepEqual([gate.isHeld, gate.isBlocked(0)], [true, true])
})

test('the gate is held while this node has a reason of its own, also while it still finds out', () => {
  const { gate, state } = gateOf()
  for (const problem of ['an action is gone', null]) {
    state.hold = { problem }
    assert.deepEqual([gate.isHeld, gate.isBlocked(0), gate.hold], [true, true, { problem }])
  }
  state.hold = null
  assert.deepEqual([gate.isHeld, gate.isBlocked(0)], [false, false])
})

test('a node without a share of the limit sends nothing', () => {
  const { gate, state } = gateOf()
  state.share = 0
  assert.deepEqual([gate.allowance(0), gate.isBlocked(0), gate.isHeld], [0, true, false])
})

test('Retry-After blocks the destination for the time it gives, up to the retry window', () => {
  const { gate, told, answer } = gateOf()
  answer('temporary', 5_000)
  assert.deepEqual(told, ['blocked'])
  assert.deepEqual([gate.allowance(4_999), gate.isBlocked(4_999), gate.blockedUntilMs], [0, true, 5_000])
  assert.deepEqual([gate.allowance(5_000), gate.isBlocked(5_000)], [50, false])
  answer('temporary', 10 * WINDOW_MS)
  assert.equal(gate.blockedUntilMs, WINDOW_MS)
  answer('temporary', 1)
  assert.equal(gate.blockedUntilMs, WINDOW_MS, 'a shorter pause does not end a longer one')
})

test('shipments are released before the event that the breaker opened; a success closes it', () => {
  const { gate, state, told, answer } = gateOf()
  for (let nth = 0; nth < FAILURES_TO_OPEN; nth++) answer('temporary')
  assert.deepEqual(told, ['blocked', 'open'])
  assert.deepEqual([gate.onlyProbes, gate.allowance(0), gate.mayProbe(0)], [true, 0, false])
  state.nowMs = gate.blockedUntilMs
  assert.deepEqual([gate.allowance(state.nowMs), gate.mayProbe(state.nowMs)], [1, true])
  gate.breaker.started()
  assert.equal(gate.mayProbe(state.nowMs), false, 'one probe at a time')
  answer('success')
  assert.deepEqual([gate.onlyProbes, gate.breaker.state, told.at(-1)], [false, 'closed', 'closed'])
})

test('permanent failures do not open the breaker: the receiver is alive', () => {
  const { gate, told, answer } = gateOf()
  for (let nth = 0; nth < 2 * FAILURES_TO_OPEN; nth++) answer('permanent')
  assert.deepEqual([gate.breaker.state, told], ['closed', []])
})

test('failures of one key alone do not open the breaker; those of many keys do, and of one key while it is open', () => {
  const { gate, state, judge } = gateOf()
  const fail = (key: OrderKey): void => judge({ verdict: 'temporary', retryAfterMs: null }, key)
  for (let nth = 0; nth < 2 * FAILURES_TO_OPEN; nth++) fail(1)
  assert.equal(gate.breaker.state, 'closed')
  for (let key = 2; key < FAILURES_TO_OPEN; key++) fail(key)
  assert.equal(gate.breaker.state, 'closed')
  judge({ verdict: 'success' }, 99)
  for (let key = 1; key < FAILURES_TO_OPEN; key++) fail(key)
  assert.equal(gate.breaker.state, 'closed', 'a success starts the count again')
  fail(FAILURES_TO_OPEN)
  assert.equal(gate.breaker.state, 'open')
  state.nowMs = gate.blockedUntilMs
  gate.breaker.started()
  fail(1)
  assert.ok(gate.blockedUntilMs > state.nowMs, 'a probe with a key that has failed before')
})

test('of an ordered destination, only the Retry-After of a rate limit blocks it', () => {
  const { gate, judge } = gateOf()
  judge({ verdict: 'temporary', status: 500, retryAfterMs: 5_000 }, 1)
  assert.equal(gate.isBlocked(0), false)
  for (const [nth, status] of [429, 503].entries()) {
    judge({ verdict: 'temporary', status, retryAfterMs: 5_000 * (nth + 1) }, 1)
    assert.equal(gate.blockedUntilMs, 5_000 * (nth + 1), String(status))
  }
})

test('a report of another node opens the breaker; new URLs close it and end the pause', () => {
  const { gate, told, answer } = gateOf()
  answer('temporary', 5_000)
  gate.onPeerReport({ openForMs: 3_000, failedAgoMs: 0, closedAgoMs: null }, true)
  assert.deepEqual(told, ['blocked', 'blocked', 'open'])
  gate.reset()
  assert.deepEqual([gate.breaker.state, gate.isBlocked(0), gate.blockedUntilMs, told.at(-1)], ['closed', false, 0, 'closed'])
})
