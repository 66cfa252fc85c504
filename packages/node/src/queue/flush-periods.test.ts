// Overlapping flushes, compared with a model that tracks every message.

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { FlushPeriods, type Period } from './flush-periods.ts'

interface Call {
  period: Period
  number: number
  outcome: 'pending' | 'delivered' | 'failed'
}

test('in any order of calls, outcomes and flushes, a flush resolves exactly when all earlier calls have an outcome', async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant({ kind: 'call' as const }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('end' as const), pick: fc.nat(), ok: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'flush' as const }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const periods = new FlushPeriods()
      const calls: Call[] = []
      const flushes: { waitsFor: Call[]; resolved: boolean }[] = []
      const settle = (call: Call, ok: boolean): void => {
        call.outcome = ok ? 'delivered' : 'failed'
        periods.end(call.period, ok ? 1 : 0, ok ? 0 : 1)
      }
      for (const each of steps) {
        if (each.kind === 'call') {
          const period = periods.current
          periods.begin(period)
          calls.push({ period, number: calls.length, outcome: 'pending' })
        } else if (each.kind === 'end') {
          const open = calls.filter((call) => call.outcome === 'pending')
          const call = open[each.pick % Math.max(open.length, 1)]
          if (call) settle(call, each.ok)
        } else {
          const flush = { waitsFor: [...calls], resolved: false }
          flushes.push(flush)
          void periods.close(undefined).then((result) => {
            flush.resolved = true
            assert.equal(result.pending, 0)
          })
        }
        await Promise.resolve()
        await Promise.resolve()
        for (const flush of flushes) {
          assert.equal(
            flush.resolved,
            flush.waitsFor.every((call) => call.outcome !== 'pending'),
          )
        }
        assert.equal(periods.pending, calls.filter((call) => call.outcome === 'pending').length)
      }
    }),
    { numRuns: 300 },
  )
})

test('successive flushes report each message exactly once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.boolean(), { maxLength: 5 }), { maxLength: 10 }), async (rounds) => {
      const periods = new FlushPeriods()
      const sum = { delivered: 0, failed: 0 }
      for (const outcomes of rounds) {
        for (const ok of outcomes) {
          const period = periods.current
          periods.begin(period)
          periods.end(period, ok ? 1 : 0, ok ? 0 : 1)
        }
        const result = await periods.close(undefined)
        sum.delivered += result.delivered
        sum.failed += result.failed
      }
      const all = rounds.flat()
      assert.deepEqual(sum, { delivered: all.filter(Boolean).length, failed: all.filter((ok) => !ok).length })
    }),
  )
})

test('a flush at its timeout reports what is pending, and the next one reports its outcome', async () => {
  const periods = new FlushPeriods()
  const period = periods.current
  periods.begin(period, 3)
  periods.end(period, 1, 0)
  assert.deepEqual(await periods.close(1), { stored: 1, failed: 0, pending: 2 })
  periods.end(period, 1, 1)
  assert.deepEqual(await periods.close(undefined), { stored: 1, failed: 1, pending: 0 })
})

test('a flush waits for callbacks of its period, unless told not to', async () => {
  const periods = new FlushPeriods()
  const period = periods.current
  periods.begin(period)
  const done = periods.occupy(period)
  const order: string[] = []
  const outer = periods.close(undefined).then(() => order.push('outer'))
  const inner = periods.close(undefined, false).then(() => order.push('inner'))
  periods.end(period, 1, 0)
  await inner
  assert.deepEqual(order, ['inner'])
  done()
  await outer
  assert.deepEqual(order, ['inner', 'outer'])
})

test('a flush that does not wait for callbacks reports no later calls', async () => {
  const periods = new FlushPeriods()
  const first = periods.current
  periods.begin(first)
  const inner = periods.close(undefined, false)
  const second = periods.current
  periods.begin(second, 2)
  periods.end(second, 1, 1)
  const outer = periods.close(undefined)
  periods.end(first, 1, 0)
  assert.deepEqual(await inner, { stored: 1, failed: 0, pending: 0 })
  assert.deepEqual(await outer, { stored: 2, failed: 1, pending: 0 })
})

test('ten thousand waiting flushes take linear time', async () => {
  const periods = new FlushPeriods()
  const all: Period[] = []
  const flushes: Promise<unknown>[] = []
  const started = performance.now()
  for (let i = 0; i < 10_000; i++) {
    all.push(periods.current)
    periods.begin(periods.current)
    flushes.push(periods.close(undefined))
  }
  for (let i = all.length - 1; i >= 0; i--) periods.end(all[i] as Period, 1, 0)
  await Promise.all(flushes)
  // A quadratic implementation took minutes.
  assert.ok(performance.now() - started < 20_000)
})
