// Requests from browsers on any origin: preflights, cookies (which are ignored), settings that caches may store, beacons and tracking
// pixels, and hostile variants of them. Tests with a real browser are in e2e/compatibility.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_BATCH_BYTES } from '@switchyard/protocol'
import { type Answer, BASIC, configuration, source, type TrackingApi, trackingApi } from './fixtures/tracking-api.ts'

const ORIGIN = 'https://page.example'
const good = { userId: 'u', event: 'e', messageId: 'm' }

interface Settings {
  integrations: { 'Segment.io': { apiKey: string; apiHost: string; protocol: string } }
  metrics: object
}

const settingsOf = ({ body }: Answer): Settings => body as unknown as Settings
const base64 = (value: unknown): string => encodeURIComponent(Buffer.from(JSON.stringify(value)).toString('base64'))

function assertImage({ status, headers, text }: Answer): void {
  assert.deepEqual([status, headers['content-type'], text.slice(0, 6)], [200, 'image/gif', 'GIF89a'])
  assert.equal(headers['cross-origin-resource-policy'], 'cross-origin')
}

test('a page of any origin may send with any headers, and the preflight response may be cached for a day', async (t) => {
  const api = await trackingApi(t)
  const rows: [asked: string | undefined, allowed: string][] = [
    [undefined, 'Authorization, Content-Type, X-Retry-Count, traceparent, tracestate'],
    ['authorization', 'Authorization, Content-Type, X-Retry-Count, traceparent, tracestate, authorization'],
    [
      'anonymousid,authorization,sentat',
      'Authorization, Content-Type, X-Retry-Count, traceparent, tracestate, anonymousid,authorization,sentat',
    ],
    ['no(token)', 'Authorization, Content-Type, X-Retry-Count, traceparent, tracestate'],
    ['x'.repeat(2_001), 'Authorization, Content-Type, X-Retry-Count, traceparent, tracestate'],
  ]
  for (const path of ['/v1/batch', '/v1/t', '/v1/anything', '/v1/projects/key-1/settings', '/beacon/v1/batch']) {
    for (const [asked, allowed] of rows) {
      const { status, headers, text } = await api.send('OPTIONS', path, {
        Origin: ORIGIN,
        'Access-Control-Request-Method': 'POST',
        ...(asked === undefined ? {} : { 'Access-Control-Request-Headers': asked }),
      })
      assert.deepEqual([status, text], [204, ''])
      assert.equal(headers['access-control-allow-headers'], allowed)
      assert.match(String(headers['access-control-allow-methods']), /POST/)
      assert.equal(headers['access-control-max-age'], '86400')
      assert.deepEqual([headers['access-control-allow-origin'], headers['access-control-allow-credentials']], [ORIGIN, 'true'])
    }
  }
})

test('a page may read every response, even if it sent cookies; a client that is not a browser gets no origin headers', async (t) => {
  const api = await trackingApi(t)
  const asks: [status: number, ask: (headers: Record<string, string>) => Promise<Answer>][] = [
    [200, (headers) => api.post('/v1/track', good, { ...BASIC, ...headers })],
    [400, (headers) => api.post('/v1/track', '{', { ...BASIC, ...headers })],
    [401, (headers) => api.post('/v1/track', good, headers)],
    [404, (headers) => api.send('GET', '/v1/nothing', headers)],
    [405, (headers) => api.send('GET', '/v1/track', headers)],
    [200, (headers) => api.post('/v1/m', '{}', headers)],
    [200, (headers) => api.send('GET', '/v1/pixel/track', headers)],
    [404, (headers) => api.send('GET', '/v1/projects/nobody/settings', headers)],
  ]
  for (const [expected, ask] of asks) {
    for (const origin of [ORIGIN, 'null']) {
      const { status, headers } = await ask({ Origin: origin, Cookie: 'session=stolen' })
      const { vary, 'access-control-allow-origin': allowed, 'access-control-allow-credentials': credentials } = headers
      assert.deepEqual([status, allowed, credentials, vary], [expected, origin, 'true', 'Origin'])
      assert.equal(headers['access-control-expose-headers'], 'Retry-After')
    }
    const { headers } = await ask({})
    assert.deepEqual([headers['access-control-allow-origin'], headers['access-control-allow-credentials']], ['*', undefined])
    const odd = await ask({ Origin: 'https://page.example with spaces' })
    assert.equal(odd.headers['access-control-allow-origin'], '*')
  }
})

