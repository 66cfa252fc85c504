import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { BreakerState } from '../events/events.ts'
import {
  Breaker,
  FAILURES_TO_OPEN,
  FIRST_PROBE_MS,
  MAX_PROBE_MS,
  PEER_PROBE_FACTOR,
  type PeerReport,
  RAMP_START,
  TRUST_OWN_SUCCESS_MS,
} from './breaker.ts'

const MAX = 50
const FAILING: PeerReport = { openForMs: 3_000, failedAgoMs: 100, closedAgoMs: null }
const RECOVERED: PeerReport = { openForMs: null, failedAgoMs: Number.POSITIVE_INFINITY, closedAgoMs: 200 }
const QUIET: PeerReport = { openForMs: null, failedAgoMs: Number.POSITIVE_INFINITY, closedAgoMs: null }

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

test('every event in every state leads to the right state', () => {
  const states: Record<BreakerState, () => Breaker> = { closed: breaker, open: opened, probing }
  const events: Record<string, (one: Breaker) => void> = {
    started: (one) => one.started(),
    succeeded: (one) => one.succeeded(MAX, 0),
    failed: (one) => one.failed(0),
    withdrawn: (one) => one.withdrawn(),
    reset: (one) => one.reset(),
    peerFailing: (one) => one.onPeerReport(FAILING, true, 0),
    peerRecovered: (one) => one.onPeerReport(RECOVERED, true, 1_000),
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
    closed: {
      started: 'closed',
      succeeded: 'closed',
      failed: 'closed',
      withdrawn: 'closed',
      reset: 'closed',
      peerFailing: 'open',
      peerRecovered: 'closed',
    },
    open: {
      started: 'probing',
      succeeded: 'closed',
      failed: 'open',
      withdrawn: 'open',
      reset: 'closed',
      peerFailing: 'open',
      peerRecovered: 'closed',
    },
    probing: {
      started: 'probing',
      succeeded: 'closed',
      failed: 'open',
      withdrawn: 'open',
      reset: 'closed',
      peerFailing: 'probing',
      peerRecovered: 'closed',
    },
  })
})

test('the breaker opens after a run of failures, and a success restarts the count', () => {
  const one = breaker()
  for (let nth = 1; nth < FAILURES_TO_OPEN; nth++) one.failed(0)
  assert.deepEqual([one.state, one.allowance(0, MAX), one.probeAtMs], ['closed', MAX, null])
  one.succeeded(MAX, 0)
  for (let nth = 1; nth < FAILURES_TO_OPEN; nth++) one.failed(0)
  assert.equal(one.state, 'closed')
  one.failed(0)
  assert.deepEqual([one.state, one.allowance(0, MAX)], ['open', 0])
})

test('one probe at a time is allowed, once it is due', () => {
  const one = opened(1_000)
  const probeAtMs = one.probeAtMs as number
  assert.equal(probeAtMs, 1_000 + FIRST_PROBE_MS)
  assert.deepEqual([one.allowance(probeAtMs - 1, MAX), one.allowance(probeAtMs, MAX)], [0, 1])
  one.started()
  // The allowance is used by the probe itself.
  assert.equal(one.allowance(probeAtMs + 1_000_000, MAX), 1)
})

