import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { CLASSIC, type RetryPolicy } from '../../store/store.ts'
import { backoffMs, combine, nextRetry, type RetryState, type UrlOutcome } from './retry-policy.ts'

const RETRY_WINDOW_MS = 4 * 3_600_000
const MAX_WINDOW_MS = 14 * 24 * 3_600_000

const state = (given: Partial<RetryState>): RetryState => ({
  attempt: 1,
  firstAttemptAtMs: 0,
  nowMs: 0,
  windowMs: RETRY_WINDOW_MS,
  policy: CLASSIC.retry,
  retryAfterMs: null,
  random: () => 0.5,
  ...given,
})

/** Every policy that the API accepts. */
const anyPolicy: fc.Arbitrary<RetryPolicy> = fc
  .record({
    initialMs: fc.integer({ min: 100, max: 3_600_000 }),
    moreMs: fc.integer({ min: 0, max: 23 * 3_600_000 }),
    factor: fc.double({ min: 1, max: 10, noNaN: true }),
  })
  .map(({ initialMs, moreMs, factor }) => ({ initialMs, maxMs: initialMs + moreMs, factor, retryStatuses: [], failStatuses: [] }))

const anyState = fc.record({
  policy: fc.oneof(fc.constant(CLASSIC.retry), anyPolicy),
  attempt: fc.integer({ min: 1, max: 5_000 }),
  firstAttemptAtMs: fc.integer({ min: 0, max: 2 ** 42 }),
  sinceFirstMs: fc.integer({ min: -1_000, max: 2 * MAX_WINDOW_MS }),
  windowMs: fc.integer({ min: 0, max: MAX_WINDOW_MS }),
  retryAfterMs: fc.option(fc.integer({ min: 0, max: 9_999_999_999_000 })),
  drawn: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
})

test('no retry is later than the window or earlier than half a backoff from now', () => {
  fc.assert(
    fc.property(anyState, ({ drawn, sinceFirstMs, ...given }) => {
      const nowMs = given.firstAttemptAtMs + sinceFirstMs
      const endMs = given.firstAttemptAtMs + given.windowMs
      const leastMs = backoffMs(given.policy, given.attempt) / 2
      const next = nextRetry({ ...given, nowMs, random: () => drawn })
      if (next.kind === 'expired') assert.ok(endMs - nowMs < leastMs)
      else {
        assert.ok(Number.isInteger(next.atMs))
        assert.ok(next.atMs <= endMs)
        assert.ok(next.atMs - nowMs >= leastMs)
      }
    }),
  )
})

test('a retry is no later than the backoff, or than Retry-After if that is later', () => {
  fc.assert(
    fc.property(anyState, ({ drawn, sinceFirstMs, ...given }) => {
      const nowMs = given.firstAttemptAtMs + sinceFirstMs
      const next = nextRetry({ ...given, nowMs, random: () => drawn })
      if (next.kind === 'expired') return
      assert.ok(next.atMs - nowMs <= Math.max(backoffMs(given.policy, given.attempt), given.retryAfterMs ?? 0))
      const askedMs = nowMs + (given.retryAfterMs ?? 0)
      if (askedMs <= given.firstAttemptAtMs + given.windowMs) assert.ok(next.atMs >= askedMs)
    }),
  )
})

test('the backoff doubles from 5 s to 10 minutes and stays there', () => {
  const steps = Array.from({ length: 10 }, (_, index) => backoffMs(CLASSIC.retry, index + 1) / 1_000)
  assert.deepEqual(steps, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600])
  assert.equal(backoffMs(CLASSIC.retry, 100_000), 600_000)
})

test('the backoff of any policy starts at initialMs, never shrinks and never exceeds maxMs', () => {
  fc.assert(
    fc.property(anyPolicy, fc.integer({ min: 1, max: 100_000 }), (policy, attempt) => {
      assert.equal(backoffMs(policy, 1), policy.initialMs)
      assert.ok(backoffMs(policy, attempt) <= backoffMs(policy, attempt + 1))
      assert.ok(backoffMs(policy, attempt) <= policy.maxMs)
    }),
  )
})