test('the browser client gets settings that point to this service and load nothing else', async (t) => {
  const api = await trackingApi(t)
  const answer = await api.send('GET', '/v1/projects/second/settings', { Origin: ORIGIN })
  assert.equal(answer.status, 200)
  const { integrations, metrics } = settingsOf(answer)
  assert.deepEqual(Object.keys(integrations), ['Segment.io'], 'a second integration would make the client load code')
  const { apiKey, apiHost, protocol } = integrations['Segment.io']
  assert.deepEqual([apiKey, apiHost, protocol], ['second', `127.0.0.1:${api.port}/v1`, 'http'])
  assert.deepEqual(metrics, { sampleRate: 0 })
  for (const part of ['remotePlugins', 'middlewareSettings', 'enabledMiddleware', 'edgeFunction'])
    assert.equal(Object.keys(answer.body[part] as object).length, 0, part)
  assert.equal(answer.body['legacyVideoPluginsEnabled'], false)
})

test('settings may be cached for five minutes and are then revalidated by their ETag', async (t) => {
  const api = await trackingApi(t)
  const path = '/v1/projects/key-1/settings'
  const first = await api.send('GET', path, { Origin: ORIGIN })
  const tag = String(first.headers['etag'])
  assert.match(tag, /^"[\w-]{27}"$/)
  const shared = (headers: Answer['headers']): unknown[] =>
    ['cache-control', 'access-control-allow-origin', 'vary', 'etag'].map((name) => headers[name])
  assert.deepEqual(shared(first.headers), ['public, max-age=300', '*', 'X-Forwarded-Host, X-Forwarded-Proto', tag])
  for (const known of [tag, '*', `W/${tag}`, `"other", ${tag}`, `${tag},"x"`]) {
    const { status, text, headers } = await api.send('GET', path, { 'If-None-Match': known })
    assert.deepEqual([status, text, ...shared(headers)], [304, '', ...shared(first.headers)], known)
    assert.equal(headers['content-length'], undefined)
  }
  for (const unknown of ['"other"', tag.slice(1, -1), '', '"'.repeat(5_000)])
    assert.equal((await api.send('GET', path, { 'If-None-Match': unknown })).status, 200, unknown)
  const head = await api.send('HEAD', path)
  assert.deepEqual([head.status, head.text, head.headers['etag']], [200, '', tag])
  assert.notEqual((await api.send('GET', '/v1/projects/first/settings')).headers['etag'], tag, 'another key has another tag')
  assert.notEqual((await api.send('GET', path, { Host: 'other.example' })).headers['etag'], tag, 'another host has another tag')
})

test('a removed key has no settings from that moment on, even with a matching ETag', async (t) => {
  const api = await trackingApi(t)
  const path = '/v1/projects/first/settings'
  const tag = String((await api.send('GET', path)).headers['etag'])
  api.store.configuration = configuration([source('two', { writeKeys: ['second'] })])
  const answer = await api.send('GET', path, { 'If-None-Match': tag })
  assert.deepEqual(
    [answer.status, answer.body['code'], answer.body['message']],
    [404, 'not_found', 'No source has this write key. Check it against the write keys in the dashboard.'],
  )
  assert.deepEqual([answer.headers['cache-control'], answer.headers['etag']], ['no-store', undefined])
  assert.equal((await api.send('GET', '/v1/projects/second/settings')).status, 200)
  for (const key of ['__proto__', 'constructor', '%00', '..%2F..', 'x'.repeat(90), '%3Cscript%3E'])
    assert.equal((await api.send('GET', `/v1/projects/${key}/settings`)).status, 404, key)
})

