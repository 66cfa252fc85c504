// The story of a message, sentence by sentence: what an operator reads in a terminal or the dashboard.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import type { DeliveryDetail, MessageTrail, RequestRecord, SegmentContent } from '../../store/store.ts'
import { quoted, skipSentence, type TimelineContext, timelineOf } from './timeline.ts'

const NOW = Date.parse('2026-11-14T09:00:00.000Z')
const TRACE = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: null }
const ITEM: JsonObject = { type: 'track', event: 'Order Completed', userId: 'u', messageId: 'm' }

const ABOUT: TimelineContext = {
  sourceName: 'Shop',
  destination: (id) =>
    ({
      one: { name: 'Billing', enabled: true, paused: false },
      off: { name: 'Off', enabled: false, paused: true },
      still: { name: 'Still', enabled: true, paused: true },
    })[id],
  breaker: () => 'closed',
  wallMs: (scheduleMs) => scheduleMs,
}

function trail(about: Partial<MessageTrail> = {}, content: Partial<SegmentContent> = {}): MessageTrail {
  return {
    id: '7-0',
    segment: 7,
    index: 0,
    content: {
      sourceId: 'src_1',
      receivedAtMs: NOW,
      ip: '192.0.2.7',
      browser: false,
      sentAt: null,
      context: null,
      integrations: null,
      trace: null,
      items: [ITEM],
      ...content,
    },
    deliveries: [],
    skips: [],
    repeats: null,
    ...about,
  }
}

function request(about: Partial<RequestRecord & { attempt: number }> = {}): RequestRecord & { attempt: number } {
  return {
    attempt: 1,
    url: 'https://hooks.example/in?token=secret',
    startedAtMs: NOW + 10,
    status: 200,
    reason: null,
    error: null,
    address: '198.51.100.1',
    dnsMs: null,
    connectMs: null,
    tlsMs: null,
    firstByteMs: 11,
    totalMs: 12.4,
    responseStart: null,
    indexes: [0],
    ...about,
  }
}

function delivery(about: Partial<DeliveryDetail> = {}): DeliveryDetail {
  return {
    id: '8-0',
    destinationId: 'one',
    messageId: 'm',
    type: 'track',
    event: 'Order Completed',
    userId: 'u-1',
    anonymousId: null,
    segment: 7,
    index: 0,
    state: 'pending',
    reason: null,
    attempts: 0,
    replay: false,
    replayOf: null,
    replayJobId: null,
    replayedBy: null,
    atMs: null,
    content: null,
    history: [],
    owedAtMs: NOW,
    gathered: null,
    ...about,
  }
}

const sentences = (...given: Parameters<typeof timelineOf>): string[] => timelineOf(...given).map(({ sentence }) => sentence)
const told = (deliveries: DeliveryDetail[], about: Partial<TimelineContext> = {}): string[] =>
  sentences(trail(), deliveries, { ...ABOUT, ...about }).slice(1)

test('a delivery with a retry is told from its arrival to its end', () => {
  const failed = request({
    status: 503,
    reason: 'http_503',
    error: 'The receiver answered 503.',
    responseStart: 'busy\u001b[2J',
    totalMs: 30,
  })
  const passed = request({ attempt: 2, startedAtMs: NOW + 5_000 })
  const done = delivery({ state: 'delivered', attempts: 2, atMs: NOW + 5_020, history: [failed, passed] })
  assert.deepEqual(timelineOf(trail({ repeats: { count: 1, lastAtMs: NOW + 1_000 } }), [done], ABOUT), [
    {
      at: '2026-11-14T09:00:00.000Z',
      what: 'received',
      sentence: 'Received from 192.0.2.7, for the source "Shop" (src_1).',
      destinationId: null,
      deliveryId: null,
    },
    { at: '2026-11-14T09:00:00.000Z', what: 'owed', sentence: 'Owed to "Billing".', destinationId: 'one', deliveryId: '8-0' },
    {
      at: '2026-11-14T09:00:00.040Z',
      what: 'attempted',
      sentence:
        'Attempt 1 at "Billing": POST https://hooks.example/in?… (198.51.100.1) failed after 30 ms (http_503). The receiver answered 503. Its answer began with "busy\\u001b[2J".',
      destinationId: 'one',
      deliveryId: '8-0',
    },
    {
      at: '2026-11-14T09:00:01.000Z',
      what: 'duplicate',
      sentence: 'Came again, and was dropped as a duplicate.',
      destinationId: null,
      deliveryId: null,
    },
    {
      at: '2026-11-14T09:00:05.012Z',
      what: 'attempted',
      sentence: 'Attempt 2 at "Billing": POST https://hooks.example/in?… (198.51.100.1) answered 200 after 12 ms.',
      destinationId: 'one',
      deliveryId: '8-0',
    },
    {
      at: '2026-11-14T09:00:05.020Z',
      what: 'delivered',
      sentence: 'Delivered to "Billing" after 2 attempts.',
      destinationId: 'one',
      deliveryId: '8-0',
    },
  ])
})

