// The local endpoint's answers, over real connections. Its process (arguments, output, signals) is tested beside this.

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES, MESSAGE_TYPES, REFUSALS } from '@switchyard/protocol'
import { createLocalEndpoint } from './local-endpoint/endpoint.ts'
import { collectingEndpoint, deferred } from './testing/collecting-endpoint.ts'

const BASIC = { Authorization: `Basic ${Buffer.from('dev:').toString('base64')}` }
const good = { type: 'track', userId: 'user-1', event: 'Order Completed' }

interface Answer {
  status: number
  body: { [key: string]: unknown }
  headers: Headers
}

async function post(url: string, body: unknown, headers: Record<string, string> = BASIC): Promise<Answer> {
  const raw = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  const response = await fetch(url, { method: 'POST', headers, body: raw as string })
  return { status: response.status, body: (await response.json()) as Answer['body'], headers: response.headers }
}

function assertRefused(answer: { status: number; body: { [key: string]: unknown } }, status: number, code: string): void {
  const { message, ...rest } = answer.body
  assert.deepEqual([answer.status, rest], [status, { success: false, error: code, code }])
  assert.match(String(message), /^\w.* .*\.$/, 'the message is a sentence')
}

/** What a bare connection is answered, until the other side closes it. */
function exchange(port: number, text: string): Promise<{ status: number; body: { [key: string]: unknown } }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.setEncoding('utf8').on('data', (part: string) => {
      answer += part
    })
    socket.on('error', reject).on('close', () => {
      const [head, body] = answer.split('\r\n\r\n')
      resolve({ status: Number(head?.split(' ')[1]), body: JSON.parse(body ?? 'null') })
    })
  })
}

/** A track call whose JSON has this many bytes. */
function messageOfBytes(bytes: number): typeof good & { properties: { filler: string } } {
  const message = { ...good, properties: { filler: '' } }
  message.properties.filler = 'x'.repeat(bytes - JSON.stringify(message).length)
  return message
}

test('a batch of good messages is answered with success and nothing else', async (t) => {
  const { url, messages, writeKeys } = await collectingEndpoint(t)
  for (const path of ['/v1/batch', '/v1/import', '/v1/batch?from=here']) {
    const answer = await post(url + path, { batch: [good, { ...good, type: 'identify' }], sentAt: '2026-11-14T09:00:00.000Z' })
    assert.deepEqual([answer.status, answer.body], [200, { success: true }])
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  }
  assert.equal(messages.length, 6)
  assert.deepEqual(messages[0], good)
  assert.deepEqual([...writeKeys], ['dev'])
})

test('an empty batch is a success', async (t) => {
  const { url } = await collectingEndpoint(t)
  assert.deepEqual((await post(`${url}/v1/batch`, { batch: [] })).body, { success: true })
})

test('a single call takes its type from its path, and leaves its key behind', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const call = { userId: 'u', event: 'e', groupId: 'g', previousId: 'p', type: 'nonsense', writeKey: 'body-key' }
  for (const type of MESSAGE_TYPES) assert.deepEqual((await post(`${url}/v1/${type}`, call, {})).body, { success: true })
  assert.deepEqual(
    messages.map((message) => message.type),
    [...MESSAGE_TYPES],
  )
  assert.ok(messages.every((message) => !('writeKey' in message)))
})

test('the content type is not trusted', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
    await post(`${url}/v1/track`, good, { ...BASIC, 'Content-Type': type })
  assert.equal(messages.length, 2)
})

