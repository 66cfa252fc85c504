// A user always has the same pseudonym, and no two users have the same.

import assert from 'node:assert/strict'
import test from 'node:test'
import { newPseudonymKey, pseudonymOf } from './pseudonyms.ts'

test('different users have different pseudonyms, also if an id cannot be encoded in UTF-8', () => {
  const key = newPseudonymKey()
  const userIds = ['', 'a', 'A', 'a\0', '\\', '"', '\u{1F600}', '\ud800', '\ud801', '\udc00', 'a\ud800', '\ufffd', '\udc00\ud800']
  const pseudonyms = userIds.map((userId) => pseudonymOf(userId, key))
  assert.equal(new Set(pseudonyms).size, userIds.length)
  assert.deepEqual(
    userIds.map((userId) => pseudonymOf(userId, key)),
    pseudonyms,
  )
  assert.ok(pseudonyms.every((pseudonym) => /^user_[\w-]{27}$/.test(pseudonym)))
  assert.notEqual(pseudonymOf('a', newPseudonymKey()), pseudonyms[1])
})

test('a pseudonym never changes', () => {
  assert.equal(pseudonymOf('a user', 'a key'), 'user_dX02uQTCTd5eZ23aOxvpKIgOSUV')
})
