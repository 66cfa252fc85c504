import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from './turns.ts'

test('work runs one after the other, in order, also after work that failed', async () => {
  const turns = new Turns()
  const seen: string[] = []
  let running = 0
  const work = (name: string, fails = false) =>
    turns.run(async () => {
      running++
      assert.equal(running, 1)
      await new Promise(setImmediate)
      seen.push(name)
      running--
      if (fails) throw new Error(name)
      return name
    })
  const all = await Promise.allSettled([work('a'), work('b', true), work('c')])
  assert.deepEqual(seen, ['a', 'b', 'c'])
  assert.deepEqual(
    all.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
})
