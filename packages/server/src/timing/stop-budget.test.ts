import assert from 'node:assert/strict'
import test from 'node:test'
import { StopBudget } from './stop-budget.ts'

test('the limits of steps are counted from the beginning, so late steps share one limit', async () => {
  const budget = new StopBudget()
  const never = new Promise(() => {})
  const beganAt = performance.now()
  await budget.wait('first', 40, never)
  await budget.wait('second', 40, never)
  await Promise.all([budget.wait('third', 60, never), budget.wait('done', 0, Promise.resolve())])
  assert.deepEqual(budget.unfinished, ['first', 'second', 'third'])
  assert.ok(performance.now() - beganAt < 5_000)
  assert.equal(budget.leftMs(0), 0)
})

test('a step that says that it was late counts as unfinished, and one that fails does not keep the others from running', async () => {
  const budget = new StopBudget()
  const failure = new Error('failed')
  await budget.wait('store', 10_000, Promise.resolve(false))
  await budget.wait('failing', 10_000, Promise.reject(failure))
  await budget.wait('other', 10_000, Promise.resolve(true))
  assert.deepEqual([budget.unfinished, budget.errors], [['store'], [failure]])
})
