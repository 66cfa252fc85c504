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
  ['an invalid Date as invalid', new Date(Number.NaN), undefined],
  ['words as invalid', 'yesterday', undefined],
  ['a day that does not exist as invalid', '2026-13-45T00:00:00Z', undefined],
  ['30 February as invalid', '2026-02-30', undefined],
  ['30 February with a time as invalid', '2026-02-30T00:00:00.000Z', undefined],
  ['29 February as invalid in a common year', '2100-02-29', undefined],
  ['29 February in a leap year', '2028-02-29', Date.UTC(2028, 1, 29)],
  ['31 April as invalid', '2026-04-31T09:00:00+02:00', undefined],
  ['31 December', '2026-12-31', Date.UTC(2026, 11, 31)],
  ['the 32nd as invalid', '2026-01-32', undefined],
  ['an offset without a colon', '2026-11-14T11:00:00+0200', NINE],
  ['an offset in hours', '2026-11-14T04:00:00-05', NINE],
  ['an offset after a space', '2026-11-14 11:00:00 +0200', NINE],
  ['UTC as a zone', '2026-11-14 09:00:00 UTC', NINE],
  ['an offset that no zone has as invalid', '2026-11-14T09:00:00+25:00', undefined],
  ['small letters', '2026-11-14t09:00:00z', NINE],
  ['nanoseconds', '2026-11-14T09:00:00.000999999Z', NINE],
  ['a decimal comma', '2026-11-14T09:00:00,5Z', NINE + 500],
  ['minutes alone', '2026-11-14T09:00Z', NINE],
  ['24:00 as the midnight that ends the day', '2026-11-14T24:00:00Z', Date.UTC(2026, 10, 15)],
  ['the years before 100', '0099-01-01', -59_042_995_200_000],
  ['null as invalid', null, undefined],
  ['an object as invalid', {}, undefined],
  ['a year beyond four digits as invalid', 1e15, undefined],
  ['a string too long to be a time as invalid', `2026-11-14T09:00:00.${'0'.repeat(1000)}Z`, undefined],
]

for (const [title, input, expected] of times) {
  test(`parseTime reads ${title}`, () => assert.equal(parseTime(input), expected))
}

// Date.parse reads each of these in the time zone of the machine.
test('nothing is read in the time zone of the machine', (t) => {
  const zone = process.env['TZ']
  t.after(() => {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
  })
  const texts = ['2026-11-14 9:00', '2026-11-14  09:00:00', '2026-11-14 (x)', '2026-11-14 09:00 am', '2026-11-14 9:00:00 PM']
  process.env['TZ'] = 'America/New_York'
  assert.equal(new Date(NINE).getHours(), 4, 'the zone is changed')
  for (const text of texts) assert.equal(parseTime(text), undefined, text)
  for (const text of ['2026-11-14T09:00', '2026-11-14 09:00:00', '2026-11-14T09:00:00.000']) assert.equal(parseTime(text), NINE, text)
})

test('isoTime writes UTC with milliseconds, also for the same and for earlier times', () => {
  assert.equal(isoTime(NINE), '2026-11-14T09:00:00.000Z')
  assert.equal(isoTime(NINE), '2026-11-14T09:00:00.000Z')
  assert.equal(isoTime(0), '1970-01-01T00:00:00.000Z')
})