test('a disabled source still has settings: its messages are rejected and counted when they arrive', async (t) => {
  const api = await trackingApi(t)
  for (const key of ['key-off', 'key-oauth']) {
    const answer = await api.send('GET', `/v1/projects/${key}/settings`)
    assert.deepEqual([answer.status, settingsOf(answer).integrations['Segment.io'].apiKey], [200, key])
  }
  assert.equal((await api.post('/v1/track', { ...good, writeKey: 'key-off' }, { Origin: ORIGIN })).body['code'], 'source_disabled')
  assert.deepEqual(
    api.rejections.map(({ sourceId, code }) => [sourceId, code]),
    [['off', 'source_disabled']],
  )
})

test('settings always contain a host, and never an invalid one', async (t) => {
  const api = await trackingApi(t)
  const path = '/v1/projects/key-1/settings'
  for (const host of ['switchyard.example', 'switchyard.example:8443', '[::1]:8080', 'a_b.example'])
    assert.equal(settingsOf(await api.send('GET', path, { Host: host })).integrations['Segment.io'].apiHost, `${host}/v1`)
  for (const host of [
    'evil"><script>',
    'user@evil.example',
    'a/../b',
    'a?b',
    'a:b:c',
    'a b',
    'a:99999',
    '[',
    'é.example',
    'x'.repeat(400),
  ]) {
    const { status, body } = await api.send('GET', path, { Host: host })
    assert.deepEqual([status, body['code'], body['integrations']], [400, 'invalid_request', undefined], host)
  }
  const twice = await api.exchange(`GET ${path} HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\nConnection: close\r\n\r\n`)
  assert.doesNotMatch(twice, /b\.example/)
  const bare = await api.exchange(`GET ${path} HTTP/1.0\r\n\r\n`)
  assert.match(bare, /^HTTP\/1\.1 400 /)
})

test('forwarded host and scheme count only if the proxy is trusted', async (t) => {
  const where = async (api: TrackingApi): Promise<unknown[]> => {
    const headers = { Host: 'inner.example', 'X-Forwarded-Host': 'outer.example', 'X-Forwarded-Proto': 'https' }
    const { apiHost, protocol } = settingsOf(await api.send('GET', '/v1/projects/key-1/settings', headers)).integrations['Segment.io']
    return [apiHost, protocol]
  }
  assert.deepEqual(await where(await trackingApi(t)), ['inner.example/v1', 'http'])
  assert.deepEqual(await where(await trackingApi(t, { trustedProxies: ['127.0.0.1'] })), ['outer.example/v1', 'https'])
})

test("RudderStack's browser client gets a configuration with nothing to load and nothing that is not already in the page", async (t) => {
  const api = await trackingApi(t)
  const off = { enabled: false }
  const config = { statsCollection: { errors: off, metrics: off } }
  const expected = (id: string, writeKey: string, enabled = true): object => ({
    source: { id, name: id, writeKey, enabled, workspaceId: '', config, destinations: [], connections: [] },
  })
  const byHeader = await api.send('GET', '/v1/sourceConfig/?p=npm&writeKey=nobody', BASIC)
  assert.deepEqual([byHeader.status, byHeader.body], [200, expected('1', 'key-1')])
  assert.equal(byHeader.headers['cache-control'], 'no-store')
  assert.deepEqual((await api.send('GET', '/v1/sourceConfig/?writeKey=second')).body, expected('two', 'second'))
  assert.deepEqual((await api.send('GET', '/v1/sourceConfig/?writeKey=key-off')).body, expected('off', 'key-off', false))
  for (const query of ['', '?writeKey=', '?writeKey=nobody', '?writeKey=__proto__', '?writeKey=%'])
    assert.equal((await api.send('GET', `/v1/sourceConfig/${query}`)).body['code'], 'not_found', query)
  assert.equal((await api.post('/v1/sourceConfig/', '{}')).headers['allow'], 'GET, HEAD, OPTIONS')
})

