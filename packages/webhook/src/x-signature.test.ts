import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import test from 'node:test'
import fc from 'fast-check'
import { signBody, signMessage, verifySignature } from './index.ts'

const SECRET = 'a shared secret'
const MESSAGE = '{"type":"track","userId":"u-1","event":"Signed Up"}'
const OTHER = '{"type":"track","userId":"u-2","event":"Signed Up"}'

const json = fc.jsonValue().map((value) => JSON.stringify(value))
/** An object as a person might write it: with keys that JSON.parse reorders or treats specially, and numbers that it rewrites. */
const untidyObject = fc
  .dictionary(fc.constantFrom('__proto__', '10', '2', 'b', 'a', '', 'toJSON', 'constructor', '-1', '01'), fc.jsonValue())
  .map((fields) => {
    const known = Object.entries(fields).map(([key, value]) => `${JSON.stringify(key)} : ${JSON.stringify(value)} , `)
    return `{ ${known.join('')}"n": [1.0, -0, 1e21, 1E-7, 123456789012345678901234567890, 1e400], "n": 5.0, "s": "\\u00e9\\ud800" }`
  })

test('JSON.stringify(JSON.parse(x)) is idempotent, which verification of parsed bodies and batches relies on', () => {
  fc.assert(
    fc.property(fc.oneof(json, untidyObject), (text) => {
      const once = JSON.stringify(JSON.parse(text))
      assert.equal(JSON.stringify(JSON.parse(once)), once)
    }),
  )
})

test('a signed body verifies, as text and as bytes, alone and first in any batch', () => {
  fc.assert(
    fc.property(untidyObject, fc.array(json, { maxLength: 3 }), fc.string({ minLength: 1 }), (text, rest, secret) => {
      const message = JSON.stringify(JSON.parse(text))
      const batch = `[${[message, ...rest].join(',')}]`
      const signature = signMessage(message, secret)
      assert.equal(signBody(batch, secret), signature)
      assert.equal(verifySignature(batch, signature, secret), true)
      assert.equal(verifySignature(Buffer.from(batch), signature, secret), true)
      for (const body of [message, Buffer.from(message)]) assert.equal(verifySignature(body, signBody(body, secret), secret), true)
    }),
  )
})

test('any flipped bit of a single body, of the signature or of the secret fails', () => {
  const bytes = Buffer.from(MESSAGE)
  const signature = signBody(MESSAGE, SECRET)
  for (let bit = 0; bit < bytes.length * 8; bit += 1) assert.equal(verifySignature(flipped(bytes, bit), signature, SECRET), false)
  for (let bit = 0; bit < signature.length * 8; bit += 1) {
    assert.equal(verifySignature(MESSAGE, flipped(Buffer.from(signature), bit).toString('latin1'), SECRET), false)
  }
  for (let bit = 0; bit < SECRET.length * 8; bit += 1) {
    assert.equal(verifySignature(MESSAGE, signature, flipped(Buffer.from(SECRET), bit).toString('latin1')), false)
  }
})

test('the signature of a batch covers only its first message', () => {
  const signature = signBody(`[${MESSAGE},${OTHER}]`, SECRET)
  assert.equal(signature, signBody(MESSAGE, SECRET))
  assert.equal(verifySignature(`[${MESSAGE}]`, signature, SECRET), true)
  assert.equal(verifySignature(`[${MESSAGE},{"forged":true}]`, signature, SECRET), true)
  assert.equal(verifySignature(`[${OTHER},${MESSAGE}]`, signature, SECRET), false)
})

test('whitespace before the bracket does not make a batch a single body', () => {
  const signature = signMessage(MESSAGE, SECRET)
  for (const body of [` \t\r\n[${MESSAGE}]`, Buffer.from(` \t\r\n[${MESSAGE}]`)])
    assert.equal(verifySignature(body, signature, SECRET), true)
})

test('an empty batch cannot be signed and never verifies', () => {
  assert.throws(() => signBody('[]', SECRET), TypeError)
  for (const signed of ['', '[]', 'undefined', 'null']) assert.equal(verifySignature('[]', signMessage(signed, SECRET), SECRET), false)
})

test('a batch that is not JSON or not UTF-8 cannot be signed and never verifies', () => {
  const notUtf8 = Buffer.concat([Buffer.from('["'), Buffer.from([0xff]), Buffer.from('"]')])
  for (const body of ['[', '[1,]', notUtf8]) {
    assert.throws(() => signBody(body, SECRET), TypeError)
    assert.equal(verifySignature(body, signMessage('1', SECRET), SECRET), false)
  }
})

test('a batch nested deeper than the stack is rejected, not thrown', () => {
  const depth = 400_000
  assert.equal(verifySignature(`${'['.repeat(depth)}${']'.repeat(depth)}`, signMessage('1', SECRET), SECRET), false)
})

test('missing, repeated or malformed headers do not verify', () => {
  const signature = signBody(MESSAGE, SECRET)
  assert.equal(verifySignature(MESSAGE, [signature], SECRET), true)
  const wrong = [undefined, null, '', [], [signature, signature], `${signature}, ${signature}`, signature.toUpperCase(), ` ${signature}`]
  for (const header of wrong) assert.equal(verifySignature(MESSAGE, header, SECRET), false)
})

test('any garbage as header or body returns false', () => {
  fc.assert(
    fc.property(fc.anything(), fc.oneof(fc.string(), fc.uint8Array()), (header, body) => {
      assert.equal(verifySignature(body, header as string, SECRET), false)
    }),
  )
})

test('an empty or missing secret throws, and so does a body that is neither text nor bytes', () => {
  const signature = signBody(MESSAGE, SECRET)
  for (const secret of ['', undefined, null, 7] as unknown as string[]) {
    assert.throws(() => signBody(MESSAGE, secret), TypeError)
    assert.throws(() => verifySignature(MESSAGE, signature, secret), TypeError)
  }
  for (const body of [undefined, null, {}, new Uint16Array(2)] as unknown as string[]) {
    assert.throws(() => verifySignature(body, signature, SECRET), TypeError)
  }
})

test('signatures are compared by timingSafeEqual', (t) => {
  const compare = t.mock.method(crypto, 'timingSafeEqual')
  syncBuiltinESMExports()
  t.after(() => {
    compare.mock.restore()
    syncBuiltinESMExports()
  })
  verifySignature(MESSAGE, signBody(MESSAGE, SECRET), SECRET)
  verifySignature(MESSAGE, '0'.repeat(40), SECRET)
  verifySignature(`[${MESSAGE}]`, '0'.repeat(40), SECRET)
  assert.equal(compare.mock.callCount(), 3)
})

function flipped(bytes: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return copy
}
