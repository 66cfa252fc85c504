import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedSearch, pathPart } from './url-params.ts'

test('parameters are set, kept and removed', () => {
  assert.equal(changedSearch('?a=1&b=2', { a: '3', c: '4' }), '?a=3&b=2&c=4')
  assert.equal(changedSearch('?a=1&b=2', { a: null, b: '' }), '')
  assert.equal(changedSearch('', { a: undefined }), '')
})

test('unusual characters survive a round trip', () => {
  for (const value of ['50%', '%41', 'a+b', 'a&b=c', 'a b', 'ü/#?', '%2541']) {
    assert.equal(new URLSearchParams(changedSearch('', { value })).get('value'), value)
    assert.equal(pathPart(`/messages/${encodeURIComponent(value)}`, 1), value)
  }
})

test('a path that is not encoded, or too short', () => {
  assert.equal(pathPart('/messages/50%', 1), '50%')
  assert.equal(pathPart('/messages', 1), '')
})