test('the write key comes by Basic with or without a colon, or in the body', async (t) => {
  const { url, writeKeys } = await collectingEndpoint(t)
  const basic = (user: string): Record<string, string> => ({ Authorization: `Basic ${Buffer.from(user).toString('base64')}` })
  const batch = [good]
  const ways: [body: object, headers: Record<string, string>][] = [
    [{ batch }, basic('with-colon:')],
    [{ batch }, basic('without-colon')],
    [{ batch }, { Authorization: basic('lower-case:')['Authorization']?.replace('Basic', 'basic') ?? '' }],
    [{ batch, writeKey: 'in-body' }, {}],
    [{ batch, writeKey: 'beside-bearer' }, { Authorization: 'Bearer token' }],
    [{ batch, writeKey: 'beside-empty-basic' }, basic(':')],
    [{ batch, writeKey: 'loses' }, basic('wins:')],
  ]
  for (const [body, headers] of ways) assert.equal((await post(`${url}/v1/batch`, body, headers)).status, 200)
  assert.deepEqual([...writeKeys], ['with-colon', 'without-colon', 'lower-case', 'in-body', 'beside-bearer', 'beside-empty-basic', 'wins'])
})

test('no write key is 401, and nothing arrives', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const ways: [body: object, headers: Record<string, string>][] = [
    [{ batch: [good] }, {}],
    [{ batch: [good], writeKey: ' ' }, {}],
    [{ batch: [good], writeKey: 1 }, {}],
    [{ batch: [good] }, { Authorization: 'Bearer token' }],
    [{ batch: [good] }, { Authorization: 'Basic Og==' }],
    [{ batch: [good] }, { Authorization: 'Basic' }],
  ]
  for (const [body, headers] of ways) assertRefused(await post(`${url}/v1/batch`, body, headers), 401, 'invalid_write_key')
  assert.equal(messages.length, 0)
})

test('of a batch with bad messages the good ones are taken, and each bad one is named', async (t) => {
  const { url, messages, rejections } = await collectingEndpoint(t)
  const batch = [{ type: 'track', userId: 'u', messageId: 'm-0' }, good, { type: 'track', event: 'e', messageId: 7 }, 'text', good]
  const { status, body } = await post(`${url}/v1/batch`, { batch })
  const rejected = [
    { index: 0, messageId: 'm-0', code: 'event_required', message: REFUSALS.event_required },
    { index: 2, messageId: null, code: 'message_id_invalid', message: REFUSALS.message_id_invalid },
    { index: 3, messageId: null, code: 'invalid_request', message: REFUSALS.invalid_request },
  ]
  assert.deepEqual([status, body], [200, { success: true, accepted: 2, rejected }])
  assert.equal(messages.length, 2)
  assert.deepEqual(rejections, rejected)
})

test('a batch without a good message is 400, with the code of the first and all by name', async (t) => {
  const { url } = await collectingEndpoint(t)
  const { status, body } = await post(`${url}/v1/batch`, {
    batch: [
      { type: 'track', event: 'e' },
      { type: 'buy', userId: 'u' },
    ],
  })
  const { rejected, ...rest } = body
  assertRefused({ status, body: rest }, 400, 'no_user_anon_id')
  assert.deepEqual(
    (rejected as { index: number; code: string }[]).map(({ index, code }) => [index, code]),
    [
      [0, 'no_user_anon_id'],
      [1, 'unknown_type'],
    ],
  )
})

test('a bad single call is 400 with its own code', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const calls: [path: string, body: object, code: string][] = [
    ['track', { event: 'e' }, 'no_user_anon_id'],
    ['track', { userId: 'u' }, 'event_required'],
    ['track', { userId: 'u', event: 'e', properties: [] }, 'properties_not_object'],
    ['identify', { userId: 'u', traits: 'x' }, 'traits_not_object'],
    ['identify', { userId: 7 }, 'id_not_string'],
    ['identify', { userId: 'u', messageId: 'x'.repeat(101) }, 'message_id_invalid'],
    ['page', { userId: 'u', context: [] }, 'context_not_object'],
    ['group', { userId: 'u' }, 'group_id_required'],
    ['alias', { previousId: 'p' }, 'user_id_required'],
    ['alias', { userId: 'u' }, 'previous_id_required'],
  ]
  for (const [path, body, code] of calls) assertRefused(await post(`${url}/v1/${path}`, body), 400, code)
  assert.equal(messages.length, 0)
})

