import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isReused, phasesOf } from './attempt-phases.ts'

test('each phase begins where the previous one ended, and they add up to the total', () => {
  const phases = phasesOf({ dnsMs: 2, connectMs: 3, tlsMs: 5, firstByteMs: 30, totalMs: 32 })
  assert.deepEqual(phases, [
    { name: 'dns', startMs: 0, ms: 2 },
    { name: 'connect', startMs: 2, ms: 3 },
    { name: 'tls', startMs: 5, ms: 5 },
    { name: 'wait', startMs: 10, ms: 20 },
    { name: 'answer', startMs: 30, ms: 2 },
  ])
})

test('an attempt over a reused connection has only the phases of the response', () => {
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 8, totalMs: 9 }
  assert.equal(isReused(timings), true)
  assert.deepEqual(
    phasesOf(timings).map(({ name }) => name),
    ['wait', 'answer'],
  )
})

test('without a response, the remaining time is spent waiting', () => {
  const timings = { dnsMs: null, connectMs: 1, tlsMs: null, firstByteMs: null, totalMs: 5_000 }
  assert.equal(isReused(timings), false)
  assert.deepEqual(phasesOf(timings).at(-1), { name: 'lost', startMs: 1, ms: 4_999 })
})

test('small differences between clocks never make a phase negative', () => {
  for (const { ms } of phasesOf({ dnsMs: 5, connectMs: 5, tlsMs: null, firstByteMs: 9, totalMs: 8 })) assert.ok(ms >= 0)
})
