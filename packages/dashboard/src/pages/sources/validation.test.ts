import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameProblem, writeKeyProblem } from './validation.ts'

test('validates names', () => {
  for (const name of ['web', 'Ünïcode 🎉', '<b>', 'x'.repeat(100)]) assert.equal(nameProblem(name), null, name)
  for (const name of ['', '  ', 'a\nb', 'x'.repeat(101), '\ud800']) assert.notEqual(nameProblem(name), null, JSON.stringify(name))
})

test('validates write keys', () => {
  for (const key of ['a', '0.a_b~c-d', 'x'.repeat(100)]) assert.equal(writeKeyProblem(key), null, key)
  for (const key of ['', '-a', 'a b', 'a:b', "a'b", 'ä', 'x'.repeat(101)]) assert.notEqual(writeKeyProblem(key), null, key)
})