test('a policy may wait equally long every time', () => {
  const policy: RetryPolicy = { ...CLASSIC.retry, initialMs: 100, maxMs: 100, factor: 1 }
  assert.deepEqual(nextRetry(state({ policy, attempt: 5_000, random: () => 0 })), { kind: 'retry', atMs: 50 })
})

test('half of the backoff is random', () => {
  assert.deepEqual(nextRetry(state({ random: () => 0 })), { kind: 'retry', atMs: 2_500 })
  assert.deepEqual(nextRetry(state({ random: () => 0.999_999_9 })), { kind: 'retry', atMs: 5_000 })
})

test('Retry-After is used if it is later than the backoff', () => {
  assert.deepEqual(nextRetry(state({ retryAfterMs: 60_000 })), { kind: 'retry', atMs: 60_000 })
  assert.deepEqual(nextRetry(state({ retryAfterMs: 1_000 })), { kind: 'retry', atMs: 3_750 })
})

test('a retry that would be later than the window is made at its end, if that is not too soon', () => {
  const late = { attempt: 20, nowMs: RETRY_WINDOW_MS - 300_000 }
  assert.deepEqual(nextRetry(state(late)), { kind: 'retry', atMs: RETRY_WINDOW_MS })
  assert.deepEqual(nextRetry(state({ ...late, nowMs: late.nowMs + 1 })), { kind: 'expired' })
  assert.deepEqual(nextRetry(state({ retryAfterMs: RETRY_WINDOW_MS + 1 })), { kind: 'retry', atMs: RETRY_WINDOW_MS })
})

test('the attempt at the end of the window is the last one', () => {
  assert.deepEqual(nextRetry(state({ nowMs: RETRY_WINDOW_MS })), { kind: 'expired' })
  assert.deepEqual(nextRetry(state({ windowMs: 0 })), { kind: 'expired' })
})

test('a delivery that always fails ends after about 30 attempts', () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })), (stream) => {
      const random = (): number => stream.next().value as number
      let nowMs = 0
      let attempt = 1
      for (;;) {
        const next = nextRetry(state({ attempt, nowMs, random }))
        if (next.kind === 'expired') break
        assert.ok(next.atMs > nowMs)
        nowMs = next.atMs
        attempt += 1
      }
      assert.ok(attempt >= 25 && attempt <= 60, String(attempt))
    }),
    { numRuns: 50 },
  )
})

const outcomes = fc.array(
  fc.record({
    url: fc.webUrl(),
    outcome: fc.oneof(
      fc.constant({ verdict: 'success' as const, reason: null, retryAfterMs: null }),
      fc.record({
        verdict: fc.constantFrom('temporary' as const, 'permanent' as const),
        reason: fc.constantFrom('timeout', 'http_500', 'http_404'),
        retryAfterMs: fc.option(fc.nat()),
      }),
    ),
  }),
  { minLength: 1, maxLength: 5 },
)

test('with several URLs, one success means delivered, else one temporary failure means a retry, else the delivery has failed', () => {
  fc.assert(
    fc.property(outcomes, (given: UrlOutcome[]) => {
      const combined = combine(given)
      const verdicts = new Set(given.map(({ outcome }) => outcome.verdict))
      if (verdicts.has('success')) assert.deepEqual(combined, { kind: 'delivered' })
      else if (verdicts.has('temporary')) {
        assert.ok(combined.kind === 'retry')
        assert.deepEqual(
          combined.urls,
          given.filter(({ outcome }) => outcome.verdict === 'temporary').map(({ url }) => url),
        )
      } else assert.deepEqual(combined, { kind: 'failed', reason: given[0]?.outcome.reason })
    }),
  )
})

test('the longest Retry-After of the URLs to be retried counts, not that of a URL that failed permanently', () => {
  const failed = (url: string, verdict: 'temporary' | 'permanent', retryAfterMs: number | null): UrlOutcome => ({
    url,
    outcome: { verdict, reason: `http_${url}`, retryAfterMs },
  })
  assert.deepEqual(
    combine([failed('a', 'permanent', 99), failed('b', 'temporary', 5), failed('c', 'temporary', 7), failed('d', 'temporary', null)]),
    {
      kind: 'retry',
      urls: ['b', 'c', 'd'],
      retryAfterMs: 7,
      reason: 'http_b',
    },
  )
})

test('combining no outcomes throws', () => {
  assert.throws(() => combine([]), RangeError)
})