test('what is not JSON is invalid_json, and JSON of another shape is invalid_request', async (t) => {
  const { url } = await collectingEndpoint(t)
  for (const body of ['', '{"batch":[', 'batch=1', Buffer.from([0x22, 0xff, 0x22])]) {
    assertRefused(await post(`${url}/v1/batch`, body), 400, 'invalid_json')
  }
  for (const body of ['null', '[]', '"text"', '{}', '{"batch":{}}', '{"batch":[],"context":[]}', '{"batch":[],"integrations":7}']) {
    assertRefused(await post(`${url}/v1/batch`, body), 400, 'invalid_request')
  }
  assertRefused(await post(`${url}/v1/track`, '[]'), 400, 'invalid_request')
})

test('a batch’s own context and integrations lie under those of its messages', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const batch = [
    { ...good, context: { locale: 'de' } },
    { ...good, integrations: { All: true } },
  ]
  await post(`${url}/v1/batch`, { batch, context: { locale: 'en', ip: '192.0.2.1' }, integrations: { All: false } })
  assert.deepEqual(
    messages.map(({ context, integrations }) => ({ context, integrations })),
    [
      { context: { locale: 'de', ip: '192.0.2.1' }, integrations: { All: false } },
      { context: { locale: 'en', ip: '192.0.2.1' }, integrations: { All: true } },
    ],
  )
})

test('a call may have 32 KB and not a byte more', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  assert.equal((await post(`${url}/v1/track`, messageOfBytes(MAX_MESSAGE_BYTES))).status, 200)
  assertRefused(await post(`${url}/v1/track`, messageOfBytes(MAX_MESSAGE_BYTES + 1)), 400, 'message_too_large')
  assert.equal((await post(`${url}/v1/batch`, { batch: [good, messageOfBytes(MAX_MESSAGE_BYTES)] })).status, 200)
  assert.equal(messages.length, 3)
  assertRefused(await post(`${url}/v1/batch`, { batch: [good, messageOfBytes(MAX_MESSAGE_BYTES + 1)] }), 400, 'message_too_large')
  assert.equal(messages.length, 3, 'nothing of a refused request is taken')
})

test('a batch may have 500 KB and not a byte more', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const start = `{"batch":[${Array.from({ length: 16 }, () => JSON.stringify(messageOfBytes(31_000))).join(',')}],"sentAt":"`
  const bodyOfBytes = (bytes: number): string => `${start}${'x'.repeat(bytes - start.length - 2)}"}`
  assert.deepEqual((await post(`${url}/v1/batch`, bodyOfBytes(MAX_BATCH_BYTES))).body, { success: true })
  assertRefused(await post(`${url}/v1/batch`, bodyOfBytes(MAX_BATCH_BYTES + 1)), 400, 'batch_too_large')
  assert.equal(messages.length, 16)
})

test('a batch may have 2,500 messages and not one more', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const batch = Array.from({ length: MAX_BATCH_MESSAGES }, () => good)
  assert.deepEqual((await post(`${url}/v1/batch`, { batch })).body, { success: true })
  assertRefused(await post(`${url}/v1/batch`, { batch: [...batch, good] }), 400, 'too_many_messages')
  assert.equal(messages.length, MAX_BATCH_MESSAGES)
})

test('a sender of far too much reads its answer instead of a reset connection', async (t) => {
  const { url } = await collectingEndpoint(t)
  assertRefused(await post(`${url}/v1/batch`, 'x'.repeat(20 * 1024 * 1024)), 400, 'batch_too_large')
  assertRefused(await post(`${url}/v1/track`, 'x'.repeat(20 * 1024 * 1024)), 400, 'message_too_large')
})

