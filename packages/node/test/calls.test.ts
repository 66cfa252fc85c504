// The six calls, row by row of the table in packages/node/README.md, as they arrive at a real server.

import assert from 'node:assert/strict'
import test from 'node:test'
import { Analytics, type AnalyticsError } from '@switchyard/node'
import { type ReceivedMessage, startTrackingServer } from './tracking-server.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Makes the calls and returns the messages that arrived, without the fields that every message has. */
async function arrive(call: (analytics: Analytics) => void): Promise<ReceivedMessage[]> {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  call(analytics)
  await analytics.closeAndFlush()
  return server.messages()
}

async function one(call: (analytics: Analytics) => void): Promise<ReceivedMessage> {
  const messages = await arrive(call)
  assert.equal(messages.length, 1)
  return messages[0] as ReceivedMessage
}

/** Returns the codes of all errors of the calls; no message may arrive. */
async function refusals(call: (analytics: Analytics) => void): Promise<(string | undefined)[]> {
  const codes: string[] = []
  const messages = await arrive((analytics) => {
    analytics.on('error', (error) => codes.push(error.code))
    call(analytics)
  })
  assert.deepEqual(messages, [])
  return codes
}

// oxlint-disable-next-line typescript/no-explicit-any -- what JavaScript callers can pass and the compiler forbids
const untyped = (value: unknown): any => value

test('identify sends userId, anonymousId, traits, timestamp, context and integrations', async () => {
  const message = await one((analytics) =>
    analytics.identify({
      userId: 'u-1',
      anonymousId: 'a-1',
      traits: { name: 'Ann', plan: 'pro' },
      timestamp: new Date('2026-01-02T03:04:05.678Z'),
      context: { ip: '203.0.113.7' },
      integrations: { All: false, Webhooks: true },
      messageId: 'm-1',
    }),
  )
  const { context, ...rest } = message
  assert.deepEqual(rest, {
    type: 'identify',
    userId: 'u-1',
    anonymousId: 'a-1',
    traits: { name: 'Ann', plan: 'pro' },
    timestamp: '2026-01-02T03:04:05.678Z',
    integrations: { All: false, Webhooks: true },
    messageId: 'm-1',
  })
  assert.equal((context as { ip: string }).ip, '203.0.113.7')
})

test('track sends event and properties', async () => {
  const message = await one((analytics) =>
    analytics.track({ anonymousId: 'a-1', event: 'Order Completed', properties: { total: 12.5, note: 'é ✓' } }),
  )
  assert.equal(message.type, 'track')
  assert.equal(message['event'], 'Order Completed')
  assert.deepEqual(message['properties'], { total: 12.5, note: 'é ✓' })
  assert.equal('userId' in message, false)
})

test('page sends category, name and properties', async () => {
  const properties = { url: 'https://example.com/p', title: 'P', referrer: 'https://example.com/', path: '/p', extra: 1 }
  const message = await one((analytics) => analytics.page({ userId: 'u-1', category: 'Docs', name: 'Install', properties }))
  assert.equal(message.type, 'page')
  assert.equal(message['category'], 'Docs')
  assert.equal(message['name'], 'Install')
  assert.deepEqual(message['properties'], properties)
})

test('screen sends category, name and properties', async () => {
  const message = await one((analytics) => analytics.screen({ userId: 'u-1', category: 'Home', name: 'Feed', properties: { tab: 2 } }))
  assert.equal(message.type, 'screen')
  assert.equal(message['category'], 'Home')
  assert.equal(message['name'], 'Feed')
  assert.deepEqual(message['properties'], { tab: 2 })
})

test('group sends groupId, traits, context and integrations', async () => {
  const message = await one((analytics) =>
    analytics.group({
      userId: 'u-1',
      groupId: 'g-1',
      traits: { name: 'Initech' },
      context: { locale: 'en-GB' },
      integrations: { Webhooks: false },
    }),
  )
  assert.equal(message.type, 'group')
  assert.equal(message['groupId'], 'g-1')
  assert.deepEqual(message['traits'], { name: 'Initech' })
  assert.equal((message['context'] as { locale: string }).locale, 'en-GB')
  assert.deepEqual(message['integrations'], { Webhooks: false })
})

test('alias sends userId, the new ID, and previousId', async () => {
  const message = await one((analytics) => analytics.alias({ userId: 'u-2', previousId: 'anon-9', integrations: { All: true } }))
  assert.equal(message.type, 'alias')
  assert.equal(message['userId'], 'u-2')
  assert.equal(message['previousId'], 'anon-9')
  assert.deepEqual(message['integrations'], { All: true })
})

