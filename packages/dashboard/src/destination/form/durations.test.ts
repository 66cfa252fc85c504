import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDuration, writeDuration } from './durations.ts'

test('parses durations as people type them', () => {
  for (const [text, ms] of [
    ['5s', 5_000],
    ['5 s', 5_000],
    ['250ms', 250],
    ['1.5 s', 1_500],
    ['4h', 14_400_000],
    ['1 h 30 min', 5_400_000],
    ['1h30m', 5_400_000],
    ['2 Hours', 7_200_000],
    ['0 s', 0],
    ['10 mins', 600_000],
  ] as const)
    assert.equal(parseDuration(text), ms, text)
  for (const text of ['', '5', 'abc', '5 x', '-5 s', '5 s,', '0.1 ms', '1e3 s', 's']) assert.equal(parseDuration(text), null, text)
})

test('parses the durations that it writes', () => {
  for (const ms of [0, 1, 999, 1_000, 5_000, 61_500, 5_400_000, 14_400_000]) assert.equal(parseDuration(writeDuration(ms)), ms)
  assert.equal(writeDuration(14_400_000), '4 h')
  assert.equal(writeDuration(5_250), '5 s 250 ms')
})
