import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createSecretBox, generateSecretKey, SecretBoxError } from './secret-box.ts'

const box = createSecretBox('a key for these tests')

function refusedAs(reason: SecretBoxError['reason']): (error: unknown) => boolean {
  return (error) => error instanceof SecretBoxError && error.reason === reason
}

test('any text can be opened unchanged with its context', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, context) => box.open(box.seal(text, context), context) === text),
  )
})

test('another box with the same key can open it', () => {
  assert.equal(createSecretBox('a key for these tests').open(box.seal('secret')), 'secret')
})

test('the same text is sealed differently each time, and is not visible', () => {
  const [first, second] = [box.seal('secret'), box.seal('secret')]
  assert.notEqual(first, second)
  assert.ok(!first.includes('secret') && !first.includes(Buffer.from('secret').toString('base64url')))
})

test('a wrong key is reported with the setting, and without the key and the secret', () => {
  const sealed = createSecretBox('the other key').seal('secret')
  assert.throws(() => box.open(sealed), refusedAs('wrong_key'))
  assert.throws(() => box.open(sealed), /SWITCHYARD_SECRET_KEY/)
  assert.throws(
    () => box.open(sealed),
    (error: Error) => !/a key for these tests|the other key|"secret"/.test(error.message),
  )
})

test('a sealed text cannot be opened with the context of another', () => {
  assert.throws(() => box.open(box.seal('secret', 'destination:1'), 'destination:2'), refusedAs('altered'))
})

test('every changed character is detected', () => {
  const sealed = box.seal('secret')
  for (let index = 0; index < sealed.length; index += 1) {
    const changed = `${sealed.slice(0, index)}${sealed[index] === 'A' ? 'B' : 'A'}${sealed.slice(index + 1)}`
    assert.throws(() => box.open(changed), SecretBoxError)
  }
})

test('text that was never sealed is reported as malformed', () => {
  for (const text of ['', 'secret', 'v1.', 'v2.aaaaaaaa.bbbb', `v1.${box.keyId}.AAAA`, `${box.seal('x')}=`]) {
    assert.throws(() => box.open(text), refusedAs('malformed'))
  }
})

test('generated keys are different each time, and an empty key is rejected', () => {
  assert.notEqual(generateSecretKey(), generateSecretKey())
  assert.ok(generateSecretKey().length >= 43)
  assert.throws(() => createSecretBox(''), TypeError)
})