test('an attempt that others shared says so', () => {
  const of = (about: Partial<RequestRecord>): string | undefined =>
    told([delivery({ state: 'delivered', attempts: 1, atMs: NOW, history: [request(about)] })])[1]
  const rest = 'POST https://hooks.example/in?… (198.51.100.1) answered 200 after 12 ms.'
  assert.equal(of({}), `Attempt 1 at "Billing": ${rest}`)
  for (const about of [{ indexes: [0, 1] }, { gathered: { lead: 1, parts: null } }])
    assert.equal(of(about), `Attempt 1 at "Billing", in a batch: ${rest}`)
})

test('a call is told by where it came from: a browser, a trace, a source that is gone', () => {
  const [browser] = sentences(trail({}, { browser: true, trace: TRACE, ip: null }), [], ABOUT)
  assert.equal(browser, 'Received, by a browser, in trace 0af7651916cd43dd8448eb211c80319c, for the source "Shop" (src_1).')
  const [gone] = sentences(trail(), [], { ...ABOUT, sourceName: null })
  assert.equal(gone, 'Received from 192.0.2.7, for the source src_1 (deleted).')
})

test('where it was not sent is told with the reason, for a filter down to the rule', () => {
  const skips: MessageTrail['skips'] = [
    { destinationId: 'one', reason: 'filtered', rule: 'event_denied' },
    { destinationId: 'gone', reason: 'historical' },
  ]
  assert.deepEqual(sentences(trail({ skips }), [], ABOUT).slice(1), [
    'Not sent to "Billing". The destination\'s filter denies the event "Order Completed".',
    'Not sent to gone (deleted). The message happened more than 24 h before it was received, and the destination takes no historical messages.',
  ])
  const nowhere = timelineOf(trail({ skips: [{ destinationId: null, reason: 'no_destination' }] }), [], ABOUT)[1]
  assert.deepEqual([nowhere?.what, nowhere?.sentence], ['skipped', 'Goes nowhere. The source has no destination.'])
})

test('each rule of a filter has its sentence', () => {
  const of = (rule: 'type_denied' | 'type_not_allowed' | 'event_denied' | 'event_not_allowed', item: JsonObject | null = ITEM): string =>
    skipSentence({ reason: 'filtered', rule }, item)
  assert.equal(of('type_denied'), "The destination's filter denies messages of type track.")
  assert.equal(of('type_not_allowed'), "The destination's filter allows some types, and track is not one of them.")
  assert.equal(of('event_denied'), 'The destination\'s filter denies the event "Order Completed".')
  assert.equal(of('event_not_allowed'), 'The destination\'s filter allows some events, and "Order Completed" is not one of them.')
  assert.doesNotMatch(of('event_denied', { ...ITEM, event: `x\u009b31m${'y'.repeat(500)}` }), /\u009b|y{201}/)
  assert.equal(of('event_denied', null), "The destination's filter does not let this type or event through.")
  assert.equal(skipSentence({ reason: 'filtered' }, ITEM), "The destination's filter does not let this type or event through.")
})

