import assert from 'node:assert/strict'
import { test } from 'node:test'
import { customId, periodOf } from '../../components/charts/periods.ts'
import { eventSeries } from './event-period.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW_MS = Date.parse('2026-11-19T14:40:00Z')
const before = (ms: number, stepMs: number): string => new Date(Math.floor(NOW_MS / stepMs) * stepMs - ms).toISOString()
const HOURS = Array.from({ length: 168 }, (_, at) => ({ at: before((167 - at) * HOUR_MS, HOUR_MS), count: 1 }))
const DAYS = Array.from({ length: 90 }, (_, at) => ({ at: before((89 - at) * DAY_MS, DAY_MS), count: 24 }))
const seriesOf = (id: string) => eventSeries(HOURS, DAYS, periodOf(id), NOW_MS)
const totalOf = ({ slots }: ReturnType<typeof seriesOf>): number =>
  slots.flatMap(({ rows }) => rows).reduce((sum, { count }) => sum + count, 0)

test('the time range decides whether counts are per hour or per day', () => {
  for (const [id, step, total] of [
    ['24h', 'hour', 24],
    ['7d', 'hour', 168],
    ['30d', 'day', 31 * 24],
  ] as const) {
    const series = seriesOf(id)
    assert.deepEqual([series.step, totalOf(series)], [step, total], id)
  }
  assert.equal(seriesOf('24h').beginsAt, null, 'whole hours')
})

test('a short range shows whole hours, and says when they begin', () => {
  const quarter = seriesOf('15m')
  assert.deepEqual([quarter.slots.length, quarter.beginsAt], [1, '2026-11-19T14:00:00.000Z'])
  const hour = seriesOf('1h')
  assert.deepEqual([hour.slots.length, hour.beginsAt], [2, '2026-11-19T13:00:00.000Z'])
})

test('a custom range shows only the counts within it, also in the past', () => {
  const evening = customId(Date.parse('2026-11-18T18:00Z'), Date.parse('2026-11-18T21:00Z'))
  const { slots, step, beginsAt } = seriesOf(evening)
  assert.deepEqual([slots.length, step, beginsAt], [3, 'hour', null])
  assert.deepEqual([slots[0]?.at, slots.at(-1)?.until], ['2026-11-18T18:00:00.000Z', '2026-11-18T21:00:00.000Z'])
  const lastMonth = customId(Date.parse('2026-10-19T06:00Z'), Date.parse('2026-10-21T06:00Z'))
  const old = seriesOf(lastMonth)
  assert.deepEqual([old.slots.length, old.step, old.beginsAt], [3, 'day', '2026-10-19T00:00:00.000Z'])
  assert.equal(seriesOf(customId(Date.parse('2026-01-01T00:00Z'), Date.parse('2026-01-02T00:00Z'))).slots.length, 0)
})
