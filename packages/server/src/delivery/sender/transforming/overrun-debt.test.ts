import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_WAIT_MS, OverrunDebt } from './overrun-debt.ts'

test('code that runs into its limits may do so for half a second, and then gets a tenth of a core', () => {
  const debt = new OverrunDebt(0)
  for (let nth = 0; nth < 10; nth++) debt.add(50, 0)
  assert.equal(debt.readyMs, 0)
  debt.add(50, 0)
  assert.equal(debt.readyMs, 500)
  debt.add(50, 500)
  assert.equal(debt.readyMs, 1000)
})

test('however long the code ran and however often, its next message waits less than a second', () => {
  const debt = new OverrunDebt(0)
  let nowMs = 0
  for (let nth = 0; nth < 20; nth++) {
    nowMs = debt.readyMs + 1100
    debt.add(1100, nowMs)
    assert.ok(debt.readyMs - nowMs <= MAX_WAIT_MS, `waits ${debt.readyMs - nowMs} ms`)
  }
  // A minute later, nothing is left of it.
  debt.add(500, nowMs + 60_000)
  assert.equal(debt.readyMs, nowMs + 60_000)
})
