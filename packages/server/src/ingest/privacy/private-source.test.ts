// A source with privacy rules: nothing that ingest hands to the store, to routing or to listeners contains a value that a rule matches.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { PrivacyRule } from '../../store/store.ts'
import type { AcceptedEvent, RejectedEvent } from '../events.ts'
import { configuration, ROUTING, source, type TrackingApi, trackingApi } from '../fixtures/tracking-api.ts'
import { MAX_HASHED_VALUES } from './privacy.ts'

const RAW = 'alice@example.com'
const RULES: PrivacyRule[] = [
  { path: 'traits.email', action: 'hash' },
  { path: 'context.traits.email', action: 'drop' },
  { path: 'context.ip', action: 'drop' },
  { path: 'properties.email', action: 'mask' },
  { path: 'userId', action: 'hash' },
]
const HEX = /^[0-9a-f]{64}$/
const KEY = { Authorization: `Basic ${Buffer.from('private:').toString('base64')}` }

interface Started extends TrackingApi {
  /** Everything that left ingest, as text. */
  seen(): string
  events: (AcceptedEvent | RejectedEvent)[]
}

async function start(t: TestContext, suppressed: string[] = []): Promise<Started> {
  const events: Started['events'] = []
  const planned: unknown[] = []
  const api = await trackingApi(
    t,
    {},
    {
      onAccepted: (event) => void events.push(event),
      onRejected: (event) => void events.push(event),
      route: (_configuration, _source, content) => {
        planned.push(structuredClone(content))
        return ROUTING
      },
    },
  )
  api.store.configuration = configuration(
    [source('p', { writeKeys: ['private'], privacy: RULES }), source('1', { writeKeys: ['key-1'] })],
    suppressed.length === 0 ? {} : { p: suppressed },
  )
  const bodies = (): string[] => api.accepted.map(({ body }) => Buffer.from(body).toString('utf8'))
  return { ...api, events, seen: () => JSON.stringify([events, planned, api.rejections, api.accepted]) + bodies().join('\n') }
}

function stored({ accepted }: TrackingApi, nth = 0) {
  return JSON.parse(Buffer.from(accepted[nth]?.body ?? []).toString('utf8'))
}

test('the rules change the stored bytes, the routed content and the event alike', async (t) => {
  const api = await start(t)
  const batch = [
    { type: 'identify', userId: RAW, messageId: 'm1', traits: { email: RAW, plan: 'pro' } },
    { type: 'track', userId: RAW, messageId: 'm2', event: 'Signed Up', properties: { email: RAW }, context: { traits: { email: RAW } } },
  ]
  const { status } = await api.post('/v1/batch', { batch, context: { ip: '192.0.2.9', traits: { email: RAW }, app: 'x' } }, KEY)
  assert.equal(status, 200)
  const body = stored(api)
  assert.match(body.batch[0].traits.email, HEX)
  assert.equal(body.batch[0].traits.plan, 'pro')
  assert.match(body.batch[0].userId, HEX)
  assert.equal(body.batch[1].userId, body.batch[0].userId)
  assert.equal(body.batch[1].properties.email, 'a***************m')
  assert.deepEqual(body.batch[1].context, { traits: {} })
  assert.deepEqual(body.context, { traits: {}, app: 'x' })
  assert.deepEqual(api.accepted[0]?.content.items, body.batch)
  assert.deepEqual(api.accepted[0]?.content.context, body.context)
  assert.equal(api.accepted[0]?.content.ip, null)
  assert.ok(!api.seen().includes(RAW))
})

test('values in keys that occur twice, and in fields that are not stored, are gone too', async (t) => {
  const api = await start(t)
  const text = `{"traits":{"email":"${RAW}"},"batch":[{"type":"identify","userId":"u","messageId":"m","traits":{"email":"${RAW}"},"traits":{"plan":"pro"}}]}`
  assert.equal((await api.post('/v1/batch', text, KEY)).status, 200)
  assert.ok(!api.seen().includes(RAW))
})

test('single calls, images and beacons', async (t) => {
  const api = await start(t)
  const call = { userId: 'u', traits: { email: RAW }, writeKey: 'private' }
  assert.equal((await api.post('/v1/identify', call, {})).status, 200)
  await api.send('GET', `/v1/pixel/identify?data=${encodeURIComponent(Buffer.from(JSON.stringify(call)).toString('base64'))}`)
  await api.post('/beacon/v1/batch?writeKey=private', { batch: [{ ...call, type: 'identify' }] }, {})
  assert.equal(api.accepted.length, 3)
  for (let nth = 0; nth < 3; nth++) assert.match(stored(api, nth).batch[0].traits.email, HEX)
  assert.ok(!api.seen().includes(RAW))
})

test('a source without rules stores the bytes as they were received', async (t) => {
  const api = await start(t)
  const text = `{ "batch": [{"type":"identify","userId":"u","messageId":"m","traits":{"email":"${RAW}"}}] }`
  assert.equal((await api.post('/v1/batch', text)).status, 200)
  assert.equal(Buffer.from(api.accepted[0]?.body ?? []).toString('utf8'), text)
})

