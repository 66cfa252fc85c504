// The tracking API over real connections: paths, keys, limits and responses (docs/reference/http.md, “Tracking”). Reading bodies is
// tested in ingest-bodies.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES, MESSAGE_TYPES, REFUSALS } from '@switchyard/protocol'
import { readStoredBody } from '../store/port/stored-messages.ts'
import { type AcceptResult, StoreUnavailable } from '../store/store.ts'
import { type Answer, assertRefused, BASIC, configuration, deferred, NOW, ROUTING, source, trackingApi } from './fixtures/tracking-api.ts'

const good = { type: 'track', userId: 'u', event: 'e', messageId: 'm' }

function assertSuccess({ status, text, headers }: Answer, origin = '*'): void {
  assert.deepEqual([status, JSON.parse(text)], [200, { success: true }])
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['access-control-allow-origin'], origin)
}

function messageOfBytes(bytes: number, about: object = good): string {
  const empty = JSON.stringify({ ...about, properties: { filler: '' } })
  return empty.replace('"filler":""', `"filler":"${'x'.repeat(bytes - empty.length)}"`)
}

test('a batch is passed to the store unchanged, with its routing', async (t) => {
  const api = await trackingApi(t)
  for (const path of ['/v1/batch', '/v1/import', '/v1/b', '/v1/batch?from=here']) {
    const text = JSON.stringify({
      batch: [good, { ...good, messageId: 'n' }],
      sentAt: '2026-11-14T09:00:00.000Z',
      context: { a: 1 },
      integrations: { B: false },
    })
    assertSuccess(await api.post(path, text))
    const { content, body, messageIds, routing } = api.accepted.pop() ?? assert.fail()
    assert.equal(Buffer.from(body).toString(), text)
    assert.deepEqual([messageIds, routing], [['m', 'n'], ROUTING])
    assert.deepEqual(content, {
      sourceId: '1',
      receivedAtMs: NOW,
      ip: '127.0.0.1',
      browser: false,
      sentAt: '2026-11-14T09:00:00.000Z',
      context: { a: 1 },
      integrations: { B: false },
      trace: null,
      items: [good, { ...good, messageId: 'n' }],
    })
  }
})

test('an empty batch succeeds, and nothing is stored', async (t) => {
  const api = await trackingApi(t)
  assertSuccess(await api.post('/v1/batch', { batch: [] }))
  assert.deepEqual(api.accepted, [])
})

test('a single call takes its type from its path, in the long and the short form', async (t) => {
  const api = await trackingApi(t)
  const call = {
    userId: 'u',
    event: 'e',
    groupId: 'g',
    previousId: 'p',
    type: 'nonsense',
    writeKey: 'key-1',
    sentAt: '2026-11-14T09:00:00.000Z',
  }
  for (const type of MESSAGE_TYPES) {
    for (const path of [`/v1/${type}`, `/v1/${type[0]}`]) {
      assertSuccess(await api.post(path, call, {}))
      const { content, body, messageIds } = api.accepted.pop() ?? assert.fail()
      const { writeKey: _, ...rest } = call
      assert.deepEqual(content.items, [{ ...rest, type, messageId: messageIds[0] }])
      assert.match(messageIds[0] ?? '', /^[0-9a-f-]{36}$/)
      assert.deepEqual(readStoredBody(body, content), content)
    }
  }
})

test("the browser client's metrics are accepted and ignored", async (t) => {
  const api = await trackingApi(t)
  assertSuccess(await api.post('/v1/m', { series: [] }, { 'Content-Type': 'text/plain' }))
  assertSuccess(await api.post('/v1/m', 'no JSON', {}))
  assert.deepEqual([api.accepted, api.rejections], [[], []])
})

