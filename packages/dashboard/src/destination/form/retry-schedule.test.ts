import assert from 'node:assert/strict'
import { test } from 'node:test'
// @ts-ignore: from another package that this one has no types for. Used by this test only, never by the page.
import { nextRetry } from '../../../../server/src/delivery/shipments/retry-policy.ts'
import { labelsOf, MAX_DRAWN, positionOf, type RetryTimes, scheduleOf, scheduleText } from './retry-schedule.ts'

const CLASSIC: RetryTimes = { initialMs: 5_000, maxMs: 600_000, factor: 2, windowMs: 14_400_000 }

/** The attempts that the service makes if every wait is the longest possible. */
function byTheService({ windowMs, ...waits }: RetryTimes): number[] {
  const policy = { ...waits, retryStatuses: [], failStatuses: [] }
  const atMs = [0]
  for (;;) {
    const nowMs = atMs.at(-1) as number
    const state = { attempt: atMs.length, firstAttemptAtMs: 0, nowMs, windowMs, policy, retryAfterMs: null, random: () => 1 - 1e-12 }
    const next = nextRetry(state)
    if (next.kind === 'expired') return atMs
    atMs.push(next.atMs)
  }
}

test('the schedule is the one of the service', () => {
  for (const times of [
    CLASSIC,
    { ...CLASSIC, windowMs: 1_000 },
    { ...CLASSIC, windowMs: 60_000 },
    { ...CLASSIC, initialMs: 60_000, maxMs: 60_000 },
    { ...CLASSIC, factor: 1 },
    { ...CLASSIC, factor: 1.5, initialMs: 100, maxMs: 86_400_000, windowMs: 1_209_600_000 },
  ]) {
    const expected = byTheService(times)
    const { atMs, count } = scheduleOf(times)
    assert.equal(count, expected.length, JSON.stringify(times))
    for (const [at, ms] of atMs.entries())
      assert.ok(Math.abs(ms - (expected[at] as number)) <= atMs.length, `${JSON.stringify(times)}: ${ms}`)
  }
})

test('very many attempts are counted, but not drawn', () => {
  const { atMs, count } = scheduleOf({ initialMs: 100, maxMs: 100, factor: 1, windowMs: 1_209_600_000 })
  assert.deepEqual([atMs.length, count], [MAX_DRAWN, 12_096_001])
})

test('the text says what the picture shows', () => {
  assert.equal(
    scheduleText(CLASSIC),
    'Up to 31 attempts: the first at once, then after 5 s, 10 s, 20 s …, and from attempt 9 on every 10 min, until 4 h after the first attempt. Each wait is up to half shorter, at random.',
  )
  assert.match(scheduleText({ ...CLASSIC, factor: 1 }), /^Up to 2,881 attempts: the first at once, then every 5 s, until 4 h/)
  assert.match(scheduleText({ ...CLASSIC, windowMs: 1_000 }), /^1 attempt: no retry fits/)
})

test('labels start at 0, end at the window and are apart from each other', () => {
  const labels = labelsOf(CLASSIC, 0.12)
  assert.deepEqual([labels[0], labels.at(-1)], [0, CLASSIC.windowMs])
  const places = labels.map((ms) => positionOf(ms, CLASSIC))
  for (const [at, place] of places.entries()) if (at > 0) assert.ok(place - (places[at - 1] as number) >= 0.119, String(places))
})
