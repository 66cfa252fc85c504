import assert from 'node:assert/strict'
import test from 'node:test'
import { LruCache } from './lru-cache.ts'

test('the least recently used entry is evicted when the limit is exceeded', () => {
  const map = new LruCache<number>(3)
  for (const [at, key] of ['a', 'b', 'c'].entries()) map.set(key, at)
  assert.equal(map.get('a'), 0)
  map.set('d', 3)
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((key) => map.get(key)),
    [0, undefined, 2, 3],
  )
  for (let at = 0; at < 1_000; at++) map.set(String(at), at)
  assert.deepEqual([map.size, map.get('999'), map.get('a')], [3, 999, undefined])
  map.set('999', 1)
  assert.deepEqual([map.size, map.get('999')], [3, 1])
})
