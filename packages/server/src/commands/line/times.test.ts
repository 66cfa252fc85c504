import assert from 'node:assert/strict'
import test from 'node:test'
import { CommandProblem } from './command.ts'
import { durationText, formatDuration, parseCount, parseDuration, parseFutureTime, parseTimeFlag } from './times.ts'

test('durations in every unit', () => {
  const cases: [string, number][] = [
    ['500ms', 500],
    ['6s', 6_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['1w', 604_800_000],
  ]
  for (const [text, ms] of cases) assert.equal(parseDuration('timeout', text), ms)
  for (const text of ['', '5', '-5s', '5 s', 'h', '1e3s', '5y', '٣s'])
    assert.throws(() => parseDuration('timeout', text), { name: 'CommandProblem', exit: 2, message: /^--timeout must be a duration/ })
})

test('a time is a duration ago, now, or an ISO time', () => {
  const nowMs = Date.parse('2026-11-14T12:00:00Z')
  assert.equal(parseTimeFlag('from', '2h', nowMs), '2026-11-14T10:00:00.000Z')
  assert.equal(parseTimeFlag('from', 'now', nowMs), '2026-11-14T12:00:00.000Z')
  assert.equal(parseTimeFlag('from', '2026-11-14T09:00:00+01:00', nowMs), '2026-11-14T08:00:00.000Z')
  assert.equal(parseTimeFlag('from', '2026-11-14 09:00:00.000Z', nowMs), '2026-11-14T09:00:00.000Z', 'the format in tables')
  for (const text of ['yesterday', '2026', '', '2026-13-01T00:00:00Z'])
    assert.throws(() => parseTimeFlag('from', text, nowMs), CommandProblem)
})

test('whole numbers from a minimum', () => {
  assert.equal(parseCount('limit', '10'), 10)
  for (const text of ['0', '-1', '1.5', 'x', '1e3', ''])
    assert.throws(() => parseCount('limit', text), /--limit must be a whole number of at least 1/)
})

test('durations are formatted for people', () => {
  assert.deepEqual([1.23, 15.6, 1_234, 300_000, 14_400_000].map(formatDuration), ['1.2 ms', '16 ms', '1.2 s', '5 min', '4 h'])
})

test('durations are written as flags take them', () => {
  const texts = [0, 100, 1_500, 5_000, 14_400_000, 86_400_000].map(durationText)
  assert.deepEqual(texts, ['0s', '100ms', '1500ms', '5s', '4h', '1d'])
})

test('a future time is a time, or a duration from now', () => {
  const nowMs = Date.parse('2026-11-14T09:00:00Z')
  assert.equal(parseFutureTime('expires', '30d', nowMs), '2026-12-14T09:00:00.000Z')
  assert.equal(parseFutureTime('expires', '2027-01-31T00:00:00Z', nowMs), '2027-01-31T00:00:00.000Z')
  assert.throws(() => parseFutureTime('expires', 'soon', nowMs), /--expires must be a time such as 30d/)
})
