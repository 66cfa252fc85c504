import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { queryBoolean, queryInteger, queryTime } from '../../api/query-values.ts'
import { ApiError } from '../../errors.ts'
import { listQuery, pageAnswer, pageOf, pageRequest } from './query.ts'

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
  return 'taken'
}

test('a cursor is decoded to the cursor of the store', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (cursor) => {
      const { next } = pageAnswer('messages', { data: [], next: cursor }, String)
      assert.ok(next !== null)
      assert.match(next, /^[A-Za-z0-9_-]+$/)
      assert.deepEqual(pageRequest('messages', { limit: 5, cursor: next }), { limit: 5, cursor })
    }),
  )
})

test('the last page has no cursor, and the first needs none', () => {
  assert.deepEqual(pageAnswer('messages', { data: [1], next: null }, String), { data: ['1'], next: null })
  assert.deepEqual(pageRequest('messages', { limit: 5 }), { limit: 5, cursor: null })
})

test('a cursor that was truncated, changed, made up or returned by another list is rejected', () => {
  const next = pageAnswer('messages', { data: [], next: 'abc' }, String).next as string
  for (const cursor of ['', 'x', '!!', next.slice(0, -2), `${next}AA`, `${next}=`, next.toLowerCase(), 'ABC123']) {
    assert.equal(
      codeOf(() => pageRequest('messages', { limit: 5, cursor })),
      'invalid_cursor',
      cursor,
    )
  }
  assert.equal(
    codeOf(() => pageRequest('deliveries', { limit: 5, cursor: next })),
    'invalid_cursor',
  )
})

test('the default limit is 50, and it must be from 1 to 1000', () => {
  const query = listQuery({})
  assert.equal(query.parse({}, '').limit, 50)
  assert.equal(query.parse({ limit: '1000' }, '').limit, 1000)
  for (const limit of ['0', '1001', '-1', '1.5', 'ten', '', ' 5', '1e2', ['1', '2']]) {
    assert.equal(
      codeOf(() => query.parse({ limit }, '')),
      'invalid_field',
      String(limit),
    )
  }
})

test('query parameters are parsed to numbers, booleans and times', () => {
  assert.equal(queryInteger().parse('12', 'n'), 12)
  assert.equal(queryBoolean().parse('true', 'b'), true)
  assert.equal(queryBoolean().parse('false', 'b'), false)
  assert.equal(
    codeOf(() => queryBoolean().parse('yes', 'b')),
    'invalid_field',
  )
  assert.equal(queryTime().parse('2026-11-14T09:00:00Z', 't'), Date.parse('2026-11-14T09:00:00Z'))
  assert.equal(
    codeOf(() => queryTime().parse('yesterday', 't')),
    'invalid_field',
  )
})

test('pages of entries in memory contain each entry once, even if entries are added and removed in between', () => {
  const entries = new Map(['d', 'a', 'c', 'b', 'e'].map((id) => [id, { id, createdAtMs: id < 'c' ? 1 : 2 }]))
  const first = pageOf(entries.values(), { limit: 2, cursor: null })
  assert.deepEqual(
    first.data.map(({ id }) => id),
    ['a', 'b'],
  )
  entries.delete('b')
  entries.set('f', { id: 'f', createdAtMs: 3 })
  const second = pageOf(entries.values(), { limit: 3, cursor: first.next })
  assert.deepEqual(
    second.data.map(({ id }) => id),
    ['c', 'd', 'e'],
  )
  const last = pageOf(entries.values(), { limit: 3, cursor: second.next })
  assert.deepEqual([last.data.map(({ id }) => id), last.next], [['f'], null])
})
