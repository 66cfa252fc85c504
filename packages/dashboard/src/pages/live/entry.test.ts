import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LiveAccepted, LiveAttempt, LiveRejected } from '../../api/live.ts'
import { rejectionSentence } from '../../text/rejections.ts'
import { outcomeOf, rate, subjectOf, userOf } from './entry.ts'
import { filtersOf, isFiltered } from './filters.ts'

const attempt = (change: Partial<LiveAttempt>): LiveAttempt =>
  ({
    kind: 'attempt',
    verdict: 'success',
    status: 200,
    reason: null,
    totalMs: 12,
    attempt: 1,
    replay: false,
    messages: 1,
    event: 'e',
    type: 'track',
    userId: null,
    anonymousId: 'anon',
    ...change,
  }) as LiveAttempt

test('the outcome of each kind of event', () => {
  assert.deepEqual(outcomeOf(attempt({})), { word: 'delivered', tone: 'delivered', more: '200 in 12 ms' })
  assert.deepEqual(outcomeOf(attempt({ verdict: 'temporary', reason: 'http_503', attempt: 3, replay: true })), {
    word: 'will retry',
    tone: 'retried',
    more: 'attempt 3, replay: The receiver answered 503 Service Unavailable.',
  })
  assert.deepEqual(outcomeOf(attempt({ verdict: 'permanent', reason: 'http_422' })), {
    word: 'failed',
    tone: 'failed',
    more: 'The receiver answered 422 Unprocessable Entity.',
  })
  assert.equal(outcomeOf({ kind: 'accepted', duplicate: true } as LiveAccepted).word, 'duplicate')
  assert.equal(outcomeOf({ kind: 'rejected', code: 'event_required' } as LiveRejected).more, rejectionSentence('event_required'))
})

test('a batch shows how many more messages it has', () => {
  assert.equal(subjectOf(attempt({ messages: 3 })), 'e and 2 more')
  assert.equal(subjectOf(attempt({ event: null, messages: 2 })), 'track and 1 more')
  assert.equal(userOf(attempt({})), 'anon')
})

test('a page or screen call is shown by its name', () => {
  const accepted = (change: object): LiveAccepted => ({ kind: 'accepted', event: null, message: null, ...change }) as LiveAccepted
  assert.equal(subjectOf(accepted({ event: 'Signed Up', message: { name: 'not this' } })), 'Signed Up')
  assert.equal(subjectOf(accepted({ message: { name: 'Home' } })), 'Home')
  assert.equal(subjectOf(accepted({ message: { name: 7 } })), '')
  assert.equal(subjectOf(accepted({})), '')
})

test('small rates keep one decimal', () => {
  assert.deepEqual([rate(0.26), rate(9.96), rate(1_234.5)], [0.3, 10, 1_235])
})

test('the filters of the URL are sent to the API, without unknown types and kinds', () => {
  assert.deepEqual(filtersOf(new URLSearchParams('sourceId=s&type=track&event=a%20b&userId=u&what=failure&paused=1')), {
    what: 'failure',
    type: 'track',
    sourceId: 's',
    event: 'a b',
    userId: 'u',
  })
  assert.deepEqual(filtersOf(new URLSearchParams('type=nonsense&what=x&event=%20')), {})
  assert.equal(isFiltered({}), false)
})
