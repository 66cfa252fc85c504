import assert from 'node:assert/strict'
import { test } from 'node:test'
// @ts-ignore: from another package that this one has no types for. Used by this test only, never by the page.
import { describeStatus, REASONS } from '../../../server/src/delivery/sending/outcome.ts'
import { reasonAdvice, reasonSentence } from './reasons.ts'

test('every reason has the same sentence as in the service, and advice', () => {
  for (const [code, [, sentence]] of Object.entries(REASONS as Record<string, readonly [string, string]>)) {
    assert.equal(reasonSentence(code), sentence)
    assert.notEqual(reasonAdvice(code), '', code)
  }
})

test('HTTP statuses have the same sentences as in the service', () => {
  for (const status of [301, 400, 401, 404, 413, 429, 500, 503, 599]) {
    assert.equal(reasonSentence(`http_${status}`), describeStatus(status))
    assert.notEqual(reasonAdvice(`http_${status}`), '')
  }
})

test('reasons of deliveries that were never sent, and an unknown reason', () => {
  for (const code of ['retry_window_over', 'destination_deleted', 'message_deleted', 'message_unreadable'])
    assert.doesNotMatch(reasonSentence(code), /^Reason:/)
  assert.equal(reasonSentence('brand_new'), 'Reason: brand_new.')
  assert.equal(reasonAdvice('brand_new'), '')
})