test('the interval between probes grows, and requests in flight when the breaker opened do not count as probes', () => {
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

test('the probe interval is randomized by up to 25% either way', () => {
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

test('a probe that this node aborts changes nothing', () => {
  const one = probing()
  const probeAtMs = one.probeAtMs as number
  one.withdrawn()
  assert.deepEqual([one.state, one.probeAtMs, one.allowance(probeAtMs, MAX)], ['open', probeAtMs, 1])
})

test('on recovery, every success raises the allowance by one, from two up to the limit', () => {
  const one = probing()
  one.succeeded(5, 0)
  const allowances = [one.allowance(0, 5)]
  for (let nth = 0; nth < 5; nth++) {
    one.succeeded(5, 0)
    allowances.push(one.allowance(0, 5))
  }
  assert.deepEqual(allowances, [RAMP_START, 3, 4, 5, 5, 5])
  // Once the ramp has reached the limit, it does not restrict a limit that is raised later.
  assert.equal(one.allowance(0, 100), 100)
  assert.equal(opened().allowance(1_000_000, 1), 1)
})

test('a receiver that fails again after a recovery is probed after the shortest interval', () => {
  const one = probing()
  one.succeeded(MAX, 0)
  for (let nth = 0; nth < FAILURES_TO_OPEN; nth++) one.failed(9_000)
  assert.deepEqual([one.state, one.probeAtMs], ['open', 9_000 + FIRST_PROBE_MS])
})

test('reset clears all state, because the destination is a different receiver', () => {
  const one = probing()
  one.reset()
  assert.deepEqual([one.state, one.probeAtMs, one.allowance(0, MAX)], ['closed', null, MAX])
  for (let nth = 1; nth < FAILURES_TO_OPEN; nth++) one.failed(0)
  assert.equal(one.state, 'closed')
})

test('a report of failures from another node opens the breaker, unless this node had a success within the last 5 seconds', () => {
  const idle = breaker()
  idle.onPeerReport(FAILING, true, 10_000)
  assert.deepEqual([idle.state, idle.probeAtMs, idle.allowance(10_000, MAX)], ['open', 13_000, 0])

  const working = breaker()
  working.succeeded(MAX, 10_000)
  working.onPeerReport(FAILING, true, 10_000 + TRUST_OWN_SUCCESS_MS - 1)
  assert.equal(working.state, 'closed')
  working.onPeerReport(FAILING, true, 10_000 + TRUST_OWN_SUCCESS_MS)
  assert.equal(working.state, 'open')
})

test('a failure on another node that precedes a success on this node is ignored', () => {
  const one = breaker()
  one.succeeded(MAX, 10_000)
  one.onPeerReport({ ...FAILING, failedAgoMs: 60_000 }, true, 40_000)
  assert.equal(one.state, 'closed')
})

test('a failure known only from reports is not reported again, so nodes do not keep each other’s breakers open', () => {
  const one = breaker()
  one.onPeerReport(FAILING, true, 0)
  assert.equal(one.state, 'open')
  assert.equal(one.report(0).openForMs, null)
  one.started()
  one.failed(5_000)
  assert.deepEqual([one.report(5_000).openForMs !== null, one.report(6_000).failedAgoMs], [true, 1_000])
})

test('while another node probes too, only the first node keeps the normal probe interval', () => {
  const [first, second] = [opened(), opened()]
  for (const one of [first, second]) {
    one.onPeerReport(FAILING, one === first, 0)
    one.started()
    one.failed(10_000)
  }
  const [firstMs, secondMs] = [first, second].map((one) => (one.probeAtMs as number) - 10_000) as [number, number]
  assert.equal(secondMs, firstMs * PEER_PROBE_FACTOR)
  // Once no other node reports failures, the normal interval applies again.
  second.onPeerReport(QUIET, false, 20_000)
  second.started()
  second.failed(20_000)
  assert.equal((second.probeAtMs as number) - 20_000, FIRST_PROBE_MS * 4)
})

test('a recovery reported by another node closes the breaker, with a ramp, unless this node saw failures since', () => {
  const one = opened(0)
  one.onPeerReport(RECOVERED, false, 1_000)
  assert.deepEqual([one.state, one.allowance(1_000, MAX)], ['closed', RAMP_START])
  assert.equal(one.report(1_000).closedAgoMs, null, 'a recovery seen by another node is not reported again')
  for (let nth = 0; nth < FAILURES_TO_OPEN; nth++) one.failed(1_100)
  one.onPeerReport({ ...RECOVERED, closedAgoMs: 1_000 }, false, 1_800)
  assert.equal(one.state, 'open', 'failures on this node after the recovery count')
})

test('a reported failure that may precede a success on this node is ignored', () => {
  const one = breaker()
  one.succeeded(MAX, 10_000)
  // The failure seems to follow the success, but may precede it, because the report can be two seconds old.
  one.onPeerReport({ ...FAILING, failedAgoMs: 6_500 }, true, 18_000)
  assert.equal(one.state, 'closed')
  one.onPeerReport({ ...FAILING, failedAgoMs: 3_000 }, true, 18_000)
  assert.equal(one.state, 'open')
})

test('a node without a share of the limit sends no probes', () => {
  assert.equal(opened().allowance(1_000_000, 0), 0)
  assert.equal(breaker().allowance(0, 0), 0)
})

test('a recovery is reported for ten seconds', () => {
  const one = opened()
  one.started()
  one.succeeded(MAX, 5_000)
  assert.equal(one.report(6_000).closedAgoMs, 1_000)
  assert.equal(one.report(60_000).closedAgoMs, null)
  assert.equal(breaker().report(5).closedAgoMs, null)
})

test('openSinceMs keeps its value through every failed probe', () => {
  const one = breaker()
  assert.equal(one.openSinceMs, null)
  for (let nth = 0; nth < FAILURES_TO_OPEN; nth++) one.failed(nth)
  const openedAtMs = FAILURES_TO_OPEN - 1
  assert.equal(one.openSinceMs, openedAtMs)
  one.started()
  assert.equal(one.openSinceMs, openedAtMs)
  one.failed(5_000)
  assert.equal(one.openSinceMs, openedAtMs)
  one.started()
  one.succeeded(MAX, 9_000)
  assert.equal(one.openSinceMs, null)
  one.onPeerReport(FAILING, true, 60_000)
  assert.equal(one.openSinceMs, 60_000)
})
