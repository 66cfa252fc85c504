import assert from 'node:assert/strict'
import test from 'node:test'
import { signMessage } from '@switchyard/webhook'
import fc from 'fast-check'
import { messageSigner } from './message-signer.ts'

test('a signature is that of signMessage, for every secret and message', () => {
  const text = fc.string({ unit: 'binary', maxLength: 200 })
  const secret = fc.string({ unit: 'binary', minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(secret, fc.array(text, { minLength: 1, maxLength: 5 }), (sharedSecret, texts) => {
      const sign = messageSigner(sharedSecret)
      for (const each of texts) assert.equal(sign(each), signMessage(each, sharedSecret))
    }),
  )
})

test('secrets of any length, long messages and messages that are not valid Unicode are signed correctly', () => {
  const texts = [
    '',
    '{}',
    '\ud800',
    'ü'.repeat(100),
    ...[16_383, 16_384, 16_385, 100_000].flatMap((length) => ['x'.repeat(length), '€'.repeat(length)]),
  ]
  for (const length of [1, 63, 64, 65, 1_000]) {
    const secret = 's'.repeat(length)
    const sign = messageSigner(secret)
    for (const text of texts) assert.equal(sign(text), signMessage(text, secret), `secret of ${length}, text of ${text.length}`)
  }
})

test('signers do not disturb each other', () => {
  const [one, other] = [messageSigner('one'), messageSigner('other')]
  one('a long message that stays behind in the buffer')
  assert.equal(other('b'), signMessage('b', 'other'))
  assert.equal(one('c'), signMessage('c', 'one'))
})

test('an empty secret is refused', () => {
  assert.throws(() => messageSigner(''), TypeError)
})