for (const id of ['userId', 'anonymousId'] as const) {
  test(`identify, track, page, screen and group are accepted with ${id} alone`, async () => {
    const who = untyped({ [id]: 'x' })
    const messages = await arrive((analytics) => {
      analytics.identify(who)
      analytics.track({ ...who, event: 'e' })
      analytics.page(who)
      analytics.screen(who)
      analytics.group({ ...who, groupId: 'g' })
    })
    assert.deepEqual(
      messages.map((message) => message.type),
      ['identify', 'track', 'page', 'screen', 'group'],
    )
    assert.ok(messages.every((message) => message[id] === 'x'))
  })
}

test('every message gets a unique messageId, and the library as context', async () => {
  const messages = await arrive((analytics) => {
    for (let i = 0; i < 20; i++) analytics.track({ userId: 'u', event: 'e' })
  })
  assert.equal(new Set(messages.map((message) => message.messageId)).size, 20)
  for (const message of messages) {
    assert.match(message.messageId, UUID)
    assert.deepEqual(message['context'], { library: { name: '@switchyard/node', version: new Analytics({ writeKey: 'wk' }).VERSION } })
  }
})

test('a messageId that is set by hand is kept', async () => {
  assert.equal((await one((analytics) => analytics.track({ userId: 'u', event: 'e', messageId: 'mine-1' }))).messageId, 'mine-1')
})

test('without a timestamp the time of the call is sent, not the time of the flush', async () => {
  const before = Date.now()
  let after = 0
  const message = await one((analytics) => {
    analytics.track({ userId: 'u', event: 'e' })
    after = Date.now()
  })
  const at = Date.parse(message.timestamp)
  assert.ok(at >= before && at <= after)
})

test('a past timestamp is sent unchanged', async () => {
  const message = await one((analytics) => analytics.track({ userId: 'u', event: 'e', timestamp: '2019-05-06T07:08:09Z' }))
  assert.equal(message.timestamp, '2019-05-06T07:08:09.000Z')
})

test('an invalid timestamp is replaced by the time of the call and emits an error event: timestamp_invalid', async () => {
  const codes: string[] = []
  const messages = await arrive((analytics) => {
    analytics.on('error', (error) => codes.push(error.code))
    analytics.track({ userId: 'u', event: 'e', timestamp: new Date(Number.NaN) })
    analytics.track({ userId: 'u', event: 'e', timestamp: 'yesterday' })
    analytics.track({ userId: 'u', event: 'e', timestamp: untyped(null) })
  })
  assert.deepEqual(codes, ['timestamp_invalid', 'timestamp_invalid'])
  assert.ok(messages.length === 3 && messages.every((message) => Math.abs(Date.parse(message.timestamp) - Date.now()) < 60_000))
})

test('context given with a call overrides and adds to what the library fills in', async () => {
  const message = await one((analytics) =>
    analytics.track({ userId: 'u', event: 'e', context: { traits: { plan: 'pro' }, library: { name: 'mine', version: '9' } } }),
  )
  assert.deepEqual(message['context'], { traits: { plan: 'pro' }, library: { name: 'mine', version: '9' } })
})

