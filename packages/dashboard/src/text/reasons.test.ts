import assert from 'node:assert/strict'
import { test } from 'node:test'
// @ts-ignore: from another package that this one has no types for. Used by this test only, never by the page.
import { describeStatus } from '../../../server/src/api/attempt-reasons.ts'
import { REASONS } from '../api/rules.ts'
import { expiredTitle, reasonAdvice, reasonSentence, toolAdvice } from './reasons.ts'

test('every reason has the sentence of the service, and advice', () => {
  for (const [code, sentence] of Object.entries(REASONS)) {
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

test('the advice about a tool says nothing about URLs and signatures', () => {
  for (const status of [401, 403, 404, 410]) assert.doesNotMatch(toolAdvice(`http_${status}`), /signature|URL/)
  assert.equal(toolAdvice('http_429'), reasonAdvice('http_429'))
})

test('reasons of deliveries that were never sent, and an unknown reason', () => {
  for (const code of ['retry_window_over', 'destination_deleted', 'message_deleted', 'message_unreadable'])
    assert.doesNotMatch(reasonSentence(code), /^Reason:/)
  for (const code of ['brand_new', 'constructor']) {
    assert.equal(reasonSentence(code), `Reason: ${code}.`)
    assert.equal(reasonAdvice(code), '')
  }
})

test('expired deliveries are named after the cause of their last attempts, if it is the same for all', () => {
  const over = 'The retry window ended before the message was delivered.'
  const refused = { reason: 'connection_refused', sentence: 'The receiver refused the connection.' }
  assert.equal(expiredTitle(over, [refused, refused]), 'The receiver refused the connection, until the retry window ended.')
  assert.equal(expiredTitle(over, [refused, { reason: 'timeout', sentence: 'No response in time.' }]), over)
  assert.equal(expiredTitle(over, [{ reason: null, sentence: over }]), over)
  assert.equal(expiredTitle(over, []), over)
})
