import assert from 'node:assert/strict'
import { test } from 'node:test'
// @ts-ignore: of another package, whose types this one does not know. Only read here, never by the page.
import { describeStatus, REASONS } from '../../../server/src/delivery/sending/outcome.ts'
import { reasonAdvice, reasonSentence } from './reasons.ts'

test('every reason of the service has its own sentence, word for word, and advice', () => {
  for (const [code, [, sentence]] of Object.entries(REASONS as Record<string, readonly [string, string]>)) {
    assert.equal(reasonSentence(code), sentence)
    assert.notEqual(reasonAdvice(code), '', code)
  }
})

test('statuses read as the service says them', () => {
  for (const status of [301, 400, 401, 404, 413, 429, 500, 503, 599]) {
    assert.equal(reasonSentence(`http_${status}`), describeStatus(status))
    assert.notEqual(reasonAdvice(`http_${status}`), '')
  }
})

test('reasons of deliveries that were never sent, and one that is not known', () => {
  for (const code of ['retry_window_over', 'destination_deleted', 'message_deleted', 'message_unreadable'])
    assert.doesNotMatch(reasonSentence(code), /The reason is/)
  assert.equal(reasonSentence('brand_new'), 'The reason is brand_new.')
  assert.equal(reasonAdvice('brand_new'), '')
})