test('the write key may be sent as Basic authentication or in the body, with or without a token', async (t) => {
  const api = await trackingApi(t)
  const encoded = (text: string): string => Buffer.from(text).toString('base64')
  const rows: [headers: Record<string, string>, writeKey: string | undefined, sourceId: string][] = [
    [{ Authorization: `Basic ${encoded('key-1:')}` }, undefined, '1'],
    [{ Authorization: `Basic ${encoded('key-1')}` }, undefined, '1'],
    [{ Authorization: `basic ${encoded('second:')}` }, 'key-1', 'two'],
    [{}, 'first', 'two'],
    [{ Authorization: 'Bearer abc.def.ghi' }, 'key-1', '1'],
  ]
  for (const [headers, writeKey, sourceId] of rows) {
    assertSuccess(await api.post('/v1/batch', { batch: [good], writeKey }, headers))
    assert.equal(api.accepted.pop()?.content.sourceId, sourceId)
  }
})

test('a request with an unknown or missing write key is rejected and recorded', async (t) => {
  const api = await trackingApi(t)
  const unknown = { Authorization: `Basic ${Buffer.from('nobody:').toString('base64')}` }
  assertRefused(await api.post('/v1/batch', { batch: [good] }, {}), 401, 'invalid_write_key')
  assertRefused(await api.post('/v1/batch', { batch: [good], writeKey: 7 }, {}), 401, 'invalid_write_key')
  assertRefused(await api.post('/v1/track', { ...good, writeKey: 'nobody' }, {}), 401, 'invalid_write_key')
  assertRefused(await api.post('/v1/batch', { batch: [good] }, unknown), 401, 'invalid_write_key')
  assert.deepEqual(api.accepted, [])
  assert.equal(api.rejections.length, 4)
  const sample = JSON.stringify({ batch: [good] })
  assert.deepEqual(api.rejections[3], { sourceId: null, code: 'invalid_write_key', count: 1, sample, atMs: NOW })
})

test('with lenient keys, an unknown key looks like success and nothing is stored', async (t) => {
  const api = await trackingApi(t, { lenientKeys: true })
  assertSuccess(await api.post('/v1/batch', { batch: [good] }, {}))
  assert.deepEqual([api.accepted.length, api.rejections.length], [0, 1])
})

test('a disabled source is rejected, and one that requires OAuth does not accept a write key alone', async (t) => {
  const api = await trackingApi(t)
  assertRefused(await api.post('/v1/batch', { batch: [good, good], writeKey: 'key-off' }, {}), 403, 'source_disabled')
  assertRefused(await api.post('/v1/batch', { batch: [good], writeKey: 'key-oauth' }, {}), 401, 'oauth_required')
  const bearer = { Authorization: 'Bearer a.b.c' }
  assertRefused(await api.post('/v1/batch', { batch: [good], writeKey: 'key-oauth' }, bearer), 401, 'invalid_access_token')
  assert.deepEqual(
    api.rejections.map(({ sourceId, code, count }) => [sourceId, code, count]),
    [
      ['off', 'source_disabled', 2],
      ['oauth', 'oauth_required', 1],
      ['oauth', 'invalid_access_token', 1],
    ],
  )
})

test('a valid access token may send to the sources of its application', async (t) => {
  const oauth = (token: string): Promise<Set<string> | null> =>
    Promise.resolve(token === 'good' ? new Set(['oauth']) : token === 'other' ? new Set(['1']) : null)
  const api = await trackingApi(t, {}, { oauth, route: () => ROUTING })
  const post = (token: string): Promise<Answer> =>
    api.post('/v1/batch', { batch: [good], writeKey: 'key-oauth' }, { Authorization: `Bearer ${token}` })
  assertSuccess(await post('good'))
  assertRefused(await post('other'), 403, 'source_not_allowed')
  assertRefused(await post('bad'), 401, 'invalid_access_token')
  const challenges = [(await post('other')).headers, (await post('bad')).headers].map((headers) => headers['www-authenticate'])
  assert.deepEqual(challenges, ['Bearer error="insufficient_scope"', 'Bearer error="invalid_token"'])
  assert.equal(api.accepted.length, 1)
})

