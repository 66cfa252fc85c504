// Reading the write key and the access token from the Authorization header.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { basicUser, bearerToken } from './sender.ts'

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
