import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventParser } from './event-stream.ts'

const TEXT =
  'retry: 2000\n\nevent: accepted\ndata: {"a":1}\n\n: alive\n\nevent: dropped\r\ndata: {"count":3}\r\n\r\ndata: one\ndata: two\n\n'
const EVENTS = [
  { event: 'accepted', data: '{"a":1}' },
  { event: 'dropped', data: '{"count":3}' },
  { event: 'message', data: 'one\ntwo' },
]

test('events are parsed the same wherever the text is split', () => {
  assert.deepEqual(new EventParser().take(TEXT), EVENTS)
  for (const size of [1, 2, 3, 7]) {
    const parser = new EventParser()
    const events = []
    for (let at = 0; at < TEXT.length; at += size) events.push(...parser.take(TEXT.slice(at, at + size)))
    assert.deepEqual(events, EVENTS, `pieces of ${size}`)
  }
})

test('an event that never ends is rejected', () => {
  const parser = new EventParser()
  assert.throws(() => {
    for (let at = 0; at < 10; at++) parser.take('x'.repeat(1024 * 1024))
  }, /too large/)
})
