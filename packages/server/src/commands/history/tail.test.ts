import assert from 'node:assert/strict'
import test from 'node:test'
import { createOutput } from '../line/output.ts'
import { lineOf } from './tail.ts'

const silent = { write: () => true }
const out = createOutput({ stdout: silent, stderr: silent, json: false, colours: false })
const at = '2026-11-14T09:08:07.654Z'
const names = new Map([['dst_1', 'my webhook']])

test('an accepted message, a duplicate, and one of an anonymous user', () => {
  const accepted = {
    at,
    messageId: 'm-1',
    type: 'track',
    event: 'Order',
    userId: 'u-1',
    anonymousId: null,
    sourceId: 'src_1',
    duplicate: false,
  }
  assert.equal(lineOf(out, 'accepted', accepted), '09:08:07.654  accepted   m-1  track Order  u-1  from src_1')
  const page = { ...accepted, type: 'page', event: null, userId: null, anonymousId: 'a-1', duplicate: true }
  assert.equal(lineOf(out, 'accepted', page), '09:08:07.654  duplicate  m-1  page  a-1  from src_1')
})

test('a rejection, also with an unknown write key', () => {
  const line = lineOf(out, 'rejected', { at, sourceId: null, code: 'invalid_write_key', messages: 1, sample: '{"a"' })
  assert.equal(line, '09:08:07.654  rejected   invalid_write_key  from –  {"a"')
})

test('an attempt: with one message or several, the first or a later one, a replay', () => {
  const attempt = { at, messageId: 'm-1', destinationId: 'dst_1', url: 'http://h/', attempt: 1, replay: false, messages: 1, totalMs: 12.3 }
  const delivered = { ...attempt, success: true, verdict: 'success', status: 200, reason: null }
  assert.equal(lineOf(out, 'attempt', delivered, names), '09:08:07.654  delivered  m-1  to my webhook http://h/: 200 after 12 ms')
  const failed = {
    ...attempt,
    success: false,
    verdict: 'temporary',
    status: 500,
    reason: 'http_500',
    attempt: 3,
    replay: true,
    messages: 5,
  }
  assert.equal(
    lineOf(out, 'attempt', failed),
    '09:08:07.654  failed     m-1 and 4 more  to dst_1 http://h/: http_500 after 12 ms, attempt 3, replay, will be retried',
  )
})

test('skipped events, and unknown events of a newer service', () => {
  assert.match(lineOf(out, 'dropped', { at, count: 7 }), /7 events skipped because they arrived too fast to show$/)
  assert.match(lineOf(out, 'news', { at, a: 1 }), /news {2}\{"at":".*","a":1\}$/)
})
