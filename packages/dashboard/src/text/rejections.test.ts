import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REJECTIONS } from '../api/rules.ts'
import { rejectionAdvice, rejectionSentence } from './rejections.ts'

test('every code has the sentence of the service, and advice', () => {
  for (const [code, sentence] of Object.entries(REJECTIONS)) {
    assert.equal(rejectionSentence(code), sentence)
    assert.notEqual(rejectionAdvice(code), '', code)
  }
})

test('an unknown code is named, even if it is the name of an object property', () => {
  for (const code of ['brand_new', 'constructor', '__proto__']) {
    assert.equal(rejectionSentence(code), `Rejected with the code ${code}.`)
    assert.equal(rejectionAdvice(code), '')
  }
})