test('gzip is inflated, and the limits are those of the inflated bytes', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const gzip = { ...BASIC, 'Content-Encoding': 'gzip' }
  assert.deepEqual((await post(`${url}/v1/batch`, gzipSync(JSON.stringify({ batch: [good] })), gzip)).body, { success: true })
  assert.equal(messages.length, 1)
  assertRefused(await post(`${url}/v1/batch`, gzipSync(Buffer.alloc(64 * 1024 * 1024, ' ')), gzip), 400, 'batch_too_large')
  assertRefused(await post(`${url}/v1/track`, gzipSync(Buffer.alloc(64 * 1024, ' ')), gzip), 400, 'message_too_large')
})

test('inflation stops at the limit', async (t) => {
  const { url } = await collectingEndpoint(t)
  // Damaged behind the limit: whoever inflated it all would call it damaged, not too large.
  const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024, ' '))
  bomb.fill(0xff, bomb.length / 2)
  assertRefused(await post(`${url}/v1/batch`, bomb, { ...BASIC, 'Content-Encoding': 'gzip' }), 400, 'batch_too_large')
  // Inflates to nothing, for ever: only its own size can end it.
  const empty = gzipSync('')
  const endless = Buffer.concat(Array.from({ length: 26_000 }, () => empty))
  assertRefused(await post(`${url}/v1/batch`, endless, { ...BASIC, 'Content-Encoding': 'gzip' }), 400, 'batch_too_large')
})

test('damaged gzip and unknown encodings are refused', async (t) => {
  const { url } = await collectingEndpoint(t)
  const whole = gzipSync(JSON.stringify({ batch: [good] }))
  for (const body of [Buffer.from('not gzip'), whole.subarray(0, -6)]) {
    assertRefused(await post(`${url}/v1/batch`, body, { ...BASIC, 'Content-Encoding': 'gzip' }), 400, 'invalid_request')
  }
  assertRefused(await post(`${url}/v1/batch`, { batch: [good] }, { ...BASIC, 'Content-Encoding': 'br' }), 415, 'unsupported_encoding')
})

test('JSON nested beyond reason is refused, and the endpoint lives', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  const nestedMessage = (depth: number): string => JSON.stringify(good).replace('}', `,"properties":{"a":${nested(depth)}}}`)
  for (const depth of [500, 3_000, 15_000]) assertRefused(await post(`${url}/v1/track`, nestedMessage(depth)), 400, 'invalid_request')
  assert.equal((await post(`${url}/v1/track`, nestedMessage(400))).status, 200)
  const { body } = await post(`${url}/v1/batch`, `{"batch":[${nestedMessage(15_000)},${JSON.stringify(good)}]}`)
  assert.equal(body['accepted'], 1)
  assertRefused(await post(`${url}/v1/batch`, nested(250_000)), 400, 'invalid_request')
  const outside = `{"other":${nested(200_000)},"batch":[${JSON.stringify(good)}]}`
  assert.deepEqual((await post(`${url}/v1/batch`, outside)).body, { success: true })
  assert.equal(messages.length, 3)
})

test('a key named __proto__ is a key', async (t) => {
  const { url, messages } = await collectingEndpoint(t)
  assertRefused(await post(`${url}/v1/track`, '{"event":"e","__proto__":{"userId":"u"}}'), 400, 'no_user_anon_id')
  const message = '{"type":"track","event":"e","userId":"u","properties":{"__proto__":{"admin":true}},"__proto__":{"polluted":true}}'
  await post(`${url}/v1/batch`, `{"batch":[${message}],"context":{"__proto__":{"polluted":true}}}`)
  assert.equal(({} as { polluted?: unknown }).polluted, undefined)
  assert.equal((messages[0] as unknown as { polluted?: unknown }).polluted, undefined)
  assert.match(JSON.stringify(messages[0]), /"properties":\{"__proto__":\{"admin":true\}\}/)
})