test('a change of the configuration takes effect with the next request', async (t) => {
  const api = await trackingApi(t)
  assertRefused(await api.post('/v1/batch', { batch: [good], writeKey: 'key-new' }, {}), 401, 'invalid_write_key')
  api.store.configuration = configuration([source('new')])
  assertSuccess(await api.post('/v1/batch', { batch: [good], writeKey: 'key-new' }, {}))
  assertRefused(await api.post('/v1/batch', { batch: [good] }), 401, 'invalid_write_key')
})

test('a JSON body is accepted with any content type', async (t) => {
  const api = await trackingApi(t)
  const types = [
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'nonsense',
    'a/b; charset=utf-16',
    'multipart/form-data',
    ';;;',
  ]
  for (const type of types) assertSuccess(await api.post('/v1/batch', { batch: [good] }, { ...BASIC, 'Content-Type': type }))
  assertSuccess(await api.post('/v1/batch', { batch: [good] }, BASIC))
  assert.equal(api.accepted.length, types.length + 1)
})

test('invalid JSON and an invalid shape have different codes', async (t) => {
  const api = await trackingApi(t)
  assertRefused(await api.post('/v1/batch', '{"batch":'), 400, 'invalid_json')
  assertRefused(await api.post('/v1/batch', ''), 400, 'invalid_json')
  assertRefused(await api.post('/v1/track', Buffer.from([0x22, 0xc3, 0x28, 0x22])), 400, 'invalid_json')
  assertRefused(await api.post('/v1/batch', '[]'), 400, 'invalid_request')
  assertRefused(await api.post('/v1/batch', good), 400, 'invalid_request')
  assertRefused(await api.post('/v1/track', '"x"'), 400, 'invalid_request')
  assert.ok(api.rejections.every(({ sourceId }) => sourceId === '1'))
})

test('a request above a limit is rejected as a whole, and one at the limit is accepted', async (t) => {
  const api = await trackingApi(t)
  assertSuccess(await api.post('/v1/track', messageOfBytes(MAX_MESSAGE_BYTES)))
  assertRefused(await api.post('/v1/track', messageOfBytes(MAX_MESSAGE_BYTES + 1)), 400, 'message_too_large')
  assertSuccess(await api.post('/v1/batch', `{"batch":[${messageOfBytes(MAX_MESSAGE_BYTES)}]}`))
  assertRefused(
    await api.post('/v1/batch', `{"batch":[${JSON.stringify(good)},${messageOfBytes(MAX_MESSAGE_BYTES + 1)}]}`),
    400,
    'message_too_large',
  )
  const filled = (bytes: number): string => {
    const text = JSON.stringify({ batch: [good], filler: '' })
    return text.replace('"filler":""', `"filler":"${'x'.repeat(bytes - text.length)}"`)
  }
  assertSuccess(await api.post('/v1/batch', filled(MAX_BATCH_BYTES)))
  assertRefused(await api.post('/v1/batch', filled(MAX_BATCH_BYTES + 1)), 400, 'batch_too_large')
  assertSuccess(await api.post('/v1/batch', { batch: Array.from({ length: MAX_BATCH_MESSAGES }, () => good) }))
  assertRefused(
    await api.post('/v1/batch', { batch: Array.from({ length: MAX_BATCH_MESSAGES + 1 }, () => good) }),
    400,
    'too_many_messages',
  )
  assert.equal(api.accepted.length, 4)
})

