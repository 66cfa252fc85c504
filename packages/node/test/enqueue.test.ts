// enqueue() and historical imports: which messages arrive at a real server, and which are rejected.

import assert from 'node:assert/strict'
import test from 'node:test'
import { Analytics, type AnalyticsError, type AnalyticsSettings, type RawMessage } from '@switchyard/node'
import { type ReceivedMessage, type ReceivedRequest, startTrackingServer } from './tracking-server.ts'

interface Arrived {
  requests: ReceivedRequest[]
  messages: ReceivedMessage[]
  errors: AnalyticsError[]
  /** The error code passed to the callback of each message, in the order of the calls. */
  codes: (string | undefined)[]
}

/** Enqueues values that JavaScript callers can pass, and returns their outcomes. */
async function enqueue(messages: unknown[], settings: Partial<AnalyticsSettings> = {}): Promise<Arrived> {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, ...settings })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  const codes: (string | undefined)[] = []
  messages.forEach((message, at) => {
    assert.equal(
      analytics.enqueue(message as RawMessage, (error) => {
        codes[at] = error?.code
      }),
      true,
    )
  })
  await analytics.closeAndFlush()
  return { requests: server.requests, messages: server.messages(), errors, codes }
}

const past = { type: 'track', userId: 'u-1', event: 'Old', messageId: 'm-1', timestamp: '2020-02-03T04:05:06.789123+01:00' } as const

test('every field arrives unchanged, known or not, and nothing is added', async () => {
  const message = { ...past, channel: 'server', version: 2, _metadata: { bundled: ['x'] }, properties: { total: 12.5 } }
  const { messages, codes, requests } = await enqueue([message])
  assert.deepEqual([messages, codes], [[message], [undefined]])
  assert.equal(requests[0]?.path, '/v1/batch')
  assert.match(requests[0]?.body.sentAt ?? '', /^\d{4}-/)
})

test('a message of each type is accepted; a missing ID or time is added', async () => {
  const given = [
    { type: 'identify', userId: 'u', traits: { plan: 'pro' } },
    { type: 'track', anonymousId: 'a', event: 'e' },
    { type: 'page', userId: 'u', name: 'Home' },
    { type: 'screen', userId: 'u' },
    { type: 'group', userId: 'u', groupId: 'g' },
    { type: 'alias', userId: 'u', previousId: 'p' },
  ]
  const { messages } = await enqueue(given)
  assert.deepEqual(
    messages.map(({ messageId, timestamp, ...rest }) => [typeof messageId, /^\d{4}-.*Z$/.test(timestamp), rest]),
    given.map((message) => ['string', true, message]),
  )
  assert.equal(new Set(messages.map(({ messageId }) => messageId)).size, 6)
  const { messages: original } = await enqueue([{ ...past, timestamp: undefined, originalTimestamp: '2020-01-01' }])
  assert.equal('timestamp' in (original[0] as object), false, 'it has a time, by another name')
})

test('a field named __proto__ is data: nothing is read through it, and it arrives', async () => {
  const line = `{"type":"track","userId":"u","event":"e","messageId":"m","timestamp":"2020-01-01","__proto__":{"polluted":1},"properties":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}`
  const inheriting = '{"messageId":"m-2","__proto__":{"type":"track","userId":"u","event":"e"}}'
  const { requests, codes } = await enqueue([JSON.parse(line), JSON.parse(inheriting)])
  assert.deepEqual(codes, [undefined, 'unknown_type'])
  assert.ok(requests[0]?.text.includes(line))
  assert.equal(({} as { polluted?: unknown }).polluted, undefined)
})

test('the caller’s message object is not changed', async () => {
  const message = Object.freeze({ type: 'track', userId: 'u', event: 'e', sentAt: '2020-01-01' })
  const { codes } = await enqueue([message], { historical: true })
  assert.deepEqual([codes, Object.keys(message)], [[undefined], ['type', 'userId', 'event', 'sentAt']])
})

test('messages that the service would reject fail in their callback and never throw; the others arrive', async () => {
  let deep: unknown = {}
  for (let level = 0; level < 20_000; level++) deep = { deep }
  const circular: { [field: string]: unknown } = { ...past }
  circular['self'] = circular
  const bad: [message: unknown, code: string][] = [
    [undefined, 'invalid_request'],
    [null, 'invalid_request'],
    ['track', 'invalid_request'],
    [[past], 'invalid_request'],
    [{ ...past, type: 'buy' }, 'unknown_type'],
    [{ ...past, type: '__proto__' }, 'unknown_type'],
    [{ ...past, userId: 7 }, 'id_not_string'],
    [{ ...past, messageId: 7 }, 'message_id_invalid'],
    [{ ...past, userId: null }, 'no_user_anon_id'],
    [{ ...past, event: '' }, 'event_required'],
    [{ ...past, properties: [] }, 'properties_not_object'],
    [{ ...past, extra: 'x'.repeat(40_000) }, 'message_too_large'],
    [{ ...past, extra: deep }, 'not_serializable'],
    [{ ...past, extra: 1n }, 'not_serializable'],
    [circular, 'not_serializable'],
    [{ ...past, toJSON: () => 'other' }, 'not_serializable'],
    [
      Object.defineProperty({ ...past }, 'extra', {
        enumerable: true,
        get() {
          throw new Error('no')
        },
      }),
      'not_serializable',
    ],
  ]
  const { codes, errors, messages } = await enqueue([...bad.map(([message]) => message), past])
  assert.deepEqual(codes, [...bad.map(([, code]) => code), undefined])
  assert.deepEqual(
    errors.map(({ code }) => code),
    bad.map(([, code]) => code),
  )
  assert.deepEqual(messages, [past])
})

