import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromField, timeOf, toField } from './moments.ts'

test('a time goes into a field and comes back', () => {
  const iso = '2026-11-15T08:30:00.000Z'
  assert.match(toField(iso), /^2026-11-\d\dT\d\d:\d\d$/)
  assert.equal(fromField(toField(iso)), iso)
})

test('what is no time is none', () => {
  assert.deepEqual(
    [toField(null), toField('x'), fromField(''), fromField('2026-'), timeOf('x'), timeOf(null)],
    ['', '', null, null, undefined, undefined],
  )
  assert.equal(timeOf('2026-11-15T08:30:00Z'), '2026-11-15T08:30:00.000Z')
})