test('each rule for a message has its own code', async (t) => {
  const api = await trackingApi(t)
  const rows: [path: string, message: object, code: keyof typeof REFUSALS][] = [
    ['track', { event: 'e' }, 'no_user_anon_id'],
    ['identify', {}, 'no_user_anon_id'],
    ['track', { userId: 'u' }, 'event_required'],
    ['track', { userId: 'u', event: '' }, 'event_required'],
    ['group', { userId: 'u' }, 'group_id_required'],
    ['alias', { previousId: 'p' }, 'user_id_required'],
    ['alias', { userId: 'u' }, 'previous_id_required'],
    ['track', { userId: 'u', event: 'e', properties: [] }, 'properties_not_object'],
    ['identify', { userId: 'u', traits: 'x' }, 'traits_not_object'],
    ['identify', { userId: 'u', context: 1 }, 'context_not_object'],
    ['identify', { userId: 'u', integrations: [] }, 'integrations_not_object'],
    ['identify', { userId: 7 }, 'id_not_string'],
    ['identify', { userId: 'u', messageId: 'x'.repeat(101) }, 'message_id_invalid'],
    ['identify', { userId: 'u', messageId: 7 }, 'message_id_invalid'],
    ['page', { userId: 'u', name: 1 }, 'name_not_string'],
  ]
  for (const [type, message, code] of rows) {
    const single = await api.post(`/v1/${type}`, message)
    assertRefused(single, 400, code)
    assert.deepEqual([single.body['message'], 'rejected' in single.body], [REFUSALS[code], false])
    const batch = await api.post('/v1/batch', { batch: [{ ...message, type }] })
    assertRefused(batch, 400, code)
    assert.equal((batch.body['rejected'] as { code: string }[])[0]?.code, code)
  }
  assertRefused(await api.post('/v1/batch', { batch: [{ ...good, type: 'nonsense' }] }), 400, 'unknown_type')
  assert.deepEqual(api.accepted, [])
  assert.equal(api.rejections.length, rows.length * 2 + 1)
})

test('the valid messages of a batch are accepted, and the invalid ones are listed', async (t) => {
  const heard: object[] = []
  const api = await trackingApi(
    t,
    {},
    { route: () => ROUTING, onAccepted: (each) => heard.push(each), onRejected: (each) => heard.push(each) },
  )
  const batch = [{ ...good, event: '' }, good, { ...good, messageId: 'n', event: 1 }, 'x', { ...good, messageId: 'o' }]
  const { status, body } = await api.post('/v1/batch', { batch, sentAt: 'then' })
  const { warnings, ...rest } = body
  assert.equal((warnings as unknown[]).length, 1, 'of sentAt')
  assert.deepEqual(
    [status, rest],
    [
      200,
      {
        success: true,
        accepted: 2,
        rejected: [
          { index: 0, messageId: 'm', code: 'event_required', message: REFUSALS.event_required },
          { index: 2, messageId: 'n', code: 'event_required', message: REFUSALS.event_required },
          { index: 3, messageId: null, code: 'invalid_request', message: REFUSALS.invalid_request },
        ],
      },
    ],
  )
  const [{ content, body: stored, messageIds } = assert.fail()] = api.accepted
  assert.deepEqual(
    [content.items, messageIds],
    [
      [good, batch[4]],
      ['m', 'o'],
    ],
  )
  assert.deepEqual(readStoredBody(stored, content), content)
  assert.deepEqual(
    api.rejections.map(({ sourceId, code, count, sample }) => [sourceId, code, count, sample]),
    [
      ['1', 'event_required', 2, JSON.stringify(batch[0])],
      ['1', 'invalid_request', 1, '"x"'],
    ],
  )
  assert.deepEqual(heard, [
    {
      sourceId: '1',
      messages: 2,
      duplicates: 0,
      bytes: stored.length,
      content,
      repeated: [],
      routing: ROUTING,
      quarantined: undefined,
      keyless: undefined,
    },
    { sourceId: '1', code: 'event_required', messages: 2, sample: JSON.stringify(batch[0]) },
    { sourceId: '1', code: 'invalid_request', messages: 1, sample: '"x"' },
  ])
})

