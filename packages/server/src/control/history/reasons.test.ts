import assert from 'node:assert/strict'
import test from 'node:test'
import { statusOfReason } from '../../api/attempt-reasons.ts'
import { REASONS } from '../../delivery/link/outcome.ts'
import { reasonSentence } from './reasons.ts'

test('every reason has a sentence', () => {
  for (const [code, [, sentence]] of Object.entries(REASONS)) assert.equal(reasonSentence(code), sentence)
  for (const code of ['retry_window_over', 'destination_deleted', 'message_deleted', 'message_unreadable'])
    assert.doesNotMatch(reasonSentence(code), /^Unknown/)
  assert.equal(reasonSentence('http_503'), 'The receiver answered 503 Service Unavailable.')
  assert.equal(reasonSentence('http_301'), 'The receiver answered 301 Moved Permanently, and redirects are not followed.')
  assert.equal(reasonSentence(null), 'No reason was recorded.')
  assert.equal(reasonSentence('constructor'), 'Unknown reason: constructor.')
})

test('the status of a reason is its number', () => {
  assert.deepEqual(['http_503', 'timeout', null, 'http_5030'].map(statusOfReason), [503, null, null, null])
})
