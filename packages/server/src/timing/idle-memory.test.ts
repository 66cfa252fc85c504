// When memory is returned, with a simulated thread, and that it really is, in this one.

import assert from 'node:assert/strict'
import test from 'node:test'
import { collectGarbage, createIdleCheck, heapBytes } from './idle-memory.ts'

const MB = 1_000_000

/** A simulated thread. `seconds` checks it once for each second, and returns how often memory was returned. */
function createThread(heap: number, afterCollection: number) {
  const state = { heap, share: 0, collections: 0 }
  const check = createIdleCheck({
    busyShare: () => state.share,
    heapBytes: () => state.heap,
    collect() {
      state.collections += 1
      state.heap = afterCollection
    },
  })
  return {
    state,
    seconds(count: number): number {
      const before = state.collections
      for (let second = 0; second < count; second++) check()
      return state.collections - before
    },
  }
}

test('memory is returned once, when the thread has been idle for two seconds', () => {
  const thread = createThread(40 * MB, 20 * MB)
  assert.equal(thread.seconds(1), 0)
  assert.equal(thread.seconds(1), 1)
  assert.equal(thread.seconds(600), 0)
})

test('a busy thread is not stopped, and neither is one that is idle only for a moment', () => {
  const thread = createThread(40 * MB, 20 * MB)
  for (let second = 0; second < 100; second++) {
    thread.state.share = second % 2 === 0 ? 0.5 : 0
    assert.equal(thread.seconds(1), 0)
  }
})

test('memory is returned again after a load, but not more than once a minute', () => {
  const thread = createThread(40 * MB, 20 * MB)
  assert.equal(thread.seconds(2), 1)
  thread.state.heap = 27 * MB
  assert.equal(thread.seconds(120), 0)
  thread.state.heap = 90 * MB
  assert.equal(thread.seconds(1), 1)
  thread.state.heap = 90 * MB
  assert.equal(thread.seconds(59), 0)
  assert.equal(thread.seconds(1), 1)
})

test('a collection returns memory to the system, and leaves no function to the program', () => {
  let used: unknown[] | undefined = Array.from({ length: 1_000_000 }, (_, index) => ({ index }))
  const before = heapBytes()
  assert.equal(used.length, 1_000_000)
  used = undefined
  collectGarbage()
  assert.ok(heapBytes() < before - 20 * MB, `${heapBytes()} bytes instead of ${before}`)
  assert.equal(globalThis.gc, undefined)
})
