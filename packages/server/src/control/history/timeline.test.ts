// The sentences of the timeline of a message, as an operator reads them in a terminal or in the dashboard.

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
  failure: () => null,
  expression: () => 'type = "page"\n  and name = "Home\u202e"',
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
    version: 1,
    logs: null,
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
    sourceId: 'src_1',
    messageId: 'm',
    type: 'track',
    event: 'Order Completed',
    userId: 'u-1',
    anonymousId: null,
    segment: 7,
    index: 0,
    state: 'pending',
    reason: null,
    lastReason: null,
    waitingFor: null,
    orderPlace: 'accepted',
    attempts: 0,
    replay: false,
    replayOf: null,
    replayJobId: null,
    replayedBy: null,
    atMs: null,
    firstAttemptAtMs: null,
    content: null,
    history: [],
    owedAtMs: NOW,
    deadLetter: null,
    withheldFrom: null,
    gathered: null,
    ...about,
  }
}

const sentences = (...given: Parameters<typeof timelineOf>): string[] => timelineOf(...given).map(({ sentence }) => sentence)
const deliverySentences = (deliveries: DeliveryDetail[], about: Partial<TimelineContext> = {}): string[] =>
  sentences(trail(), deliveries, { ...ABOUT, ...about }).slice(1)

test('a delivery with a retry has entries from its receipt to its end', () => {
  const failed = request({
    status: 503,
    reason: 'http_503',
    error: 'The receiver answered 503.',
    responseStart: 'busy\u001b[2J',
    totalMs: 30,
  })
  const passed = request({ attempt: 2, startedAtMs: NOW + 5_000 })
  const done = delivery({ state: 'delivered', attempts: 2, atMs: NOW + 5_020, history: [failed, passed] })
  const ofMessage = { destinationId: null, deliveryId: null, reason: null, attemptNumber: null, attemptIndex: null, inBatch: false }
  const ofDelivery = { ...ofMessage, destinationId: 'one', deliveryId: '8-0' }
  assert.deepEqual(timelineOf(trail({ repeats: { count: 1, lastAtMs: NOW + 1_000 } }), [done], ABOUT), [
    {
      at: '2026-11-14T09:00:00.000Z',
      what: 'received',
      sentence: 'Received from 192.0.2.7, for the source "Shop" (src_1).',
      ...ofMessage,
    },
    { at: '2026-11-14T09:00:00.000Z', what: 'owed', sentence: 'Queued for "Billing".', ...ofDelivery },
    {
      at: '2026-11-14T09:00:00.040Z',
      what: 'attempted',
      sentence:
        'Attempt 1 to "Billing": https://hooks.example/in?… (198.51.100.1) failed after 30 ms (http_503). The receiver answered 503. The response began with "busy\\u001b[2J".',
      ...ofDelivery,
      reason: 'http_503',
      attemptNumber: 1,
      attemptIndex: 0,
    },
    {
      at: '2026-11-14T09:00:01.000Z',
      what: 'duplicate',
      sentence: 'Received again and dropped as a duplicate.',
      ...ofMessage,
    },
    {
      at: '2026-11-14T09:00:05.012Z',
      what: 'attempted',
      sentence: 'Attempt 2 to "Billing": https://hooks.example/in?… (198.51.100.1) answered 200 after 12 ms.',
      ...ofDelivery,
      attemptNumber: 2,
      attemptIndex: 1,
    },
    {
      at: '2026-11-14T09:00:05.020Z',
      what: 'delivered',
      sentence: 'Delivered to "Billing" after 2 attempts.',
      ...ofDelivery,
    },
  ])
})

test('an attempt with several messages is marked as a batch', () => {
  const of = (about: Partial<RequestRecord>): string | undefined =>
    deliverySentences([delivery({ state: 'delivered', attempts: 1, atMs: NOW, history: [request(about)] })])[1]
  const rest = 'https://hooks.example/in?… (198.51.100.1) answered 200 after 12 ms.'
  assert.equal(of({}), `Attempt 1 to "Billing": ${rest}`)
  for (const about of [{ indexes: [0, 1] }, { gathered: { lead: 1, parts: null } }])
    assert.equal(of(about), `Attempt 1 to "Billing", in a batch: ${rest}`)
})

