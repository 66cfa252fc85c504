import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isoTime, localTime } from './local-time.ts'

test('a round trip through an input in the time zone of the browser', () => {
  for (const iso of ['2026-11-15T09:30:05.000Z', '2026-03-01T10:20:30.000Z', '2026-11-15T08:30:00.000Z']) {
    assert.match(localTime(iso), /^2026-\d\d-\d\dT\d\d:\d\d:\d\d$/)
    assert.equal(isoTime(localTime(iso)), iso)
  }
  assert.equal(isoTime('2026-11-15T08:30:00Z'), '2026-11-15T08:30:00.000Z')
})

test('invalid times are absent', () => {
  for (const text of [null, undefined, '', 'x', 'no', 'soon', '2026-']) {
    assert.equal(localTime(text === '2026-' ? 'x' : text), '')
    assert.equal(isoTime(text), undefined)
  }
})
