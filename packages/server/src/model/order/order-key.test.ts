import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { orderKeyText } from './order-key.ts'

const keyOf = (by: string, message: JsonObject, context: JsonObject | null = null): string | null =>
  orderKeyText(by, { type: 'track', ...message }, { sourceId: 'src_1', context })

test('the key of a user is the userId, and without one the anonymousId', () => {
  assert.deepEqual(
    [{ userId: 'ann', anonymousId: 'x' }, { anonymousId: 'x' }, { userId: '', anonymousId: 'x' }, {}].map((message) =>
      keyOf('user', message),
    ),
    ['ann', 'x', 'x', null],
  )
  assert.equal(keyOf('user', { type: 'alias', previousId: 'x', userId: 'ann' }), 'ann')
  assert.equal(keyOf('user', { type: 'delete', userId: 'ann' }), 'ann')
})

test('all messages of a source have its id as their key', () => {
  assert.deepEqual([keyOf('source', { userId: 'ann' }), keyOf('source', {})], ['src_1', 'src_1'])
})

test('numbers and booleans are keys as text; other values, and values of more than 1 KB, are none', () => {
  const values = ['7', 7, true, 0, '', null, {}, ['7'], 'é'.repeat(512), 'é'.repeat(513)]
  assert.deepEqual(
    values.map((account) => keyOf('properties.account', { properties: { account } })),
    ['7', '7', 'true', '0', null, null, null, null, 'é'.repeat(512), null],
  )
})

test('a path leads into the context of the batch where the message has no such field of its own', () => {
  const batch = { groupId: 'batch', app: { name: 'shop' } }
  assert.equal(keyOf('context.groupId', { context: { groupId: 'own' } }, batch), 'own')
  assert.equal(keyOf('context.groupId', { context: {} }, batch), 'batch')
  assert.equal(keyOf('context.app.name', {}, batch), 'shop')
  assert.equal(keyOf('context.app.name.length', {}, batch), null)
  assert.equal(keyOf('properties.constructor', { properties: {} }), null)
})

test('dead letters have no key', () => {
  assert.deepEqual([keyOf('user', { type: 'dead_letter', userId: 'ann' }), keyOf('source', { type: 'dead_letter' })], [null, null])
})
