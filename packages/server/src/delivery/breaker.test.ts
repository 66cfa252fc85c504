import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { Breaker, type BreakerState, FAILURES_TO_OPEN, FIRST_PROBE_MS, MAX_PROBE_MS, RAMP_START } from './breaker.ts'

const MAX = 50

function breaker(random = 0.5): Breaker {
  return new Breaker(() => random)
}

function opened(nowMs = 0): Breaker {
  const one = breaker()
  for (let nth = 0; nth < FAILURES_TO_OPEN; nth++) one.failed(nowMs)
  return one
}

function probing(): Breaker {
  const one = opened()
  one.started()
  return one
}

test('every event in every state leads where it should', () => {
  const states: Record<BreakerState, () => Breaker> = { closed: breaker, open: opened, probing }
  const events: Record<string, (one: Breaker) => void> = {
    started: (one) => one.started(),
    succeeded: (one) => one.succeeded(MAX),
    failed: (one) => one.failed(0),
    withdrawn: (one) => one.withdrawn(),
    reset: (one) => one.reset(),
  }
  const table: Record<string, Record<string, BreakerState>> = {}
  for (const [state, make] of Object.entries(states)) {
    for (const [event, act] of Object.entries(events)) {
      const one = make()
      assert.equal(one.state, state)
      act(one)
      ;(table[state] ??= {})[event] = one.state
    }
  }
  assert.deepEqual(table, {
    closed: { started: 'closed', succeeded: 'closed', failed: 'closed', withdrawn: 'closed', reset: 'closed' },
    open: { started: 'probing', succeeded: 'closed', failed: 'open', withdrawn: 'open', reset: 'closed' },
    probing: { started: 'probing', succeeded: 'closed', failed: 'open', withdrawn: 'open', reset: 'closed' },
  })
})

test('it opens after a run of failures, and a success in between begins the run anew', () => {
  const one = breaker()
  for (let nth = 1; nth < FAILURES_TO_OPEN; nth++) one.failed(0)
  assert.deepEqual([one.state, one.allowance(0, MAX), one.probeAtMs], ['closed', MAX, null])
  one.succeeded(MAX)
  for (let nth = 1; nth < FAILURES_TO_OPEN; nth++) one.failed(0)
  assert.equal(one.state, 'closed')
  one.failed(0)
  assert.deepEqual([one.state, one.allowance(0, MAX)], ['open', 0])
})

test('one probe at a time, once its time has come', () => {
  const one = opened(1_000)
  const probeAtMs = one.probeAtMs as number
  assert.equal(probeAtMs, 1_000 + FIRST_PROBE_MS)
  assert.deepEqual([one.allowance(probeAtMs - 1, MAX), one.allowance(probeAtMs, MAX)], [0, 1])
  one.started()
  // The probe itself is the one that may be in flight.
  assert.equal(one.allowance(probeAtMs + 1_000_000, MAX), 1)
})

test('probes come further and further apart, and what was in flight when it opened is none', () => {
  const one = opened()
  const first = one.probeAtMs
  for (let straggler = 0; straggler < 20; straggler++) one.failed(500)
  assert.equal(one.probeAtMs, first)
  const gapsMs: number[] = []
  for (let nth = 0; nth < 8; nth++) {
    const atMs = one.probeAtMs as number
    one.started()
    one.failed(atMs)
    gapsMs.push((one.probeAtMs as number) - atMs)
  }
  assert.deepEqual(gapsMs, [4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000])
})

test('the spacing is spread by a quarter either way', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.nat({ max: 20 }), (random, probes) => {
      const one = breaker(random)
      for (let nth = 0; nth < FAILURES_TO_OPEN; nth++) one.failed(0)
      for (let nth = 0; nth < probes; nth++) {
        one.started()
        one.failed(0)
      }
      const stepMs = Math.min(FIRST_PROBE_MS * 2 ** probes, MAX_PROBE_MS)
      const gapMs = one.probeAtMs as number
      assert.ok(gapMs >= stepMs * 0.75 && gapMs <= Math.ceil(stepMs * 1.25))
    }),
  )
})

test('a probe that was stopped from our side leaves everything as it was', () => {
  const one = probing()
  const probeAtMs = one.probeAtMs as number
  one.withdrawn()
  assert.deepEqual([one.state, one.probeAtMs, one.allowance(probeAtMs, MAX)], ['open', probeAtMs, 1])
})

test('on recovery the rate grows with every success from two to all, and not past it', () => {
  const one = probing()
  one.succeeded(5)
  const allowances = [one.allowance(0, 5)]
  for (let nth = 0; nth < 5; nth++) {
    one.succeeded(5)
    allowances.push(one.allowance(0, 5))
  }
  assert.deepEqual(allowances, [RAMP_START, 3, 4, 5, 5, 5])
  // Grown to all there was, it is not in the way of a limit that is raised.
  assert.equal(one.allowance(0, 100), 100)
  assert.equal(opened().allowance(1_000_000, 1), 1)
})

test('a receiver that fails on recovery is probed again after the shortest time', () => {
  const one = probing()
  one.succeeded(MAX)
  for (let nth = 0; nth < FAILURES_TO_OPEN; nth++) one.failed(9_000)
  assert.deepEqual([one.state, one.probeAtMs], ['open', 9_000 + FIRST_PROBE_MS])
})

test('reset forgets all: the destination is another one now', () => {
  const one = probing()
  one.reset()
  assert.deepEqual([one.state, one.probeAtMs, one.allowance(0, MAX)], ['closed', null, MAX])
  for (let nth = 1; nth < FAILURES_TO_OPEN; nth++) one.failed(0)
  assert.equal(one.state, 'closed')
})
