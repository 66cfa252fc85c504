import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromDateTimeField, isoTimeOrUndefined, toDateTimeField } from './datetime-field.ts'

test('converts a time to a field value and back', () => {
  const iso = '2026-11-15T08:30:00.000Z'
  assert.match(toDateTimeField(iso), /^2026-11-\d\dT\d\d:\d\d$/)
  assert.equal(fromDateTimeField(toDateTimeField(iso)), iso)
})

test('treats invalid times as absent', () => {
  assert.deepEqual(
    [
      toDateTimeField(null),
      toDateTimeField('x'),
      fromDateTimeField(''),
      fromDateTimeField('2026-'),
      isoTimeOrUndefined('x'),
      isoTimeOrUndefined(null),
    ],
    ['', '', null, null, undefined, undefined],
  )
  assert.equal(isoTimeOrUndefined('2026-11-15T08:30:00Z'), '2026-11-15T08:30:00.000Z')
})