test('an attempt of a warehouse names its load, and a delivery that waits says when the next one is', () => {
  const load = { id: 'load_1', tables: [{ table: 'tracks', rows: 2 }], rows: 2, bytes: 900, durationMs: 10 }
  const loaded = request({ url: 'file:///lake/main', address: null, status: null, load })
  assert.equal(
    deliverySentences([delivery({ state: 'delivered', attempts: 1, atMs: NOW, history: [loaded] })])[1],
    'Attempt 1 to "Billing": loaded into file:///lake/main by load_1 (2 rows) after 12 ms.',
  )
  const lake = { name: 'Lake', enabled: true, paused: false, load: { everyMs: 60_000 } }
  const waits = (about: Partial<DeliveryDetail>) => deliverySentences([delivery(about)], { destination: () => lake }).at(-1)
  assert.equal(waits({}), 'Waiting for the next load of "Lake": pending messages are loaded every 60 s, or earlier if there are many.')
  assert.equal(waits({ attempts: 1, atMs: NOW + 60_000 }), 'Waiting for attempt 2 to "Lake", due at 2026-11-14T09:01:00.000Z.')
})

test('the first entry says where the message came from: a browser, a trace, a deleted source', () => {
  const [browser] = sentences(trail({}, { browser: true, trace: TRACE, ip: null }), [], ABOUT)
  assert.equal(browser, 'Received, sent by a browser, in trace 0af7651916cd43dd8448eb211c80319c, for the source "Shop" (src_1).')
  const [gone] = sentences(trail(), [], { ...ABOUT, sourceName: null })
  assert.equal(gone, 'Received from 192.0.2.7, for the source src_1 (deleted).')
})

test('a skipped destination has an entry with the reason, including the rule of a filter', () => {
  const skips: MessageTrail['skips'] = [
    { destinationId: 'one', reason: 'filtered', rule: 'event_denied' },
    { destinationId: 'gone', reason: 'historical' },
  ]
  assert.deepEqual(sentences(trail({ skips }), [], ABOUT).slice(1), [
    'Not sent to "Billing". The destination\'s filter denies the event "Order Completed".',
    'Not sent to gone (deleted). The timestamp of the message is more than 24 hours before it was received, and the destination does not accept historical messages.',
  ])
  const nowhere = timelineOf(trail({ skips: [{ destinationId: null, reason: 'no_destination' }] }), [], ABOUT)[1]
  assert.deepEqual([nowhere?.what, nowhere?.sentence], ['skipped', 'Not sent to any destination. The source has no destination.'])
})

test('a skip by a subscribe expression shows the expression in one line, without characters that a terminal interprets', () => {
  const [, entry] = timelineOf(trail({ skips: [{ destinationId: 'one', reason: 'filtered', rule: 'subscribe' }] }), [], ABOUT)
  const sentence = "The message does not match the destination's subscribe expression"
  assert.equal(entry?.sentence, `Not sent to "Billing". ${sentence}: type = "page" and name = "Home\\u202e"`)
  assert.equal(skipSentence({ reason: 'filtered', rule: 'subscribe' }, ITEM), `${sentence}.`)
  assert.equal(
    skipSentence({ reason: 'filtered', rule: 'subscribe' }, null, `event = "${'a'.repeat(2_000)}"`).length,
    sentence.length + 1_003,
  )
})

test('each rule of a filter has a sentence', () => {
  const of = (rule: 'type_denied' | 'type_not_allowed' | 'event_denied' | 'event_not_allowed', item: JsonObject | null = ITEM): string =>
    skipSentence({ reason: 'filtered', rule }, item)
  assert.equal(of('type_denied'), "The destination's filter denies messages of type track.")
  assert.equal(of('type_not_allowed'), "The destination's filter allows only some types, and track is not one of them.")
  assert.equal(of('event_denied'), 'The destination\'s filter denies the event "Order Completed".')
  assert.equal(of('event_not_allowed'), 'The destination\'s filter allows only some events, and "Order Completed" is not one of them.')
  assert.doesNotMatch(of('event_denied', { ...ITEM, event: `x\u009b31m${'y'.repeat(500)}` }), /\u009b|y{201}/)
  assert.equal(of('event_denied', null), "The destination's filter excludes this type or event.")
  assert.equal(skipSentence({ reason: 'filtered' }, ITEM), "The destination's filter excludes this type or event.")
})