test('samples of rejected messages contain only the type and the messageId', async (t) => {
  const api = await start(t)
  const batch = [
    { type: 'track', userId: 'u', messageId: 'm1', properties: { email: RAW } },
    { type: 'identify', userId: 'u', messageId: 'm2', traits: RAW },
    { type: RAW, userId: 'u', email: RAW },
    RAW,
  ]
  const { status, body } = await api.post('/v1/batch', { batch }, KEY)
  assert.equal(status, 400)
  assert.ok(!JSON.stringify(body).includes(RAW))
  assert.deepEqual(
    api.rejections.map(({ code, sample }) => [code, sample]),
    [
      ['event_required', '{"type":"track","messageId":"m1"}'],
      ['traits_not_object', '{"type":"identify","messageId":"m2"}'],
      ['unknown_type', '{}'],
      ['invalid_request', '{}'],
    ],
  )
  assert.ok(!api.seen().includes(RAW))
})

const wholeRequests: [title: string, body: string | object, headers: Record<string, string>, code: string][] = [
  ['a body that is not JSON', `{"traits":{"email":"${RAW}"`, KEY, 'invalid_json'],
  ['a body that is not JSON and contains the write key', `{"writeKey":"private","traits":{"email":"${RAW}"`, {}, 'invalid_json'],
  ['a batch that is not an array', { batch: RAW }, KEY, 'invalid_request'],
  ['a message that is too large', { batch: [{ type: 'track', email: RAW.padEnd(40_000, 'x') }] }, KEY, 'message_too_large'],
  ['an unknown write key in the header', { batch: [{ email: RAW }] }, { Authorization: `Basic ${btoa('privat:')}` }, 'invalid_write_key'],
  ['an unknown write key in the body', { writeKey: 'privat', batch: [{ email: RAW }] }, {}, 'invalid_write_key'],
]
for (const [title, body, headers, code] of wholeRequests) {
  test(`no sample is kept of ${title}`, async (t) => {
    const api = await start(t)
    await api.post('/v1/batch', body, headers)
    assert.deepEqual(
      api.rejections.map((rejection) => [rejection.code, rejection.sample]),
      [[code, '']],
    )
    assert.ok(!api.seen().includes(RAW))
  })
}

test('samples of other sources, and of unknown write keys where no source has rules, are kept', async (t) => {
  const api = await start(t)
  await api.post('/v1/batch', '{"batch":')
  assert.equal(api.rejections[0]?.sample, '{"batch":')
  api.store.configuration = configuration([source('1')])
  await api.post('/v1/batch', '{"batch":[1]}', { Authorization: `Basic ${btoa('unknown:')}` })
  assert.equal(api.rejections[1]?.sample, '{"batch":[1]}')
})

test('a disabled source with rules keeps no sample either', async (t) => {
  const api = await start(t)
  api.store.configuration = configuration([source('p', { writeKeys: ['private'], privacy: RULES, enabled: false })])
  await api.post('/v1/batch', { batch: [{ type: 'identify', userId: 'u', traits: { email: RAW } }] }, KEY)
  assert.deepEqual(
    api.rejections.map(({ code, sample }) => [code, sample]),
    [['source_disabled', '']],
  )
})

test('a suppressed user is recognised by the id as sent and by its hash', async (t) => {
  const first = await start(t)
  const batch = [{ type: 'identify', userId: RAW, messageId: 'm' }]
  await first.post('/v1/batch', { batch }, KEY)
  const hash = stored(first).batch[0].userId
  for (const userId of [RAW, hash]) {
    const api = await start(t, [userId])
    await api.post('/v1/batch', { batch }, KEY)
    assert.deepEqual([api.accepted.length, api.suppressed], [0, [['p', 1]]])
  }
})

test('a request with too many values to hash is rejected as a whole', async (t) => {
  const api = await start(t)
  const rules: PrivacyRule[] = [{ path: 'properties.list.*', action: 'hash' }]
  api.store.configuration = configuration([source('p', { writeKeys: ['private'], privacy: rules })])
  const list = Array.from({ length: 12_000 }, () => 1)
  const message = { type: 'track', userId: 'u', event: 'e', properties: { list } }
  assert.equal((await api.post('/v1/batch', { batch: [message] }, KEY)).status, 200)
  const { status, body } = await api.post('/v1/batch', { batch: [message, message] }, KEY)
  assert.deepEqual([status, body['code'], api.accepted.length], [400, 'invalid_request', 1])
  assert.match(String(body['message']), /more than 20000 values/)
})

test('a request with as many values as may be hashed is accepted, and the address of its sender is hashed too', async (t) => {
  const api = await start(t)
  const privacy: PrivacyRule[] = [
    { path: 'properties.list.*', action: 'hash' },
    { path: 'context.ip', action: 'hash' },
  ]
  api.store.configuration = configuration([source('p', { writeKeys: ['private'], privacy })])
  const list = Array.from({ length: 2_000 }, () => 1)
  const batch = Array.from({ length: MAX_HASHED_VALUES / list.length }, () => ({
    type: 'track',
    userId: 'u',
    event: 'e',
    properties: { list },
  }))
  assert.equal((await api.post('/v1/batch', { batch }, KEY)).status, 200)
  assert.match(api.accepted[0]?.content.ip ?? '', HEX)
  const more = [...batch, { ...batch[0], properties: { list: [1] } }]
  assert.equal((await api.post('/v1/batch', { batch: more }, KEY)).status, 400)
})
