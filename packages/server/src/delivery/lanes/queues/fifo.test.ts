import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { Fifo } from './fifo.ts'

test('a queue gives back what it was given, in order, whatever its length', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ push: fc.nat({ max: 3_000 }), drop: fc.nat({ max: 3_000 }) }), { maxLength: 10 }), (steps) => {
      const queue = new Fifo<number>()
      let [next, head] = [0, 0]
      for (const { push, drop } of steps) {
        for (let nth = 0; nth < push; nth++) queue.push(next++)
        for (let nth = 0; nth < drop; nth++) {
          assert.equal(queue.first, head < next ? head : undefined)
          queue.dropFirst()
          if (head < next) head++
        }
        assert.equal(queue.length, next - head)
      }
      queue.clear()
      assert.deepEqual([queue.length, queue.first], [0, undefined])
    }),
    { numRuns: 30 },
  )
})