test('each final state has a sentence', () => {
  const end = (about: Partial<DeliveryDetail>): string | undefined => deliverySentences([delivery({ atMs: NOW + 1, ...about })]).at(-1)
  assert.equal(end({ state: 'delivered', attempts: 1 }), 'Delivered to "Billing" on the first attempt.')
  assert.equal(
    end({ state: 'failed', attempts: 1, reason: 'http_400' }),
    'Delivery to "Billing" failed on the first attempt (http_400). It is not retried automatically.',
  )
  assert.equal(
    end({ state: 'expired', attempts: 9, reason: 'timeout' }),
    'Delivery to "Billing" expired after 9 attempts: the retry window ended (timeout).',
  )
  assert.equal(
    end({ state: 'cancelled', reason: 'message_deleted' }),
    'Delivery to "Billing" cancelled without an attempt: the message was deleted.',
  )
  assert.equal(
    end({ state: 'cancelled', reason: 'destination_deleted', destinationId: 'gone' }),
    'Delivery to gone (deleted) cancelled without an attempt: the destination was deleted.',
  )
})

test('a final state never comes before its last attempt, even if clocks differ', () => {
  const slow = request({ startedAtMs: NOW + 1_000, totalMs: 500 })
  const timeline = timelineOf(trail(), [delivery({ state: 'delivered', attempts: 1, atMs: NOW + 900, history: [slow] })], ABOUT)
  assert.deepEqual(
    timeline.map(({ what }) => what),
    ['received', 'owed', 'attempted', 'delivered'],
  )
})

test('a pending delivery says what it is waiting for, and comes last', () => {
  const waits = (about: Partial<DeliveryDetail>, present: Partial<TimelineContext> = {}): string | undefined =>
    deliverySentences([delivery(about), delivery({ id: '9-0', state: 'delivered', attempts: 1, atMs: NOW + 99_000 })], present).at(-1)
  assert.equal(waits({}), 'Waiting for attempt 1 to "Billing", due now.')
  assert.equal(waits({ attempts: 2, atMs: NOW + 60_000 }), 'Waiting for attempt 3 to "Billing", due at 2026-11-14T09:01:00.000Z.')
  assert.equal(
    waits({}, { breaker: () => 'open' }),
    'Waiting for attempt 1 to "Billing". The circuit breaker is open, because recent attempts failed: one probe is sent at a time.',
  )
  assert.match(
    waits({}, { breaker: () => 'open', failure: () => 'The receiver refused the connection.' }) ?? '',
    /"Billing"\. The receiver refused the connection\. The circuit breaker is open, /,
  )
  assert.equal(waits({ destinationId: 'off' }), 'On hold: "Off" is disabled. The message is sent when the destination is enabled again.')
  assert.equal(waits({ destinationId: 'still' }), 'On hold: "Still" is paused. The message is sent when the destination is resumed.')
  assert.equal(waits({ destinationId: 'gone' }), 'Still pending for gone (deleted). The delivery is being cancelled.')
})

test('an entry has the code of its reason, the number of its attempt, and whether it was in a batch', () => {
  const codes = (entries: ReturnType<typeof timelineOf>) =>
    entries.slice(1).map(({ what, reason, attemptNumber }) => [what, reason, attemptNumber])
  const last = (about: Partial<DeliveryDetail>, present: Partial<TimelineContext> = {}) =>
    codes(timelineOf(trail(), [delivery(about)], { ...ABOUT, ...present })).at(-1)
  assert.deepEqual(last({ attempts: 2 }), ['waiting', null, 3])
  assert.deepEqual(last({}, { breaker: () => 'probing' }), ['waiting', 'breaker_open', 1])
  assert.deepEqual(last({ destinationId: 'off' }), ['waiting', 'destination_disabled', 1])
  assert.deepEqual(last({ destinationId: 'still' }), ['waiting', 'destination_paused', 1])
  assert.deepEqual(last({ destinationId: 'gone' }), ['waiting', 'destination_deleted', 1])
  assert.deepEqual(codes(timelineOf(trail({}, { items: [null] }), [delivery()], ABOUT)).at(-1), ['waiting', 'message_deleted', 1])
  assert.deepEqual(last({ state: 'failed', reason: 'http_410', attempts: 1 }), ['failed', 'http_410', null])
  assert.deepEqual(codes(timelineOf(trail({ skips: [{ destinationId: null, reason: 'no_destination' }] }), [], ABOUT)), [
    ['skipped', 'no_destination', null],
  ])
  const batched = delivery({ history: [request({ indexes: [0, 1] })] })
  assert.deepEqual(timelineOf(trail(), [batched], ABOUT).find(({ what }) => what === 'attempted')?.inBatch, true)
})