test('each end has its sentence', () => {
  const end = (about: Partial<DeliveryDetail>): string | undefined => told([delivery({ atMs: NOW + 1, ...about })]).at(-1)
  assert.equal(end({ state: 'delivered', attempts: 1 }), 'Delivered to "Billing" at the first attempt.')
  assert.equal(
    end({ state: 'failed', attempts: 1, reason: 'http_400' }),
    'Failed at "Billing" at the first attempt (http_400). It is not tried again by itself.',
  )
  assert.equal(
    end({ state: 'expired', attempts: 9, reason: 'timeout' }),
    'Given up at "Billing" after 9 attempts: the time for retries is over (timeout).',
  )
  assert.equal(
    end({ state: 'cancelled', reason: 'message_deleted' }),
    'Cancelled at "Billing" without an attempt: the message was deleted.',
  )
  assert.equal(
    end({ state: 'cancelled', reason: 'destination_deleted', destinationId: 'gone' }),
    'Cancelled at gone (deleted) without an attempt: the destination was deleted.',
  )
})

test('an end is never told before the attempt that led to it, whatever the clocks said', () => {
  const slow = request({ startedAtMs: NOW + 1_000, totalMs: 500 })
  const story = timelineOf(trail(), [delivery({ state: 'delivered', attempts: 1, atMs: NOW + 900, history: [slow] })], ABOUT)
  assert.deepEqual(
    story.map(({ what }) => what),
    ['received', 'owed', 'attempted', 'delivered'],
  )
})

test('what waits says for what, and stands last', () => {
  const waits = (about: Partial<DeliveryDetail>, present: Partial<TimelineContext> = {}): string | undefined =>
    told([delivery(about), delivery({ id: '9-0', state: 'delivered', attempts: 1, atMs: NOW + 99_000 })], present).at(-1)
  assert.equal(waits({}), 'Waits for attempt 1 at "Billing", which is due at once.')
  assert.equal(waits({ attempts: 2, atMs: NOW + 60_000 }), 'Waits for attempt 3 at "Billing", due at 2026-11-14T09:01:00.000Z.')
  assert.equal(
    waits({}, { breaker: () => 'open' }),
    'Waits for attempt 1 at "Billing", which fails again and again and is probed with one request at a time.',
  )
  assert.equal(waits({ destinationId: 'off' }), 'Held: "Off" is disabled. It is sent when the destination is enabled again.')
  assert.equal(waits({ destinationId: 'still' }), 'Held: "Still" is paused. It is sent when the destination is resumed.')
  assert.equal(waits({ destinationId: 'gone' }), 'Still counted as pending at gone (deleted): it is being cancelled.')
})

test('a purged message says so, that what is owed of it still counts, and nothing that leads to its user', () => {
  const story = timelineOf(trail({}, { items: [null] }), [delivery()], ABOUT)
  assert.deepEqual(
    story.map(({ at, what }) => [at, what]),
    [
      ['2026-11-14T09:00:00.000Z', 'received'],
      ['2026-11-14T09:00:00.000Z', 'owed'],
      [null, 'deleted'],
      [null, 'waiting'],
    ],
  )
  assert.equal(
    story.at(-1)?.sentence,
    'Still counted as pending at "Billing", though the message was deleted: it is cancelled when its turn comes.',
  )
  assert.doesNotMatch(JSON.stringify(story), /192\.0\.2\.7|Order/)
})

test('a replay is told as one, with what it repeats and by which job', () => {
  const again = delivery({ id: '9-0', replay: true, replayOf: '8-0', owedAtMs: NOW + 1_000 })
  assert.equal(told([again])[0], 'Owed to "Billing" once more: a replay of the delivery 8-0.')
  assert.equal(told([{ ...again, replayJobId: 'rpl_1' }])[0], 'Owed to "Billing" once more: a replay of the delivery 8-0 by the job rpl_1.')
})

test('duplicates are counted', () => {
  const story = timelineOf(trail({ repeats: { count: 3, lastAtMs: NOW + 5 } }), [], ABOUT)
  assert.deepEqual(
    [story[1]?.at, story[1]?.sentence],
    ['2026-11-14T09:00:00.005Z', 'Came again for the last time of 3. Each time it was dropped as a duplicate.'],
  )
})

test('what others chose cannot write on a terminal', () => {
  for (const text of ['\u001b[31m', '\u009b31m', '\r\n', '\u007f', '\u202e', '\u2028', '\u200b', '\ud800', '"\\']) {
    assert.match(quoted(text), /^"[\x20-\x7e]*"$/, JSON.stringify(text))
    assert.equal(JSON.parse(quoted(text)), text)
  }
  assert.equal(quoted('größe 🎉'), '"größe 🎉"')
  assert.ok(quoted('x'.repeat(10_000)).length < 210)
})
