import assert from 'node:assert/strict'
import { test } from 'node:test'
// @ts-ignore: of another package, whose types this one does not know. Only read here, never by the page.
import { REFUSALS } from '../../../protocol/src/refusals.ts'
// @ts-ignore: as above.
import { API_ERRORS } from '../../../server/src/errors.ts'
import { REJECTION_CODES, rejectionAdvice, rejectionSentence } from './rejections.ts'

const requests = API_ERRORS as Record<string, readonly [number, string]>
const messages = REFUSALS as Record<string, string>

test('every code reads as the service says it, and has advice', () => {
  for (const code of REJECTION_CODES) {
    assert.equal(rejectionSentence(code), requests[code]?.[1] ?? messages[code], code)
    assert.notEqual(rejectionAdvice(code), '', code)
  }
})

test('every code that a single message is refused with is here', () => {
  for (const code of Object.keys(messages)) assert.ok(REJECTION_CODES.includes(code), code)
})

test('a code that is not known is named, also one that every object has', () => {
  for (const code of ['brand_new', 'constructor', '__proto__']) {
    assert.equal(rejectionSentence(code), `It was refused as ${code}.`)
    assert.equal(rejectionAdvice(code), '')
  }
})
