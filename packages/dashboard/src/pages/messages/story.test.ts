import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refreshMs, replayObstacle } from '../../delivery/delivery-state.ts'
import {
  collapsed,
  grouped,
  routingSentence,
  type StoryAttempt,
  type StoryDelivery,
  type StoryEntry,
  summaryOf,
  timelineEntries,
  titleOf,
  waitingOf,
} from './story.ts'

const NOON = Date.parse('2026-11-15T12:00:00.000Z')
const iso = (ms: number): string => new Date(ms).toISOString()

function attempt(number: number, startedMs: number, totalMs: number, url = 'http://a/'): StoryAttempt {
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs }
  return {
    attempt: number,
    url,
    address: null,
    startedAt: iso(startedMs),
    status: 500,
    reason: 'http_500',
    error: 'No.',
    timings,
    responseStart: null,
    version: 1,
    logs: null,
    subscription: null,
    method: null,
    load: null,
  }
}

function delivery(id: string, changes: Partial<StoryDelivery> = {}): StoryDelivery {
  return {
    id,
    messageId: 'm',
    storedMessageId: 's-0',
    destinationId: `d-${id}`,
    state: 'delivered',
    reason: null,
    attemptCount: 1,
    replay: false,
    replayOf: null,
    replayJobId: null,
    replayedBy: null,
    nextAttemptAt: null,
    settledAt: null,
    destinationName: null,
    attempts: [],
    ...changes,
  } as StoryDelivery
}

const entry = (
  what: StoryEntry['what'],
  deliveryId: string | null = null,
  at: string | null = null,
  more: Partial<StoryEntry> = {},
): StoryEntry => ({
  at,
  what,
  sentence: what,
  destinationId: null,
  deliveryId,
  reason: null,
  attemptNumber: null,
  attemptIndex: null,
  inBatch: false,
  ...more,
})

test('an entry has its attempt, even if several have the same number, and null if it is missing', () => {
  const slow = attempt(1, NOON, 900.4, 'http://slow/')
  const quick = attempt(1, NOON, 10.2, 'http://quick/')
  const attempted = (attemptIndex: number) => entry('attempted', '1', iso(NOON), { attemptNumber: 1, attemptIndex })
  const entries = timelineEntries(
    [attempted(1), attempted(0), attempted(2), entry('failed', '1')],
    [delivery('1', { attempts: [slow, quick] })],
  )
  assert.deepEqual(
    entries.map((one) => one.attempt?.url),
    ['http://quick/', 'http://slow/', undefined, undefined],
  )
})

test('a waiting entry has its due time as a field, and its sentence does not', () => {
  const dueAt = iso(NOON)
  const held = { sentence: 'On hold: "X" is paused.', reason: 'destination_paused', attemptNumber: 1 }
  const story = [
    entry('waiting', '1', dueAt, { sentence: `Waiting for attempt 2 to "CRM", due at ${dueAt}.`, attemptNumber: 2 }),
    entry('waiting', '2', null, { sentence: 'Waiting for attempt 1 to d-2 (deleted), due now.', attemptNumber: 1 }),
    entry('waiting', '3', null, held),
  ]
  const deliveries = [
    delivery('1', { state: 'pending', nextAttemptAt: dueAt, destinationName: 'CRM' }),
    delivery('2', { state: 'pending' }),
    delivery('3', { state: 'pending', destinationName: 'X' }),
  ]
  const says = ['Waiting for attempt 2 to "CRM".', 'Waiting for attempt 1 to d-2 (deleted).', 'On hold: "X" is paused.']
  assert.deepEqual(
    timelineEntries(story, deliveries).map(({ sentence, dueAt }) => [sentence, dueAt]),
    says.map((sentence, at) => [sentence, at === 0 ? dueAt : null]),
  )
  assert.deepEqual(
    deliveries.map((each) => waitingOf(story, each)),
    says,
  )
  assert.equal(waitingOf(story, delivery('4')), null)
})

test('only long series of attempts are collapsed', () => {
  const attempts = Array.from({ length: 30 }, () => ({ ...entry('attempted', '1'), attempt: null }))
  const rows = collapsed(grouped([{ ...entry('received'), attempt: null }, ...attempts, { ...entry('delivered', '1'), attempt: null }]))
  assert.deepEqual(
    rows.map((row) => (row.kind === 'collapsed' ? row.count : row.entry.what)),
    ['received', ...Array(3).fill('attempted'), 24, ...Array(3).fill('attempted'), 'delivered'],
  )
  assert.equal(collapsed(grouped(attempts.slice(0, 9))).length, 9)
})