test('a beacon has its key in the query string and a plain-text body, and is otherwise handled like a batch', async (t) => {
  const api = await trackingApi(t)
  const beacon = (key: string, body: unknown): Promise<Answer> =>
    api.post(`/beacon/v1/batch?writeKey=${key}`, body, { 'Content-Type': 'text/plain', Origin: ORIGIN })
  const batch = [{ type: 'track', ...good }]
  assert.equal((await beacon('key-1', { batch })).status, 200)
  assert.deepEqual([api.accepted[0]?.content.sourceId, api.accepted[0]?.content.browser], ['1', true])
  assert.equal((await beacon('nobody', { batch })).body['code'], 'invalid_write_key')
  assert.equal((await beacon('key-off', { batch })).body['code'], 'source_disabled')
  assert.equal(
    (await beacon('key-1', { batch, writeKey: 'nobody' })).body['code'],
    'invalid_write_key',
    'a key in the body takes precedence',
  )
  assert.equal((await beacon('key-1', 'x'.repeat(MAX_BATCH_BYTES + 1))).body['code'], 'batch_too_large')
  assert.equal((await api.post('/v1/batch?writeKey=key-1', { batch }, {})).body['code'], 'invalid_write_key', 'nowhere else')
  assert.equal(api.accepted.length, 1)
})

test('a pixel request with hostile data gets an image, and only valid calls of known sources are stored', async (t) => {
  const api = await trackingApi(t)
  const call = { ...good, writeKey: 'key-1' }
  const bytes = (...values: number[]): string => encodeURIComponent(Buffer.from(values).toString('base64'))
  const hostile = [
    '%',
    '%%%',
    '%E0%A4%A',
    '=',
    '====',
    'AAAA',
    'not%20base64%20at+all!',
    '\\',
    '%00',
    '%0d%0aSet-Cookie:a=b',
    bytes(0xff, 0xfe),
    bytes(0x22, 0xc3, 0x28, 0x22),
    base64(null),
    base64([call]),
    base64('x'),
    base64({ ...call, userId: { toString: 1 } }),
    base64({ ...call, writeKey: ['key-1'] }),
    base64({ ...call, writeKey: '__proto__' }),
    base64({ ...call, properties: 'x' }),
    Buffer.from('{"a":'.repeat(900)).toString('base64url'),
    Buffer.from(`{"writeKey":"key-1","userId":"u","event":"e","properties":${'['.repeat(600)}${']'.repeat(600)}}`).toString('base64url'),
  ]
  for (const data of hostile) assertImage(await api.send('GET', `/v1/pixel/track?data=${data}`))
  for (const type of ['', 'delete', '__proto__', 'constructor', 'TRACK', '%74rack%00'])
    assertImage(await api.send('GET', `/v1/pixel/${type}?data=${base64(call)}`))
  assert.deepEqual(api.accepted, [])
  assert.equal(({} as { polluted?: unknown }).polluted, undefined)
  const polluting = Buffer.from('{"writeKey":"key-1","userId":"u","event":"e","__proto__":{"polluted":1}}').toString('base64url')
  assertImage(await api.send('GET', `/v1/pixel/track?data=${polluting}&data=${base64({})}`))
  assert.deepEqual([api.accepted.length, ({} as { polluted?: unknown }).polluted], [1, undefined])
})

test('a URL that is too long is rejected with the usual error shape, and the next request is served', async (t) => {
  const api = await trackingApi(t)
  const call = { ...good, writeKey: 'key-1' }
  assertImage(await api.send('GET', `/v1/pixel/track?data=${base64({ ...call, properties: { text: 'x'.repeat(10_000) } })}`))
  const { status, body } = await api.send('GET', `/v1/pixel/track?data=${base64({ ...call, properties: { text: 'x'.repeat(16_000) } })}`)
  assert.deepEqual([status, body['code']], [431, 'headers_too_large'])
  assertImage(await api.send('GET', `/v1/pixel/track?data=${base64(call)}`))
  assert.equal(api.accepted.length, 2)
})
