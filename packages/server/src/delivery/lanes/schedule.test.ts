import assert from 'node:assert/strict'
import test from 'node:test'
import type { Destination } from '../../store/store.ts'
import { ManualClock } from '../fixtures/manual-clock.ts'
import { Schedule } from './schedule.ts'

const DESTINATION = { id: 'dst' } as Destination

function scheduleWith() {
  const clock = new ManualClock(0)
  const state = {
    isHeld: false,
    blocked: false,
    blockedUntilMs: 0,
    share: 1,
    notBeforeMs: 0,
    hasFresh: false,
    nextRetryAtMs: null as number | null,
    loadAtMs: null as number | null,
    isBlocked: () => state.blocked,
    hasDueRetries: (nowMs: number) => state.nextRetryAtMs !== null && state.nextRetryAtMs <= nowMs,
  }
  const wakes: number[] = []
  const schedule = new Schedule({
    setTimer: clock.setTimer,
    gate: state,
    claiming: state,
    backlog: state,
    queue: { hasFresh: false, hasRetries: false },
    ordered: { hasMore: false, nextAtMs: null, hasHead: false, hasClaimed: false },
    expiryCheck: { checkIfDue: () => 30_000 },
    crowdedCheck: { checkIfDue: () => 1_000 },
    loadAtMs: () => state.loadAtMs,
    wake: () => wakes.push(clock.scheduleMs()),
  })
  return { schedule, state, clock, wakes }
}

/** The times at which the lane is woken, and the time of the next attempt that it reports. */
function planned(change: Partial<ReturnType<typeof scheduleWith>['state']>): [wakes: number[], nextAttemptAtMs: number | null] {
  const { schedule, state, clock, wakes } = scheduleWith()
  Object.assign(state, change)
  const nextAttemptAtMs = schedule.nextAttemptAtMs(0)
  schedule.set(DESTINATION, 0)
  clock.advance(50_000)
  return [wakes, nextAttemptAtMs]
}

test('no timer is set if nothing is waiting; the lane is woken when a retry is due', () => {
  assert.deepEqual(planned({}), [[], null])
  assert.deepEqual(planned({ nextRetryAtMs: 7_000 }), [[7_000], 7_000])
  assert.deepEqual(planned({ hasFresh: true }), [[], 0], 'work that may be sent now needs no timer')
})

test('if work is waiting, the lane is woken when Retry-After or the breaker allows a request, or the next claim is allowed', () => {
  assert.deepEqual(planned({ hasFresh: true, blockedUntilMs: 5_000 }), [[5_000], 5_000])
  assert.deepEqual(planned({ hasFresh: true, notBeforeMs: 1_000 }), [[1_000], 0])
  assert.deepEqual(planned({ nextRetryAtMs: 2_000, blockedUntilMs: 5_000 }), [[5_000], 5_000])
})

test('new messages for a warehouse wait for the next load, but not a load that is repeated', () => {
  const nextAt = (change: Parameters<typeof planned>[0]) => planned({ loadAtMs: 9_000, ...change })[1]
  assert.deepEqual([nextAt({ hasFresh: true }), nextAt({ hasFresh: true, nextRetryAtMs: 7_000 })], [9_000, 7_000])
  assert.deepEqual([nextAt({ hasFresh: true, blockedUntilMs: 12_000 }), nextAt({ hasFresh: true, nextRetryAtMs: 0 })], [12_000, 0])
  assert.deepEqual([nextAt({}), nextAt({ hasFresh: true, loadAtMs: -1 })], [null, 0])
})

test('while nothing may be sent, the lane wakes for overdue deliveries, if this node has a share of the destination', () => {
  const blocked = { nextRetryAtMs: 40_000, blocked: true }
  assert.deepEqual(planned(blocked)[0], [30_000])
  assert.deepEqual(planned({ ...blocked, share: 0 })[0], [40_000])
})

test('a node without a share of the destination reports no next attempt', () => {
  for (const waiting of [{ hasFresh: true }, { hasFresh: true, loadAtMs: -1 }, { nextRetryAtMs: 0 }, { nextRetryAtMs: 7_000 }])
    assert.equal(planned({ ...waiting, share: 0 })[1], null)
})

test('while the gate is held there is no timer and no next attempt', () => {
  assert.deepEqual(planned({ isHeld: true, hasFresh: true, nextRetryAtMs: 7_000, blockedUntilMs: 5_000 }), [[], null])
})

test('a cancelled schedule does not wake the lane', () => {
  const { schedule, state, clock, wakes } = scheduleWith()
  state.nextRetryAtMs = 7_000
  schedule.set(DESTINATION, 0)
  schedule.cancel()
  clock.advance(50_000)
  assert.deepEqual([wakes, clock.timers], [[], 0])
})
