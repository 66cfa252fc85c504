import assert from 'node:assert/strict'
import test from 'node:test'
import { Slowdown } from './slowdown.ts'

interface Sample {
  turns: number
  /** How long ingest worked, and how long the request took. */
  busyMs: number
  tookMs: number
}

function watch(...samples: Sample[]): boolean {
  const used = { turns: 0, busyMs: 0, nowMs: 0 }
  const slowdown = new Slowdown({
    get used() {
      return { ...used }
    },
  })
  for (const { turns, busyMs, tookMs } of samples) {
    const request = {}
    slowdown.started(request)
    slowdown.started({})
    used.turns += turns
    used.busyMs += busyMs
    used.nowMs += tookMs
    slowdown.answered({})
    slowdown.answered(request)
  }
  return slowdown.isSlowed
}

const SLOWED: Sample = { turns: 1, busyMs: 8, tookMs: 10 }
const UNDISTURBED: Sample = { turns: 0, busyMs: 0, tookMs: 2 }
const SLOW_RECEIVER: Sample = { turns: 90, busyMs: 900, tookMs: 1_000 }
const SLOW_RECEIVER_LITTLE_INGEST: Sample = { turns: 2, busyMs: 10, tookMs: 1_000 }

test('a lane is slowed down if a turn of ingest is a large part of what its requests take', () => {
  assert.equal(watch(), false)
  assert.equal(watch(SLOWED), false, 'one request does not decide')
  assert.equal(watch(SLOWED, SLOWED), true)
})

test('a receiver that is slow itself is not slowed down, however busy ingest is', () => {
  assert.equal(watch(SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER), false)
  assert.equal(watch(SLOW_RECEIVER_LITTLE_INGEST, SLOW_RECEIVER_LITTLE_INGEST), false)
})

test('requests during which ingest did nothing do not change the judgement', () => {
  assert.equal(watch(UNDISTURBED, UNDISTURBED, UNDISTURBED), false)
  assert.equal(watch(SLOWED, SLOWED, UNDISTURBED, UNDISTURBED, UNDISTURBED), true)
})

test('the judgement follows a receiver that becomes slow, after a few requests', () => {
  const slowed = Array.from({ length: 10 }, () => SLOWED)
  assert.equal(watch(...slowed, SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER), true)
  assert.equal(watch(...slowed, SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER), false)
})