test('the timeline of a purged message says so, shows pending deliveries, and contains nothing that identifies the user', () => {
  const timeline = timelineOf(trail({}, { items: [null] }), [delivery()], ABOUT)
  assert.deepEqual(
    timeline.map(({ at, what }) => [at, what]),
    [
      ['2026-11-14T09:00:00.000Z', 'received'],
      ['2026-11-14T09:00:00.000Z', 'owed'],
      [null, 'deleted'],
      [null, 'waiting'],
    ],
  )
  assert.equal(
    timeline.at(-1)?.sentence,
    'Still pending for "Billing", although the message was deleted. The delivery will be cancelled when it is due.',
  )
  assert.doesNotMatch(JSON.stringify(timeline), /192\.0\.2\.7|Order/)
})

test('a replay names the delivery that it repeats, and the job', () => {
  const again = delivery({ id: '9-0', replay: true, replayOf: '8-0', owedAtMs: NOW + 1_000 })
  assert.equal(deliverySentences([again])[0], 'Queued for "Billing" again, as a replay of the delivery 8-0.')
  assert.equal(
    deliverySentences([{ ...again, replayJobId: 'rpl_1' }])[0],
    'Queued for "Billing" again, as a replay of the delivery 8-0 by the job rpl_1.',
  )
})

test('the number of duplicates is shown', () => {
  const timeline = timelineOf(trail({ repeats: { count: 3, lastAtMs: NOW + 5 } }), [], ABOUT)
  assert.deepEqual(
    [timeline[1]?.at, timeline[1]?.sentence],
    ['2026-11-14T09:00:00.005Z', 'Received again 3 times, most recently at this time. Each time it was dropped as a duplicate.'],
  )
})

test('text from senders and receivers cannot control a terminal', () => {
  for (const text of ['\u001b[31m', '\u009b31m', '\r\n', '\u007f', '\u202e', '\u2028', '\u200b', '\ud800', '"\\']) {
    assert.match(quoted(text), /^"[\x20-\x7e]*"$/, JSON.stringify(text))
    assert.equal(JSON.parse(quoted(text)), text)
  }
  assert.equal(quoted('größe 🎉'), '"größe 🎉"')
  assert.ok(quoted('x'.repeat(10_000)).length < 210)
})

test('an alert that did not become a dead letter because it is about that destination says so', () => {
  const [, ended] = deliverySentences([delivery({ state: 'failed', reason: 'http_410', attempts: 1, withheldFrom: 'one' })])
  assert.match(ended ?? '', / No dead letter was created for .*: the alert is about this destination, so it is not sent to it\.$/)
})

test('a delivery that became a dead letter names it, and the dead letter names its message', () => {
  const deadLetter = { destinationId: 'one', messageId: 'dead-letter-8-0' }
  const [, ended] = deliverySentences([delivery({ state: 'failed', reason: 'http_410', attempts: 1, deadLetter })])
  assert.match(
    ended ?? '',
    /^Delivery to .* failed on the first attempt \(http_410\)\..* The dead letter dead-letter-8-0 was created for .*\.$/,
  )
  const item = { type: 'dead_letter', reason: 'http_410', destination: { id: 'one', name: 'Orders' }, message: { messageId: 'm-1' } }
  const [created] = sentences(trail({ content: { ...trail().content, items: [item] } }), [], ABOUT)
  assert.equal(created, 'Created as a dead letter of the message "m-1", whose delivery to "Orders" was not successful (http_410).')
})
