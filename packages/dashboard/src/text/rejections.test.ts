import assert from 'node:assert/strict'
import { test } from 'node:test'
// @ts-ignore: from another package that this one has no types for. Used by this test only, never by the page.
import { REFUSALS } from '../../../protocol/src/refusals.ts'
// @ts-ignore: as above.
import { API_ERRORS } from '../../../server/src/errors.ts'
import { REJECTION_CODES, rejectionAdvice, rejectionSentence } from './rejections.ts'

const requests = API_ERRORS as Record<string, readonly [number, string]>
const messages = REFUSALS as Record<string, string>

test('every code has the same sentence as in the service, and advice', () => {
  for (const code of REJECTION_CODES) {
    assert.equal(rejectionSentence(code), requests[code]?.[1] ?? messages[code], code)
    assert.notEqual(rejectionAdvice(code), '', code)
  }
})

test('every code that a single message can be rejected with is here', () => {
  for (const code of Object.keys(messages)) assert.ok(REJECTION_CODES.includes(code), code)
})

test('an unknown code is named, even if it is the name of an object property', () => {
  for (const code of ['brand_new', 'constructor', '__proto__']) {
    assert.equal(rejectionSentence(code), `Rejected with the code ${code}.`)
    assert.equal(rejectionAdvice(code), '')
  }
})
