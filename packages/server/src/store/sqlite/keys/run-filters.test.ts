import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FINGERPRINT_WORDS, fingerprint } from '../../encoding/fingerprint.ts'
import { RunFilters } from './run-filters.ts'

const CAPACITY = 1_024
const KEYS = 920

function keyOf(run: number, number: number): Uint32Array {
  const words = new Uint32Array(FINGERPRINT_WORDS)
  fingerprint(`${run} ${number}`, [1, 2, 3, 4], words, 0)
  return words
}

function filterOf(run: number, capacity = CAPACITY, keys = KEYS): Uint32Array {
  const filter = RunFilters.empty(capacity)
  for (let number = 0; number < keys; number++) RunFilters.insert(filter, keyOf(run, number), 0)
  return filter
}

test('a run that contains a key is always a candidate, newest first, and others almost never', () => {
  const filters = new RunFilters()
  const runs = Array.from({ length: 80 }, (_, at) => at + 1)
  for (const run of runs) filters.add(run, filterOf(run))
  let others = 0
  let asked = 0
  for (const run of runs) {
    for (let number = 0; number < KEYS; number += 23) {
      const candidates = filters.candidates(keyOf(run, number), 0)
      assert.ok(candidates.includes(run))
      assert.deepEqual(
        candidates,
        [...candidates].sort((a, b) => b - a),
      )
      others += candidates.length - 1
      asked += runs.length - 1
    }
  }
  for (let number = 0; number < 10_000; number++) {
    others += filters.candidates(keyOf(0, number), 0).length
    asked += runs.length
  }
  assert.ok(others / asked < 0.001, `${others} of ${asked}`)
})

test('removed runs are no candidates, and the others still are', () => {
  const filters = new RunFilters()
  const present = new Set<number>()
  for (let run = 1; run <= 120; run++) {
    filters.add(run, filterOf(run))
    present.add(run)
    if (run > 50) {
      filters.remove(run - 50)
      present.delete(run - 50)
    }
    filters.remove(10_000)
    for (let of = 1; of <= run; of += 7) assert.equal(filters.candidates(keyOf(of, 5), 0).includes(of), present.has(of), `${of} at ${run}`)
  }
})

test('filters of different sizes work together', () => {
  const filters = new RunFilters()
  const sizes = [64, 1_024, 1_024, 64, 2, 4_096]
  for (const [at, capacity] of sizes.entries()) filters.add(at + 1, filterOf(at + 1, capacity, Math.min(capacity, 50)))
  for (const [at, capacity] of sizes.entries()) {
    for (let number = 0; number < Math.min(capacity, 50); number++) assert.ok(filters.candidates(keyOf(at + 1, number), 0).includes(at + 1))
  }
  assert.deepEqual(new RunFilters().candidates(keyOf(1, 1), 0), [])
})

test('runs that are added together have the same candidates as runs that are added one by one', () => {
  // The last runs are larger, as after a change of the capacity.
  const runs = Array.from({ length: 111 }, (_, at) => ({ run: at + 1, filter: filterOf(at + 1, at < 90 ? CAPACITY : 2 * CAPACITY) }))
  for (const count of [0, 1, 8, 39, 40, 41, 72, 73, 111]) {
    const [together, oneByOne] = [new RunFilters(), new RunFilters()]
    together.addAll(runs.slice(0, count))
    for (const { run, filter } of runs.slice(0, count)) oneByOne.add(run, filter)
    for (const filters of [together, oneByOne]) {
      filters.add(500, filterOf(500))
      filters.remove(20)
    }
    for (let run = 0; run <= 111; run++) {
      for (let number = 0; number < KEYS; number += 97) {
        const key = keyOf(run, number)
        assert.deepEqual(together.candidates(key, 0), oneByOne.candidates(key, 0))
      }
    }
  }
})
