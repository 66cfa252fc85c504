import assert from 'node:assert/strict'
import { test } from 'node:test'
import { periodChoice, periodOf } from './period.ts'

const NOON = Date.parse('2026-11-15T12:00:00.000Z')
const of = (search: string): URLSearchParams => new URLSearchParams(search)

test('a period relative to the current time', () => {
  assert.deepEqual(periodOf(of('period=1h'), NOON), { from: '2026-11-15T11:00:00.000Z' })
  assert.equal(periodChoice(of('period=1h')), '1h')
})

test('two times, one time, none, and an invalid time', () => {
  assert.deepEqual(periodOf(of('from=2026-11-15T10:00:00Z&to=2026-11-15T11:00:00Z'), NOON), {
    from: '2026-11-15T10:00:00.000Z',
    to: '2026-11-15T11:00:00.000Z',
  })
  assert.deepEqual(periodOf(of('to=2026-11-15T11:00:00Z'), NOON), { to: '2026-11-15T11:00:00.000Z' })
  assert.deepEqual(periodOf(of('from=yesterday'), NOON), {})
  assert.deepEqual(periodOf(of(''), NOON), {})
  assert.deepEqual([periodChoice(of('from=x')), periodChoice(of('period=between')), periodChoice(of(''))], ['between', 'between', 'any'])
})
