import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { FINGERPRINT_WORDS } from '../../encoding/fingerprint.ts'
import { ENTRY_WORDS, RecentKeys } from './recent-keys.ts'

/** Keys that collide in a few slots, also at the end of the table, so that searches continue and wrap around. */
function keyOf(number: number): Uint32Array {
  const first = [0, 0x0100_0000, 0x8000_0000, 0xffff_ffff][number % 4] as number
  return Uint32Array.of(first, number, number * 3, 5)
}

const SEGMENT = 3_600_000_000_000_000

test('keys are found as in a Map, also after additions were undone', () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ add: fc.nat(200) }) },
    { weight: 1, arbitrary: fc.record({ undo: fc.nat(10) }) },
    { weight: 1, arbitrary: fc.constant('commit' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const keys = new RecentKeys(64)
      const map = new Map<number, number>()
      let added: [slot: number, number: number][] = []
      for (const [at, one] of steps.entries()) {
        if (one === 'commit') added = []
        else if ('add' in one) {
          if (map.size >= 127 && !map.has(one.add)) continue
          const slot = keys.add(keyOf(one.add), 0, SEGMENT + at)
          assert.equal(slot === -1, map.has(one.add))
          if (slot === -1) continue
          map.set(one.add, SEGMENT + at)
          added.push([slot, one.add])
        } else {
          for (let times = 0; times < one.undo && added.length > 0; times++) {
            const [slot, number] = added.pop() as [number, number]
            keys.undo(slot)
            map.delete(number)
          }
        }
        assert.equal(keys.size, map.size)
      }
      for (let number = 0; number <= 200; number++) assert.equal(keys.find(keyOf(number), 0), map.get(number) ?? 0)
      for (const bits of [1, 3, 10]) {
        const listed: string[] = []
        for (let prefix = 0; prefix < 2 ** bits; prefix++) {
          const entries = keys.entriesOf(prefix, bits)
          for (let base = 0; base < entries.length; base += ENTRY_WORDS) {
            const entry = [...entries.subarray(base, base + ENTRY_WORDS)]
            assert.equal((entry[0] as number) >>> (32 - bits), prefix)
            listed.push(entry.join())
          }
        }
        const expected = [...map].map(([number, segment]) => [...keyOf(number), Math.floor(segment / 2 ** 32), segment % 2 ** 32].join())
        assert.deepEqual(listed.sort(), expected.sort(), `every entry is under one prefix of ${bits} bits`)
      }
    }),
    { numRuns: 300 },
  )
})

test('keys are read from and written to the middle of an array', () => {
  const keys = new RecentKeys(8)
  const words = Uint32Array.of(9, 9, ...keyOf(7), 9)
  keys.add(words, 2, SEGMENT)
  assert.equal(keys.find(keyOf(7), 0), SEGMENT)
  assert.equal(FINGERPRINT_WORDS, 4)
})

test('a table that is too full throws and does not search for ever', () => {
  const keys = new RecentKeys(4)
  for (let number = 0; number < 7; number++) keys.add(keyOf(number), 0, SEGMENT)
  assert.throws(() => keys.add(keyOf(7), 0, SEGMENT), /more than 7 keys/)
  assert.equal(keys.find(keyOf(7), 0), 0)
  assert.equal(keys.add(keyOf(3), 0, SEGMENT), -1, 'stored keys are still found')
})