test('a historical client sends to /v1/import, without sentAt in requests or messages', async () => {
  const exported = {
    ...past,
    sentAt: '2020-02-03T04:05:07Z',
    originalTimestamp: '2020-02-03T04:05:05Z',
    receivedAt: '2020-02-03T04:05:08Z',
  }
  const { requests, messages } = await enqueue([exported], { historical: true })
  assert.equal(requests[0]?.path, '/v1/import')
  assert.deepEqual(Object.keys(requests[0]?.body ?? {}), ['batch', 'writeKey'])
  const { sentAt: _, ...rest } = exported
  assert.deepEqual(messages, [rest])
  assert.deepEqual((await enqueue([exported])).messages, [exported], 'another client leaves it where it is')
})

test('a historical client rejects an invalid timestamp; another client replaces it by the current time', async () => {
  const dated = (timestamp: unknown): object => ({ ...past, timestamp })
  const messages = ['yesterday', '', true, {}, Number.NaN, new Date(Number.NaN)].map(dated)
  const historical = await enqueue([...messages, past], { historical: true })
  assert.deepEqual(historical.codes, [...messages.map(() => 'timestamp_invalid'), undefined])
  assert.equal(historical.messages.length, 1)
  const { codes, errors, messages: arrived } = await enqueue(messages)
  assert.ok(codes.every((code) => code === undefined))
  assert.ok(errors.length === messages.length && errors.every(({ code }) => code === 'timestamp_invalid'))
  for (const { timestamp } of arrived) assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000)
})

test('the six calls of a historical client behave the same', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, historical: true })
  const codes: (string | undefined)[] = []
  analytics.on('error', ({ code }) => codes.push(code))
  analytics.track({ userId: 'u', event: 'Old', timestamp: '2020-01-02' })
  analytics.track({ userId: 'u', event: 'Badly dated', timestamp: 'yesterday' })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 1, pending: 0 })
  assert.deepEqual(codes, ['timestamp_invalid'])
  assert.equal(server.messages()[0]?.timestamp, '2020-01-02T00:00:00.000Z')
  assert.equal(server.requests[0]?.body.sentAt, undefined)
})

test('listeners and plugins see an enqueued message like any other, with a context and a Date', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, historical: true })
  const heard: unknown[] = []
  analytics.on('track', ({ event }) => heard.push(event.messageId))
  await analytics.register({
    name: 'marks',
    type: 'enrichment',
    isLoaded: () => true,
    load: async () => {},
    track(ctx) {
      ctx.event.context['year'] = (ctx.event.timestamp as Date).getUTCFullYear()
      return ctx
    },
  })
  assert.equal(analytics.enqueue({ ...past, channel: 'kept' }), true)
  await analytics.closeAndFlush()
  assert.deepEqual(heard, ['m-1'])
  assert.deepEqual(server.messages(), [{ ...past, timestamp: '2020-02-03T03:05:06.789Z', channel: 'kept', context: { year: 2020 } }])
})

test('enqueue returns false above the high-water mark, and is rejected after close', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, highWaterMarkBytes: 1_000 })
  let waits = 0
  for (let at = 0; at < 100; at++) {
    if (analytics.enqueue({ ...past, messageId: `m-${at}` })) continue
    waits++
    await new Promise((resolve) => analytics.once('drained', () => resolve(undefined)))
  }
  assert.ok(waits > 5, `waited ${waits} times`)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 100, failed: 0, pending: 0 })
  const code = await new Promise((resolve) => analytics.enqueue(past, (error) => resolve(error?.code)))
  assert.equal(code, 'call_after_close')
})

test('a disabled client checks what is enqueued and sends nothing', async () => {
  const { codes, requests } = await enqueue([past, { ...past, type: 'buy' }], { disable: true })
  assert.deepEqual([codes, requests.length], [[undefined, 'unknown_type'], 0])
})

test('types: known fields are checked, others are not', () => {
  const analytics = new Analytics({ writeKey: 'wk', disable: true })
  analytics.enqueue({ type: 'track', userId: 'u', event: 'e', channel: 'server' })
  // @ts-expect-error -- no such type
  analytics.enqueue({ type: 'buy', userId: 'u' }, () => {})
  // @ts-expect-error -- a track has an event
  analytics.enqueue({ type: 'track', userId: 'u' }, () => {})
})