test('a body that does not arrive in time is 408', async (t) => {
  const { port } = await collectingEndpoint(t, { bodyTimeoutMs: 100 })
  const head = 'POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n'
  assertRefused(await exchange(port, `${head}{"batch":`), 408, 'request_timeout')
  const gzipHead = head.replace('Content-Length', 'Content-Encoding: gzip\r\nContent-Length')
  assertRefused(await exchange(port, gzipHead), 408, 'request_timeout')
})

test('headers that do not arrive in time are 408, and what is not HTTP is 400', async (t) => {
  const { port } = await collectingEndpoint(t, { bodyTimeoutMs: 100 })
  assertRefused(await exchange(port, 'POST /v1/batch HTTP/1.1\r\nHost: lo'), 408, 'request_timeout')
  assertRefused(await exchange(port, 'hello\r\n\r\n'), 400, 'invalid_request')
  assertRefused(await exchange(port, `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), 431, 'headers_too_large')
})

test('a sender that leaves in the middle of its body harms nobody', async (t) => {
  const { url, messages, rejections } = await collectingEndpoint(t)
  const gzip = { ...BASIC, 'Content-Encoding': 'gzip' }
  const whole = gzipSync(JSON.stringify({ batch: [good] }))
  for (const [headers, part] of [
    [BASIC, '{"batch":'],
    [gzip, whole.subarray(0, 20)],
  ] as const) {
    await new Promise<void>((resolve) => {
      const outgoing = request(`${url}/v1/batch`, { method: 'POST', headers: { ...headers, 'Content-Length': 1_000 } })
      outgoing.on('error', () => {}).on('close', resolve)
      outgoing.write(part, () => setImmediate(() => outgoing.destroy()))
    })
  }
  assert.equal((await post(`${url}/v1/track`, good)).status, 200)
  assert.deepEqual([messages.length, rejections.length], [1, 0])
})

test('unknown paths are 404 and wrong methods 405, in the same shape', async (t) => {
  const { url } = await collectingEndpoint(t)
  for (const path of ['/', '/v1', '/v1/', '/v1/delete', '/v1/constructor', '/v2/batch', '//v1/batch']) {
    assertRefused(await post(url + path, { batch: [good] }), 404, 'not_found')
  }
  for (const [path, allow, method] of [
    ['/v1/batch', 'POST', 'GET'],
    ['/v1/track', 'POST', 'PUT'],
    ['/healthz', 'GET, HEAD', 'DELETE'],
  ] as const) {
    const response = await fetch(url + path, { method })
    assertRefused({ status: response.status, body: (await response.json()) as Answer['body'] }, 405, 'method_not_allowed')
    assert.equal(response.headers.get('allow'), allow)
  }
})

test('it says that it is alive', async (t) => {
  const { url } = await collectingEndpoint(t)
  assert.equal((await fetch(`${url}/healthz`)).status, 200)
  const head = await fetch(`${url}/healthz`, { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('a failure of its own is a 500 in the same shape', async (t) => {
  t.mock.method(console, 'error', () => {})
  const { url } = await collectingEndpoint(t, {
    onMessage() {
      throw new Error('full')
    },
  })
  assertRefused(await post(`${url}/v1/track`, good), 500, 'internal_error')
})

test('closing lets a request under way finish, and a taken port is an error', async () => {
  const { promise: arrived, resolve: arrive } = deferred()
  const { promise: held, resolve: letGo } = deferred()
  const endpoint = await createLocalEndpoint({
    onMessage() {
      arrive()
      return held
    },
  })
  await assert.rejects(createLocalEndpoint({ port: endpoint.port }), { code: 'EADDRINUSE' })
  const answer = post(`${endpoint.url}/v1/track`, good)
  await arrived
  const closing = endpoint.close()
  letGo()
  const { status, headers } = await answer
  assert.deepEqual([status, headers.get('connection')], [200, 'close'])
  await closing
})
