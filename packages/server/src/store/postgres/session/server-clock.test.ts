import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServerClock } from './server-clock.ts'

/** How far the server's clock is ahead of ours. */
const aheadMs = (clock: ServerClock): number => Math.round(clock.nowMs() - performance.now())

test('a fast answer is preferred to a slow one, whichever came first', () => {
  const clock = new ServerClock()
  clock.learn(5_000, 0, 400)
  assert.equal(aheadMs(clock), 4_800)
  clock.learn(5_501, 500, 502)
  assert.equal(aheadMs(clock), 5_000)
  clock.learn(6_000, 1_000, 1_200)
  assert.equal(aheadMs(clock), 5_000, 'the answer took 200 ms: anything from 4,800 to 5,000 is possible')
})

test('an old measurement loses precision', () => {
  const clock = new ServerClock()
  clock.learn(5_001, 0, 2)
  clock.learn(3_605_010, 3_600_000, 3_600_100)
  assert.equal(aheadMs(clock), 4_960)
})

test('a clock that was set is noticed at the next answer, even a slow one', () => {
  const clock = new ServerClock()
  clock.learn(5_001, 0, 2)
  clock.learn(2_000, 1_000, 1_400)
  assert.equal(aheadMs(clock), 800)
})
