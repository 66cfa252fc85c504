import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Heap } from './heap.ts'

test('the first item is always the one with the smallest place', () => {
  const anyStep = fc.oneof(fc.nat({ max: 20 }), fc.constant('drop' as const))
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 200, size: 'max' }), (steps) => {
      const heap = new Heap<number>((place) => place)
      const expected: number[] = []
      for (const step of steps) {
        if (step === 'drop') {
          heap.dropFirst()
          expected.shift()
        } else {
          heap.push(step)
          expected.push(step)
          expected.sort((a, b) => a - b)
        }
        assert.equal(heap.first, expected[0])
      }
    }),
  )
})
