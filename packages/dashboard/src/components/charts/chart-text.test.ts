import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasNothing } from './chart-text.ts'

const series = (...values: (number | null)[]) => [{ label: 'Success', color: 'teal.6', values }]

test('a success rate of 0 % is shown, but no deliveries are nothing', () => {
  assert.equal(hasNothing({ series: series(null, 0), maximum: 1 }), false)
  assert.equal(hasNothing({ series: series(null, null), maximum: 1 }), true)
  assert.equal(hasNothing({ series: series(null, 0) }), true)
  assert.equal(hasNothing({ series: series(0, 3) }), false)
})