const filtered = { destinationId: 'x', reason: 'filtered', rule: 'event_denied' as const, message: 'No.' }
const cases: [
  title: string,
  deliveries: StoryDelivery[],
  skips: (typeof filtered | { destinationId: null; reason: string; rule: null; message: string })[],
  purged: boolean,
  says: string,
][] = [
  ['one delivered', [delivery('1')], [], false, 'Delivered to 1 destination.'],
  ['all delivered', [delivery('1'), delivery('2')], [], false, 'Delivered to all 2 destinations.'],
  [
    'some of each',
    [delivery('1'), delivery('2', { state: 'pending' }), delivery('3', { state: 'failed' }), delivery('4', { state: 'failed' })],
    [filtered],
    false,
    'Delivered to 1 of 4 destinations, 1 pending, 2 failed. Not sent to 1 other destination; the timeline below shows why.',
  ],
  ['one pending', [delivery('1', { state: 'pending' })], [], false, 'Delivery to its destination is pending.'],
  [
    'a replay instead of the failed delivery',
    [delivery('1', { state: 'failed', destinationId: 'd', replayedBy: '2' }), delivery('2', { destinationId: 'd', replayOf: '1' })],
    [],
    false,
    'Delivered to 1 destination.',
  ],
  [
    'a source without a destination',
    [],
    [{ destinationId: null, reason: 'no_destination', rule: null, message: 'The source has no destination.' }],
    false,
    'Not sent to any destination. The source has no destination.',
  ],
  ['skipped for every destination', [], [filtered, filtered], false, 'Not sent to any destination. The timeline below shows why.'],
  ['purged', [delivery('1', { state: 'cancelled' })], [], true, 'The delivery was cancelled. The content was deleted.'],
]
for (const [title, deliveries, skips, purged, says] of cases)
  test(`summary: ${title}`, () => assert.equal(summaryOf({ deliveries, skips, purged }), says))

test('the page refreshes while a delivery is pending, and more often when one is due', () => {
  assert.equal(refreshMs([{ state: 'failed', nextAttemptAt: null }], NOON), undefined)
  assert.equal(refreshMs([{ state: 'pending', nextAttemptAt: null }], NOON), 2_000)
  assert.equal(refreshMs([{ state: 'pending', nextAttemptAt: iso(NOON + 5_000) }], NOON), 2_000)
  assert.equal(refreshMs([{ state: 'pending', nextAttemptAt: iso(NOON + 600_000) }], NOON), 10_000)
})

test('titles, and why a delivery cannot be replayed', () => {
  assert.equal(titleOf({ type: 'track', event: 'Signed Up' }), 'track: Signed Up')
  assert.equal(titleOf({ type: 'identify', event: null }), 'identify')
  assert.equal(titleOf({ type: null, event: null }), 'Deleted message')
  assert.equal(replayObstacle({ state: 'failed' }, false, false), null)
  assert.match(replayObstacle({ state: 'pending' }, false, false) ?? '', /still pending/)
  assert.match(replayObstacle({ state: 'failed' }, true, false) ?? '', /no longer stored/)
})

test('the sentence of an attempt leaves out the URL and the response, which are shown below it', () => {
  const sentence = 'Attempt 2 to "a: b", in a batch: http://a/b?… (127.0.0.1) failed after 3 ms (http_500). No.'
  const story = [entry('attempted', '1', iso(NOON), { sentence, reason: 'http_500', attemptNumber: 2, attemptIndex: 0, inBatch: true })]
  const [shown] = timelineEntries(story, [delivery('1', { destinationName: 'a: b', attempts: [attempt(2, NOON, 3)] })])
  assert.equal(shown?.sentence, 'Attempt 2 to "a: b", in a batch.')
})

test('the routing sentence does not count replays as destinations', () => {
  const deliveries = [delivery('1', { destinationId: 'd' }), delivery('2', { destinationId: 'd', replay: true })]
  assert.equal(
    routingSentence({ type: 'track', deliveries, skips: [filtered], purged: false }),
    'Validated as track and stored. Routed to 1 destination, skipped for 1 other.',
  )
  assert.equal(routingSentence({ type: null, deliveries: [], skips: [], purged: true }), 'Validated and stored. Routed to no destination.')
})

test('decisions at the same time are one row', () => {
  const at = (what: StoryEntry['what'], ms: number) => ({ ...entry(what, String(ms), iso(ms)), attempt: null })
  const rows = grouped([
    at('received', 1),
    at('skipped', 1),
    at('skipped', 1),
    at('owed', 1),
    at('owed', 1),
    at('owed', 2),
    at('attempted', 3),
    at('attempted', 3),
  ])
  assert.deepEqual(
    rows.map((row) => (row.kind === 'entry' ? [row.entry.what, row.also.length] : [])),
    [
      ['received', 0],
      ['skipped', 1],
      ['owed', 1],
      ['owed', 0],
      ['attempted', 0],
      ['attempted', 0],
    ],
  )
})
