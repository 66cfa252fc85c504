import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countsText, effectsOf, failuresOf, kindOf, type PreviewEntry, titleOf } from './preview-rows.ts'

const about = (messageId: string) => ({ messageId, type: 'track', event: 'Tick', receivedAt: '2026-11-16T12:00:00.000Z', message: {} })
const sent = (messageId: string, body = '{}'): PreviewEntry => ({
  ...about(messageId),
  request: { method: 'POST', url: 'https://example.com/', headers: { 'webhook-timestamp': String(Math.random()) }, body },
})
const dropped = (messageId: string): PreviewEntry => ({ ...about(messageId), request: null, dropped: true })
const failed = (messageId: string): PreviewEntry => ({
  ...about(messageId),
  request: null,
  error: { reason: 'transformation_failed', sentence: 'line 3: oops', line: 3 },
})

test('what happens to each message', () => {
  assert.deepEqual([sent('a'), dropped('b'), failed('c')].map(kindOf), ['sent', 'dropped', 'failed'])
  assert.equal(countsText([sent('a'), dropped('b'), failed('c'), sent('d')]), 'Of the last 4 messages: 2 sent, 1 dropped, 1 failed.')
  assert.equal(countsText([dropped('b')]), 'The last message: dropped.')
})

test('what saving changes is said for the last messages', () => {
  const now = [sent('a'), sent('b'), sent('c'), sent('d')]
  assert.deepEqual(
    effectsOf(
      now,
      now.map((entry) => ({ ...entry })),
    ),
    ['Nothing would change for the last 4 messages.'],
  )
  assert.deepEqual(effectsOf(now, [dropped('a'), dropped('b'), sent('c'), sent('d', 'new')]), [
    '2 of the last 4 messages would be dropped (now: 0).',
    '1 of the last 4 messages would be sent differently.',
  ])
  assert.deepEqual(effectsOf([failed('a'), sent('b')], [sent('a'), sent('b')]), ['None of the last messages would fail (now: 1).'])
  assert.deepEqual(effectsOf([], []), ['No message is stored yet, so there is nothing to compare.'])
})

test('the title of a message', () => {
  assert.equal(titleOf({ type: 'track', event: 'Order Completed', message: { userId: 'u-1' } }), 'track: Order Completed (u-1)')
  assert.equal(titleOf({ type: 'page', event: null, message: { name: 'Home', anonymousId: 'a' } }), 'page: Home (a)')
  assert.equal(titleOf({ type: null, event: null, message: {} }), 'message')
})

test('the errors of the transformation are counted', () => {
  assert.deepEqual(failuresOf([failed('a'), sent('b'), failed('c')]), [{ message: 'line 3: oops', count: 2 }])
})

test('a message that a busy service did not reach is not counted as failed, and is not compared', () => {
  const notRun: PreviewEntry = { ...sent('b'), request: null, error: { reason: 'not_run', sentence: 'Not reached.', line: null } }
  assert.equal(countsText([sent('a'), notRun]), 'Of the last 2 messages: 1 sent, 1 not run.')
  assert.deepEqual(effectsOf([sent('a'), sent('b')], [sent('a'), notRun]), ['Nothing would change for the last message.'])
  assert.deepEqual(effectsOf([sent('b')], [notRun]), ['No message could be compared yet.'])
})
