import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameProblem } from './validation.ts'

test('validates names', () => {
  for (const name of ['web', 'Ünïcode 🎉', '<b>', 'x'.repeat(100)]) assert.equal(nameProblem(name), null, name)
  for (const name of ['', '  ', 'a\nb', 'x'.repeat(101), '\ud800']) assert.notEqual(nameProblem(name), null, JSON.stringify(name))
})
