import assert from 'node:assert/strict'
import test from 'node:test'
import { changedFields, filledRules, rowProblem, SAMPLE, sameRules, typedMessage } from './privacy-draft.ts'

test('rows without a path are not sent, and errors lead back to their row', () => {
  const { rules, rows } = filledRules([
    { path: ' ', action: 'drop' },
    { path: ' traits.email ', action: 'hash' },
    { path: 'userId', action: 'drop' },
  ])
  assert.deepEqual(rules, [
    { path: 'traits.email', action: 'hash' },
    { path: 'userId', action: 'drop' },
  ])
  const problem = { field: 'privacy[1].action', message: 'privacy[1].action must be hash for userId.' }
  assert.deepEqual(rowProblem(problem, rows), { row: 2, message: 'Must be hash for userId.' })
  assert.equal(rowProblem({ field: 'privacy', message: 'privacy must be an array.' }, rows), null)
  assert.equal(rowProblem({ field: 'privacy[7].path', message: 'x' }, rows), null)
  assert.equal(rowProblem(null, rows), null)
})

test('rules are compared by path, action and order', () => {
  const [a, b] = [{ path: 'a', action: 'drop' } as const, { path: 'b', action: 'drop' } as const]
  assert.ok(sameRules([a, b], [{ ...a }, { ...b }]))
  assert.ok(!sameRules([a, b], [b, a]))
  assert.ok(!sameRules([a], [{ ...a, action: 'hash' }]))
  assert.ok(!sameRules([a], []))
})

test('the fields that a preview changes', () => {
  assert.deepEqual(changedFields({ traits: { a: 1, b: 2 }, userId: 'u' }, { traits: { b: 'x' }, userId: 'u' }), ['traits.a', 'traits.b'])
})

test('a typed message must be a JSON object', () => {
  assert.deepEqual(typedMessage('{"a":1}'), { message: { a: 1 } })
  assert.ok('message' in typedMessage(SAMPLE))
  assert.deepEqual(typedMessage('[]'), { problem: 'Enter a JSON object.' })
  assert.match((typedMessage('{') as { problem: string }).problem, /^Enter a message as JSON: .+\.$/)
})
