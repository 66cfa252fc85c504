import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differences } from './difference.ts'

test('lists only changed fields, by path', () => {
  const before = { id: 'd1', name: 'Warehouse', enabled: true, batch: { size: 1, lingerMs: 1_000 }, filter: {} }
  const after = {
    id: 'd1',
    name: 'Warehouse',
    enabled: false,
    batch: { size: 100, lingerMs: 1_000 },
    filter: { events: { deny: ['Debug'] } },
  }
  assert.deepEqual(differences(before, after), [
    { field: 'enabled', kind: 'changed', before: 'true', after: 'false' },
    { field: 'batch.size', kind: 'changed', before: '1', after: '100' },
    { field: 'filter.events.deny', kind: 'added', before: null, after: 'Debug' },
  ])
})

test('lists added and removed entries, or both lists if only the order differs', () => {
  assert.deepEqual(differences({ urls: ['a', 'b'] }, { urls: ['b', 'c'] }), [{ field: 'urls', kind: 'changed', before: 'a', after: 'c' }])
  assert.deepEqual(differences({ urls: ['a'] }, { urls: ['a', 'b'] }), [{ field: 'urls', kind: 'added', before: null, after: 'b' }])
  assert.deepEqual(differences({ urls: ['a', 'b'] }, { urls: ['b', 'a'] }), [
    { field: 'urls', kind: 'changed', before: 'a\nb', after: 'b\na' },
  ])
  assert.deepEqual(differences({ keys: [{ id: 'k1', pem: 'x' }] }, { keys: [] }), [
    { field: 'keys', kind: 'removed', before: '{"id":"k1","pem":"x"}', after: null },
  ])
})

test('lists all fields of a created or deleted object', () => {
  assert.deepEqual(differences(null, { name: 'x', sourceIds: null, list: [], empty: {} }), [
    { field: 'name', kind: 'added', before: null, after: 'x' },
    { field: 'sourceIds', kind: 'added', before: null, after: 'none' },
    { field: 'list', kind: 'added', before: null, after: 'none' },
    { field: 'empty', kind: 'added', before: null, after: 'none' },
  ])
  assert.deepEqual(differences({ name: 'x' }, null), [{ field: 'name', kind: 'removed', before: 'x', after: null }])
  assert.deepEqual(differences(null, null), [])
  assert.deepEqual(differences({ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } }), [])
})

test('treats names that are special in JavaScript as ordinary fields', () => {
  const after = JSON.parse('{"__proto__": "x", "constructor": 1}') as Record<string, unknown>
  assert.deepEqual(
    differences({}, after).map(({ field }) => field),
    ['__proto__', 'constructor'],
  )
})