test('the batch is sent as JSON in a POST to host and path, with the write key', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk-1', host: server.url })
  analytics.track({ userId: 'u', event: 'e' })
  await analytics.closeAndFlush()
  const [request] = server.requests
  assert.equal(request?.method, 'POST')
  assert.equal(request?.path, '/v1/batch')
  assert.equal(request?.headers['content-type'], 'application/json')
  assert.equal(request?.headers['authorization'], `Basic ${Buffer.from('wk-1:').toString('base64')}`)
  assert.equal(request?.body.writeKey, 'wk-1')
  assert.match(request?.body.sentAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('the host selects the region, with or without a path or a slash of its own', async () => {
  await using europe = await startTrackingServer()
  for (const host of [europe.url, `${europe.url}/`, `${europe.url}/eu/`]) {
    const analytics = new Analytics({ writeKey: 'wk', host, path: '/v1/import' })
    analytics.track({ userId: 'u', event: 'e' })
    await analytics.closeAndFlush()
  }
  assert.deepEqual(
    europe.requests.map((request) => request.path),
    ['/v1/import', '/v1/import', '/eu/v1/import'],
  )
})

test('a payload with neither userId nor anonymousId is rejected: no_user_anon_id', async () => {
  const codes = await refusals((analytics) => {
    analytics.identify(untyped({}))
    analytics.track(untyped({ event: 'e' }))
    analytics.page(untyped({}))
    analytics.screen(untyped({}))
    analytics.group(untyped({ groupId: 'g' }))
  })
  assert.deepEqual(codes, Array(5).fill('no_user_anon_id'))
})

test('a track without an event name in string form is rejected: event_required', async () => {
  const codes = await refusals((analytics) => {
    analytics.track(untyped({ userId: 'u' }))
    analytics.track(untyped({ userId: 'u', event: '' }))
    analytics.track(untyped({ userId: 'u', event: 7 }))
  })
  assert.deepEqual(codes, Array(3).fill('event_required'))
})

test('a group without groupId and an alias without its IDs are rejected', async () => {
  const codes = await refusals((analytics) => {
    analytics.group(untyped({ userId: 'u' }))
    analytics.alias(untyped({ previousId: 'p' }))
    analytics.alias(untyped({ userId: 'u' }))
  })
  assert.deepEqual(codes, ['group_id_required', 'user_id_required', 'previous_id_required'])
})

test('properties that are not an object in JSON are rejected', async () => {
  const codes = await refusals((analytics) => {
    analytics.track({ userId: 'u', event: 'e', properties: new Date() })
    analytics.track({ userId: 'u', event: 'e', properties: untyped('text') })
    analytics.track({ userId: 'u', event: 'e', properties: untyped(Object('text')) })
    analytics.identify({ userId: 'u', traits: untyped([1]) })
    analytics.identify({ userId: 'u', context: untyped('text') })
    analytics.identify({ userId: 'u', integrations: untyped(true) })
  })
  assert.deepEqual(codes, [
    'properties_not_object',
    'properties_not_object',
    'properties_not_object',
    'traits_not_object',
    'context_not_object',
    'integrations_not_object',
  ])
})

test('a call without an argument, or with a wrong one, is rejected and does not throw', async () => {
  const codes = await refusals((analytics) => {
    untyped(analytics).track()
    untyped(analytics).track(null)
    untyped(analytics).track('Order Completed')
    untyped(analytics).track(42)
  })
  assert.deepEqual(codes, Array(4).fill('no_user_anon_id'))
})

test('circular references, BigInts and throwing getters are reported by an error event and to the callback', async () => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const throwing = Object.defineProperty({}, 'x', {
    enumerable: true,
    get() {
      throw new Error('no')
    },
  })
  let deep: Record<string, unknown> = {}
  for (let i = 0; i < 100_000; i++) deep = { deep }
  const events: AnalyticsError[] = []
  const callbacks: (AnalyticsError | undefined)[] = []
  const messages = await arrive((analytics) => {
    analytics.on('error', (error) => events.push(error))
    for (const properties of [circular, { big: 1n }, throwing, deep]) {
      analytics.track({ userId: 'u', event: 'e', properties }, (error) => callbacks.push(error))
    }
    analytics.track({ userId: 'u', event: 'fine' })
  })
  assert.deepEqual(
    events.map((error) => error.code),
    Array(4).fill('not_serializable'),
  )
  assert.deepEqual(callbacks, events)
  assert.deepEqual(
    messages.map((message) => message['event']),
    ['fine'],
  )
})

test('changing the objects after the call does not change the message', async () => {
  const message = await one((analytics) => {
    const properties = { total: 1, items: ['a'] }
    const context = { ip: '203.0.113.7' }
    analytics.track({ userId: 'u', event: 'e', properties, context })
    properties.total = 2
    properties.items.push('b')
    context.ip = 'changed'
  })
  assert.deepEqual(message['properties'], { total: 1, items: ['a'] })
  assert.equal((message['context'] as { ip: string }).ip, '203.0.113.7')
})

test('unusual but valid content arrives unchanged: __proto__, NUL, lone surrogates, escapes', async () => {
  const properties = JSON.parse(
    '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"nul":"a\\u0000b","lone":"\\ud800","esc":"\\u001b[31m"}',
  ) as Record<string, unknown>
  const message = await one((analytics) => analytics.track({ userId: 'u', event: 'e', properties }))
  assert.deepEqual(JSON.stringify(message['properties']), JSON.stringify(properties))
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
})
