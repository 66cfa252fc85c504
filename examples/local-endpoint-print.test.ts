// What the local endpoint writes for a message: readable, on one line, and harmless whatever the message holds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message } from '@switchyard/protocol'
import { jsonLine, messageLine, printable, rejectionLine } from './local-endpoint/print.ts'

const arrival = { writeKey: 'dev', receivedAtMs: Date.UTC(2026, 10, 14, 9) }
const ESC = '\u001b'
// Clear the screen, set its title, the one-character form of ESC [, a new line, a line separator, right-to-left, delete.
const HOSTILE = `${ESC}[2J${ESC}]0;title\u0007\u009b31m\nfake\r\u2028\u202e\u007f`
const HARMFUL = /[^\P{Cc}]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

test('each type is one line with its time, its subject, its user and its fields', () => {
  const lines: [message: Message, line: string][] = [
    [
      { type: 'track', userId: 'user-1', event: 'Order Completed', properties: { total: 42 }, timestamp: '2020-01-02T03:04:05.678Z' },
      '2020-01-02T03:04:05.678Z  track     "Order Completed"  user user-1  {"total":42}',
    ],
    [
      { type: 'identify', anonymousId: 'a-1', traits: { plan: 'pro' } },
      '2026-11-14T09:00:00.000Z  identify  anonymous a-1  {"plan":"pro"}',
    ],
    [
      { type: 'page', userId: 'u', category: 'Docs', name: 'Home', properties: {} },
      '2026-11-14T09:00:00.000Z  page      Docs Home  user u',
    ],
    [{ type: 'screen', userId: 'u', name: null }, '2026-11-14T09:00:00.000Z  screen    user u'],
    [{ type: 'group', userId: 'u', groupId: 'g 1' }, '2026-11-14T09:00:00.000Z  group     "g 1"  user u'],
    [{ type: 'alias', userId: 'new', previousId: 'old' }, '2026-11-14T09:00:00.000Z  alias     old → new'],
  ]
  for (const [message, line] of lines) assert.equal(messageLine(message, arrival, false), line)
})

test('a name cannot pass for the columns after it', () => {
  const line = messageLine({ type: 'track', userId: 'u', event: 'Login  user admin' }, arrival, false)
  assert.match(line, /"Login {2}user admin" {2}user u$/)
})

test('long values are shortened, and not in the middle of a character', () => {
  const line = messageLine(
    { type: 'track', userId: 'u', event: '😀'.repeat(1_000), properties: { text: '😀'.repeat(1_000) } },
    arrival,
    false,
  )
  assert.ok(line.length < 300)
  assert.doesNotMatch(line, /\p{Cs}/u, 'no half of a surrogate pair')
  assert.match(line, /…$/)
})

test('no control character of a message reaches the terminal', () => {
  const message: Message = { type: 'track', userId: HOSTILE, event: HOSTILE, properties: { [HOSTILE]: HOSTILE }, timestamp: HOSTILE }
  for (const line of [
    messageLine(message, arrival, false),
    messageLine({ type: 'alias', userId: HOSTILE, previousId: HOSTILE }, arrival, false),
    messageLine({ type: 'page', anonymousId: HOSTILE, category: HOSTILE, name: HOSTILE }, arrival, false),
    rejectionLine({ index: 0, messageId: HOSTILE, code: 'event_required', message: 'No.' }, false),
    jsonLine(message),
  ]) {
    assert.doesNotMatch(line, HARMFUL)
  }
})

test('a JSON line means the same as the message', () => {
  const message: Message = { type: 'track', userId: 'u', event: `${HOSTILE}\u{e0041} 👩‍💻`, properties: { '\u009b': '\u2029' } }
  assert.deepEqual(JSON.parse(jsonLine(message)), message)
})

test('ordinary writing stays as it is', () => {
  for (const text of ['Größe ✓', '注文完了', '👩‍💻', 'می‌خواهم']) assert.equal(printable(text), text)
})

test('colour is ours alone', () => {
  const message: Message = { type: 'track', userId: 'u', event: `${ESC}[31mred` }
  const coloured = messageLine(message, arrival, true)
  assert.match(coloured, new RegExp(`${ESC}\\[`))
  assert.equal(coloured.replaceAll(new RegExp(`${ESC}\\[\\d+m`, 'g'), ''), messageLine(message, arrival, false))
})
