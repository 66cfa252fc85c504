import assert from 'node:assert/strict'
import { test } from 'node:test'
// @ts-ignore: from another package that this one has no types for. Used by this test only, never by the page.
import { WARNINGS } from '../../../server/src/api/message-warnings.ts'
import { warningAdvice, warningSentence } from './warnings.ts'

test('every warning of the API has a sentence and advice', () => {
  for (const code of Object.keys(WARNINGS)) {
    assert.doesNotMatch(warningSentence(code), /^Unknown/, code)
    assert.match(warningAdvice(code), /\.$/, code)
  }
  assert.deepEqual([warningSentence('toString'), warningAdvice('toString')], ['Unknown warning: toString.', ''])
})
