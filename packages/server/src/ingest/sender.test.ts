// Reading the write key and the access token from the Authorization header.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { basicUser, bearerToken, unknownKeyMessage } from './sender.ts'

test('the write key is the user name of Basic authentication, with or without a colon', () => {
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
  assert.equal(basicUser(basic('key:')), 'key')
  assert.equal(basicUser(basic('key')), 'key')
  assert.equal(basicUser(basic('key:password')), 'key')
  assert.equal(basicUser(basic('key:').replace('Basic', 'bAsIc')), 'key')
  for (const nothing of [undefined, '', 'Basic', 'Basic ', basic(':password'), 'Bearer abc', 'key'])
    assert.equal(basicUser(nothing), undefined)
  for (let other = 0; other < 3_000; other++) assert.equal(basicUser(basic(`key-${other}:`)), `key-${other}`)
})

test('a token is read from Bearer authentication only', () => {
  assert.deepEqual(
    [bearerToken('Bearer a.b.c'), bearerToken('bearer x '), bearerToken('Basic abc'), bearerToken(undefined)],
    ['a.b.c', 'x', undefined, undefined],
  )
})

test('a control token in place of a write key is recognised by its form', () => {
  const token = `sy_${'x'.repeat(43)}`
  for (const message of [unknownKeyMessage(undefined, token), unknownKeyMessage(`Bearer ${token}`, undefined)])
    assert.match(message ?? '', /^This is a control token, not a write key\./)
  for (const key of ['key', 'sy_short', undefined, 7]) assert.equal(unknownKeyMessage('Basic a2V5', key), undefined)
})