test('messages of suppressed users are dropped and counted, without an error', async (t) => {
  const api = await trackingApi(t)
  api.store.configuration = configuration([source('1'), source('two')], { 1: ['gone'] })
  assertSuccess(
    await api.post('/v1/batch', { batch: [good, { ...good, userId: 'gone' }, { ...good, userId: undefined, anonymousId: 'gone' }] }),
  )
  assert.deepEqual(
    api.accepted[0]?.content.items.map((item) => item?.['userId'] as unknown),
    ['u', undefined],
  )
  assertSuccess(await api.post('/v1/track', { ...good, userId: 'gone' }))
  assertSuccess(await api.post('/v1/alias', { userId: 'new', previousId: 'gone' }))
  assertSuccess(await api.post('/v1/track', { ...good, userId: 'gone', writeKey: 'key-two' }, {}))
  assert.deepEqual(api.suppressed, [
    ['1', 1],
    ['1', 1],
    ['1', 1],
  ])
  assert.equal(api.accepted.length, 2)
})

test('a request is acknowledged only after the store has committed', async (t) => {
  const api = await trackingApi(t)
  const { promise, resolve } = deferred<AcceptResult>()
  const handed = deferred()
  api.store.accept = () => {
    handed.resolve()
    return promise
  }
  let answered = false
  const answer = api.post('/v1/batch', { batch: [good] }).finally(() => {
    answered = true
  })
  await handed.promise
  // A later request is answered first, so there was enough time.
  assertSuccess(await api.post('/v1/batch', { batch: [] }))
  assert.equal(answered, false)
  resolve({ segment: 1, duplicates: [0] })
  assertSuccess(await answer)
})

test('an unavailable store causes a 503 with Retry-After, and rejected messages are not counted yet', async (t) => {
  const api = await trackingApi(t)
  api.store.accept = () => Promise.reject(new StoreUnavailable('disk full'))
  const answer = await api.post('/v1/batch', { batch: [good, 'bad'] })
  assertRefused(answer, 503, 'store_unavailable')
  assert.equal(answer.headers['retry-after'], '1')
  assert.deepEqual(api.rejections, [])
})

test('a bug in the store or in routing causes a 500, and the next request is served', async (t) => {
  const api = await trackingApi(t)
  const { accept } = api.store
  api.store.accept = () => Promise.reject(new Error('a bug'))
  assertRefused(await api.post('/v1/batch', { batch: [good] }), 500, 'internal_error')
  api.store.accept = accept
  assertSuccess(await api.post('/v1/batch', { batch: [good] }))
  const buggy = await trackingApi(t, {}, { route: () => assert.fail() })
  assertRefused(await buggy.post('/v1/batch', { batch: [good] }), 500, 'internal_error')
})

test('requests from browsers are detected by Origin or plain text, and sender addresses are read from trusted proxies', async (t) => {
  const api = await trackingApi(t, { trustedProxies: ['127.0.0.0/8'] })
  const rows: [headers: Record<string, string>, browser: boolean, ip: string][] = [
    [{}, false, '127.0.0.1'],
    [{ Origin: 'https://page.example' }, true, '127.0.0.1'],
    [{ 'Content-Type': 'text/plain;charset=UTF-8' }, true, '127.0.0.1'],
    [{ 'Content-Type': 'application/json', 'X-Forwarded-For': '6.6.6.6, 203.0.113.9' }, false, '203.0.113.9'],
  ]
  for (const [headers, browser, ip] of rows) {
    assertSuccess(await api.post('/v1/batch', { batch: [good] }, { ...BASIC, ...headers }), headers['Origin'])
    const { content } = api.accepted.pop() ?? assert.fail()
    assert.deepEqual([content.browser, content.ip], [browser, ip])
  }
})

