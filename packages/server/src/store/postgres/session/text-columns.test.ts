import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { readText, writeText } from './text-columns.ts'

/** Any sequence of UTF-16 units, including lone surrogates. */
const anyText = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 30 }).map((units) => String.fromCharCode(...units))

test('every text is read back unchanged', () => {
  fc.assert(fc.property(anyText, (text) => assert.equal(readText(writeText(text)), text)))
  for (const text of ['', '\\', '\\\\', '\\u0000', '\0', 'a\0b', '\ud800', '\udc00\ud800', '"', '\\"', 'C:\\new']) {
    assert.equal(readText(writeText(text)), text, JSON.stringify(text))
  }
})

test('the encoded text is valid for PostgreSQL: no NUL, and nothing that UTF-8 cannot encode', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const written = writeText(text)
      assert.ok(!written.includes('\0'))
      assert.equal(Buffer.from(written).toString(), written)
    }),
  )
})

test('different texts have different encodings', () => {
  fc.assert(fc.property(anyText, anyText, (a, b) => assert.equal(writeText(a) === writeText(b), a === b)))
})
