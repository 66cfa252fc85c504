import assert from 'node:assert/strict'
import test from 'node:test'
import type { Destination } from '../../store/store.ts'
import { HandClock } from '../fixtures/hand-clock.ts'
import { Schedule } from './schedule.ts'

const DESTINATION = { id: 'dst' } as Destination

function scheduleWith() {
  const clock = new HandClock(0)
  const state = {
    isHeld: false,
    blocked: false,
    blockedUntilMs: 0,
    share: 1,
    notBeforeMs: 0,
    hasFresh: false,
    nextRetryAtMs: null as number | null,
    isBlocked: () => state.blocked,
    hasDueRetries: (nowMs: number) => state.nextRetryAtMs !== null && state.nextRetryAtMs <= nowMs,
  }
  const looks: number[] = []
  const schedule = new Schedule({
    setTimer: clock.setTimer,
    gate: state,
    claiming: state,
    backlog: state,
    waiting: { hasFresh: false, hasRetries: false },
    overdue: { look: () => 30_000 },
    look: () => looks.push(clock.scheduleMs()),
  })
  return { schedule, state, clock, looks }
}

/** When the lane looks again, and when it says that something is tried next. */
function planned(change: Partial<ReturnType<typeof scheduleWith>['state']>): [looks: number[], nextAttemptAtMs: number | null] {
  const { schedule, state, clock, looks } = scheduleWith()
  Object.assign(state, change)
  const nextAttemptAtMs = schedule.nextAttemptAtMs(0)
  schedule.set(DESTINATION, 0)
  clock.advance(50_000)
  return [looks, nextAttemptAtMs]
}

test('nothing that waits, nothing to look for; a retry is looked for when it is due', () => {
  assert.deepEqual(planned({}), [[], null])
  assert.deepEqual(planned({ nextRetryAtMs: 7_000 }), [[7_000], 7_000])
  assert.deepEqual(planned({ hasFresh: true }), [[], 0], 'what may go now needs no timer')
})

test('what waits is looked for when the pause or the breaker allows it, or the store may be asked again', () => {
  assert.deepEqual(planned({ hasFresh: true, blockedUntilMs: 5_000 }), [[5_000], 5_000])
  assert.deepEqual(planned({ hasFresh: true, notBeforeMs: 1_000 }), [[1_000], 0])
  assert.deepEqual(planned({ nextRetryAtMs: 2_000, blockedUntilMs: 5_000 }), [[5_000], 5_000])
})

test('while nothing may be tried, overdue deliveries are looked for, by nodes that send to the destination', () => {
  const blocked = { nextRetryAtMs: 40_000, blocked: true }
  assert.deepEqual(planned(blocked)[0], [30_000])
  assert.deepEqual(planned({ ...blocked, share: 0 })[0], [40_000])
})

test('a destination that is held has no timer, and nothing is tried next', () => {
  assert.deepEqual(planned({ isHeld: true, hasFresh: true, nextRetryAtMs: 7_000, blockedUntilMs: 5_000 }), [[], null])
})

test('after it was cancelled it does not ring', () => {
  const { schedule, state, clock, looks } = scheduleWith()
  state.nextRetryAtMs = 7_000
  schedule.set(DESTINATION, 0)
  schedule.cancel()
  clock.advance(50_000)
  assert.deepEqual([looks, clock.timers], [[], 0])
})
