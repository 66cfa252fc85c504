// Pseudonyms: the same user has the same, and no two users share one.

import assert from 'node:assert/strict'
import test from 'node:test'
import { newPseudonymKey, pseudonymOf } from './pseudonyms.ts'

test('users have pseudonyms of their own, also where an id has no form in UTF-8', () => {
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

test('a pseudonym stays what it was', () => {
  assert.equal(pseudonymOf('a user', 'a key'), 'user_dX02uQTCTd5eZ23aOxvpKIgOSUV')
})
