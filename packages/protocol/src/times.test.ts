import assert from 'node:assert/strict'
import test from 'node:test'
import { isoTime, parseTime } from './index.ts'

const NINE = Date.UTC(2026, 10, 14, 9)

const times: [title: string, input: unknown, expected: number | undefined][] = [
  ['ISO 8601 with milliseconds', '2026-11-14T09:00:00.000Z', NINE],
  ['ISO 8601 without milliseconds', '2026-11-14T09:00:00Z', NINE],
  ['an offset', '2026-11-14T11:00:00+02:00', NINE],
  ['no zone as UTC', '2026-11-14T09:00:00', NINE],
  ['a space for the T and no zone as UTC', '2026-11-14 09:00:00', NINE],
  ['a date alone as midnight UTC', '2026-11-14', Date.UTC(2026, 10, 14)],
  ['a Date', new Date(NINE), NINE],
  ['epoch milliseconds', NINE, NINE],
  ['microseconds, cut to milliseconds', '2026-11-14T09:00:00.000999Z', NINE],
  ['an invalid Date as no time', new Date(Number.NaN), undefined],
  ['words as no time', 'yesterday', undefined],
  ['a day that does not exist as no time', '2026-13-45T00:00:00Z', undefined],
  ['null as no time', null, undefined],
  ['an object as no time', {}, undefined],
  ['a year beyond four digits as no time', 1e15, undefined],
  ['a string too long to be a time as no time', `2026-11-14T09:00:00.${'0'.repeat(1000)}Z`, undefined],
]

for (const [title, input, expected] of times) {
  test(`parseTime reads ${title}`, () => assert.equal(parseTime(input), expected))
}

test('isoTime writes UTC with milliseconds, also for the same and for earlier times', () => {
  assert.equal(isoTime(NINE), '2026-11-14T09:00:00.000Z')
  assert.equal(isoTime(NINE), '2026-11-14T09:00:00.000Z')
  assert.equal(isoTime(0), '1970-01-01T00:00:00.000Z')
})
