import assert from 'node:assert/strict'
import test from 'node:test'
import { share } from '../../text/format.ts'
import {
  barsOf,
  change,
  customId,
  defaultPeriod,
  failureRate,
  NOTHING,
  PERIOD_IDS,
  PERIODS,
  type Point,
  periodOf,
  STEP_MS,
  span,
  totalsOf,
} from './periods.ts'

const AT_MS = Date.parse('2026-11-15T10:07:30.000Z')

function points(fromMs: number, stepMs: number, count: number, each: Partial<Point> = { accepted: 1 }): Point[] {
  return Array.from({ length: count }, (_, at) => Object.assign({ at: new Date(fromMs + at * stepMs).toISOString() }, each))
}

test('the period in the URL, or the default one', () => {
  assert.equal(periodOf('7d').id, '7d')
  for (const wrong of [null, '', '2h', 'constructor']) assert.equal(periodOf(wrong).id, '24h')
})

test('a young installation begins with a shorter period', () => {
  const hours = (count: number): number => count * STEP_MS['1h']
  assert.deepEqual([0, hours(0.9), hours(1), hours(5), hours(6), hours(1_000)].map(defaultPeriod), ['1h', '1h', '6h', '6h', '24h', '24h'])
  assert.equal(periodOf('', '6h').id, '6h')
  assert.equal(periodOf('24h', '6h').id, '24h')
})

test('a custom period has a start and an end, and as many bars as are legible', () => {
  const { fixed, step, id } = periodOf('2026-11-15T09:00:20Z/2026-11-15T10:00Z')
  assert.deepEqual(fixed, { fromMs: Date.parse('2026-11-15T09:00Z'), toMs: Date.parse('2026-11-15T10:00Z') })
  assert.deepEqual([step, id], ['1m', '2026-11-15T09:00Z/2026-11-15T10:00Z'])
  assert.deepEqual(periodOf(id).fixed, fixed)
  for (const wrong of [
    '/',
    '2026-11-15/',
    '2026-11-15/2026-11-15',
    '2026-11-16/2026-11-15',
    'x/2026-11-15',
    '2026-11-14/2026-11-15/2026-11-16',
  ])
    assert.equal(periodOf(wrong).id, '24h', wrong)
  for (const hours of [0.1, 1, 3, 10, 24, 60, 24 * 14, 24 * 60, 24 * 400]) {
    const period = periodOf(customId(AT_MS, AT_MS + hours * 3_600_000))
    const { from, to = '', before } = span(period, AT_MS)
    const count = (Date.parse(to) - Date.parse(from)) / STEP_MS[period.step]
    assert.ok(count <= 2_000 && Date.parse(from) - Date.parse(before) === period.lengthMs)
    const bars = barsOf(points(Date.parse(from), STEP_MS[period.step], count), STEP_MS[period.step], period.barOf)
    assert.ok(bars.length <= 64 && bars.at(-1)?.until === to, `${hours} h: ${bars.length}`)
  }
})

test('a period ends with the current time step, and the period before ends where it begins', () => {
  assert.deepEqual(span(PERIODS['1h'], AT_MS), { from: '2026-11-15T09:08:00.000Z', before: '2026-11-15T08:08:00.000Z' })
  assert.deepEqual(span(PERIODS['24h'], AT_MS), { from: '2026-11-14T11:00:00.000Z', before: '2026-11-13T11:00:00.000Z' })
  for (const id of PERIOD_IDS) {
    const { from } = span(PERIODS[id], AT_MS)
    const stepMs = STEP_MS[PERIODS[id].step]
    assert.equal(Date.parse(from) % stepMs, 0)
    // The API answers with at most 2,000.
    assert.ok(Math.ceil((AT_MS - Date.parse(from)) / stepMs) <= 2_000)
  }
})

test('every time step is counted in exactly one bar', () => {
  for (const id of PERIOD_IDS) {
    const { step, barOf, lengthMs } = PERIODS[id]
    const fromMs = Date.parse(span(PERIODS[id], AT_MS).from)
    const bars = barsOf(points(fromMs, STEP_MS[step], lengthMs / STEP_MS[step]), STEP_MS[step], barOf)
    assert.equal(
      bars.reduce((sum, { accepted }) => sum + accepted, 0),
      lengthMs / STEP_MS[step],
    )
    assert.ok(bars.length >= 15 && bars.length <= 62, `${id}: ${bars.length}`)
    for (const [at, bar] of bars.entries()) assert.equal(bar.until, bars[at + 1]?.at ?? new Date(fromMs + lengthMs).toISOString())
  }
  assert.deepEqual(
    barsOf([], 60_000, (ms) => ms),
    [],
  )
})

test('totals, with the rejections of every code', () => {
  const [one] = points(AT_MS, 60_000, 1, {
    accepted: 2,
    rejected: { a: 3, b: 4 },
    delivered: 5,
    retried: 6,
    failed: 7,
    expired: 8,
    duplicates: 9,
  })
  assert.deepEqual(totalsOf([one as Point, one as Point]), {
    accepted: 4,
    rejected: 14,
    delivered: 10,
    retried: 12,
    failed: 14,
    expired: 16,
    duplicates: 18,
  })
  assert.deepEqual(totalsOf([]), NOTHING)
})

test('the failure rate is the share of attempts that failed', () => {
  assert.equal(failureRate(NOTHING), null)
  assert.deepEqual(failureRate({ ...NOTHING, accepted: 100, delivered: 60, retried: 20, failed: 15, expired: 5 }), {
    rate: 0.4,
    attempts: 100,
  })
})

test('the change since the period before', () => {
  const words = (now: number, before: number): string | null => change(now, before, share)
  assert.equal(words(0, 0), null)
  assert.equal(words(5, 0), 'none')
  assert.equal(words(5, 5), 'no change')
  assert.equal(words(100_001, 100_000), 'about the same')
  assert.equal(words(112, 100), '+12%')
  assert.equal(words(75, 100), '−25%')
  assert.equal(words(0, 100), '−100%')
  assert.equal(words(900, 100), '9× as many')
})