test("the caller's trace is stored with its messages, and an invalid one is ignored", async (t) => {
  const api = await trackingApi(t)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const send = async (headers: Record<string, string>): Promise<unknown> => {
    assertSuccess(await api.post('/v1/batch', { batch: [good] }, { ...BASIC, ...headers }))
    return api.accepted.pop()?.content.trace
  }
  assert.deepEqual(await send({ traceparent }), { traceparent, tracestate: null })
  assert.deepEqual(await send({ Traceparent: traceparent, TraceState: 'a=1, b=2' }), { traceparent, tracestate: 'a=1,b=2' })
  assert.deepEqual(await send({ traceparent, tracestate: 'nonsense' }), { traceparent, tracestate: null })
  for (const bad of ['nonsense', traceparent.toUpperCase(), traceparent.replace('00-', '01-'), `${traceparent}-x`, '']) {
    assert.equal(await send({ traceparent: bad, tracestate: 'a=1' }), null, bad)
  }
  const body = JSON.stringify({ ...good, writeKey: 'key-1' })
  const twice = `traceparent: ${traceparent}\r\ntraceparent: ${traceparent}\r\n`
  const head = `POST /v1/track HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${twice}Content-Length: ${body.length}\r\n\r\n`
  assert.match(await api.exchange(head, body), /^HTTP\/1.1 200 /)
  assert.equal(api.accepted.pop()?.content.trace, null, 'two headers count as none')
  const data = Buffer.from(body).toString('base64url')
  await api.send('GET', `/v1/pixel/track?data=${data}`, { traceparent })
  assert.deepEqual(api.accepted.pop()?.content.trace, { traceparent, tracestate: null })
})

test('a pixel request always gets an image, and its message is stored before the response', async (t) => {
  const api = await trackingApi(t)
  const pixel = (type: string, data: unknown, encoding: BufferEncoding = 'base64'): Promise<Answer> => {
    const encoded = typeof data === 'string' ? data : Buffer.from(JSON.stringify(data)).toString(encoding)
    return api.send('GET', `/v1/pixel/${type}?data=${encoded}`)
  }
  const assertImage = ({ status, headers, text }: Answer): void => {
    assert.deepEqual([status, headers['content-type'], text.slice(0, 6)], [200, 'image/gif', 'GIF89a'])
    assert.match(String(headers['cache-control']), /no-store/)
  }
  const opened = { userId: 'ü~~>>??', event: 'Email Opened', writeKey: 'key-1' }
  for (const encoding of ['base64', 'base64url'] as const) {
    assertImage(await pixel('track', opened, encoding))
    const { content } = api.accepted.pop() ?? assert.fail()
    assert.deepEqual(
      [content.items[0]?.['userId'], content.items[0]?.['type'], content.browser, content.ip],
      [opened.userId, 'track', true, '127.0.0.1'],
    )
    assert.equal('writeKey' in (content.items[0] ?? {}), false)
  }
  for (const bad of [{ ...opened, writeKey: 'nobody' }, { ...opened, event: '' }, { ...opened, writeKey: 'key-off' }, '%%%', '!!!', ''])
    assertImage(await pixel('track', bad))
  assertImage(await pixel('nonsense', opened))
  assertImage(await api.send('GET', '/v1/pixel/page'))
  const head = await api.send('HEAD', `/v1/pixel/track?data=${Buffer.from(JSON.stringify(opened)).toString('base64')}`)
  assert.deepEqual([head.status, head.text, api.accepted.length], [200, '', 0])
  api.store.accept = () => Promise.reject(new StoreUnavailable('disk full'))
  assertImage(await pixel('track', opened))
  assert.equal(api.rejections.at(-1)?.code, 'store_unavailable')
})

test('keys with a special meaning in JavaScript are kept unchanged', async (t) => {
  const api = await trackingApi(t)
  const text =
    '{"batch":[{"type":"track","userId":"u","event":"e","messageId":"m","properties":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toJSON":1}}]}'
  assertSuccess(await api.post('/v1/batch', text))
  assert.equal(JSON.stringify({ batch: api.accepted[0]?.content.items }), text)
  assert.equal(({} as { polluted?: unknown }).polluted, undefined)
  assertSuccess(await api.post('/v1/track', '{"userId":"u","event":"e","messageId":"m","__proto__":{"userId":"x"}}'))
  assert.match(Buffer.from(api.accepted[1]?.body ?? []).toString(), /"__proto__":\{"userId":"x"\}/)
})
