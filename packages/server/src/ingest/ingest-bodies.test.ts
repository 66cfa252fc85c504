// How request bodies are read: slow, compressed, incomplete, too large, and pipelined ones. Over real connections.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { MAX_BATCH_BYTES, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import type { AcceptResult } from '../store/store.ts'
import { BASIC, deferred, openRequest, THREADS, trackingApi } from './fixtures/tracking-api.ts'

const good = { type: 'track', userId: 'u', event: 'e', messageId: 'm' }
const text = JSON.stringify({ batch: [good] })
const AUTHORIZATION = `Authorization: ${BASIC.Authorization}\r\n`
const GZIP = { ...BASIC, 'Content-Encoding': 'gzip' }

function rawRequest(body: string, headers = ''): string {
  return `POST /v1/batch HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

test('a body in many chunks is assembled', async (t) => {
  const api = await trackingApi(t)
  const body = JSON.stringify({
    batch: Array.from({ length: 300 }, (_, index) => ({ ...good, messageId: `é${index}`, properties: { filler: 'ü'.repeat(200) } })),
  })
  const { request, answer } = openRequest(api, '/v1/batch', BASIC)
  const bytes = Buffer.from(body)
  for (let at = 0; at < bytes.length; at += 9_999) request.write(bytes.subarray(at, at + 9_999))
  request.end()
  assert.equal((await answer).status, 200)
  assert.equal(Buffer.from(api.accepted[0]?.body ?? []).toString(), body)
})

test('a gzip body is decompressed and stored decompressed', async (t) => {
  const api = await trackingApi(t)
  for (const encoding of ['gzip', 'x-gzip', 'GZIP']) {
    assert.equal((await api.post('/v1/batch', gzipSync(text), { ...BASIC, 'Content-Encoding': encoding })).status, 200)
    assert.equal(Buffer.from(api.accepted.pop()?.body ?? []).toString(), text)
  }
  assert.equal((await api.post('/v1/batch', text, { ...BASIC, 'Content-Encoding': 'identity' })).status, 200)
})

test('the limits apply to the decompressed bytes, and decompression stops there', async (t) => {
  const api = await trackingApi(t)
  const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024, ' '), { level: 9 })
  assert.ok(bomb.length < MAX_BATCH_BYTES)
  const before = process.memoryUsage().rss
  assert.equal((await api.post('/v1/batch', bomb, GZIP)).body['code'], 'batch_too_large')
  assert.ok(process.memoryUsage().rss - before < 50 * 1024 * 1024)
  assert.equal((await api.post('/v1/track', gzipSync(Buffer.alloc(MAX_MESSAGE_BYTES + 1, ' ')), GZIP)).body['code'], 'message_too_large')
  const atLimit = text.padEnd(MAX_BATCH_BYTES)
  assert.equal((await api.post('/v1/batch', gzipSync(atLimit), GZIP)).status, 200)
  assert.equal((await api.post('/v1/batch', gzipSync(`${atLimit} `), GZIP)).body['code'], 'batch_too_large')
})

test('invalid gzip and unknown encodings are rejected', async (t) => {
  const api = await trackingApi(t)
  const whole = gzipSync(text)
  for (const broken of [whole.subarray(0, -5), whole.subarray(0, 12), Buffer.from(text), Buffer.alloc(0)]) {
    const answer = await api.post('/v1/batch', broken, GZIP)
    assert.deepEqual([answer.status, answer.body['code']], [400, 'invalid_request'])
    assert.match(String(answer.body['message']), /gzip/)
  }
  for (const encoding of ['br', 'deflate', 'gzip, gzip']) {
    const answer = await api.post('/v1/batch', whole, { ...BASIC, 'Content-Encoding': encoding })
    assert.deepEqual([answer.status, answer.body['code']], [415, 'unsupported_encoding'])
  }
  assert.deepEqual(api.accepted, [])
})

test('a body whose declared length is too large is rejected before it is sent', async (t) => {
  const api = await trackingApi(t)
  const { request, answer } = openRequest(api, '/v1/batch', { ...BASIC, 'Content-Length': String(MAX_BATCH_BYTES + 1) })
  assert.equal((await answer).body['code'], 'batch_too_large')
  request.on('error', () => {}).destroy()
  assert.equal(api.rejections[0]?.sourceId, '1')
})

test('a body without a declared length is rejected when it exceeds the limit', async (t) => {
  const api = await trackingApi(t)
  const { request, answer } = openRequest(api, '/v1/track', BASIC)
  const chunk = Buffer.alloc(16 * 1024, ' ')
  let written = 0
  const write = (): void => {
    written += chunk.length
    request.write(chunk, () => written < 100 * 16 * 1024 && write())
  }
  request.on('error', () => {})
  write()
  assert.equal((await answer).body['code'], 'message_too_large')
  request.destroy()
})

test('the sender of a rejected body gets the response, and its connection can be reused', async (t) => {
  const api = await trackingApi(t)
  const long = rawRequest(' '.repeat(MAX_BATCH_BYTES * 2))
  const answers = await api.exchange(long, rawRequest(text, 'Connection: close\r\n'))
  assert.deepEqual(
    [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map((each) => each[1]),
    ['400', '200'],
  )
})

test('the sender of a rejected body gets the response even if it asked to close the connection', async (t) => {
  const api = await trackingApi(t)
  const body = ' '.repeat(20 * 1024 * 1024)
  assert.match(await api.exchange(rawRequest(body, 'Connection: close\r\n')), /^HTTP\/1\.1 400 [^]*batch_too_large/)
  assert.match(await api.exchange(rawRequest(body, 'Connection: close\r\n').replace('/v1/batch', '/v1/x')), /^HTTP\/1\.1 404 /)
})

test('a body that takes too long gets a 408, and its connection is closed', async (t) => {
  // Long enough that the service answers before Node.js does at 1.5 times the timeout, on a busy machine too.
  const api = await trackingApi(t, { bodyTimeoutMs: 2_000 })
  const [answers, closing] = await Promise.all([
    api.exchange(rawRequest(text).slice(0, -5)),
    api.exchange(rawRequest(text, 'Connection: close\r\n').slice(0, -5)),
  ])
  assert.match(answers, /^HTTP\/1\.1 408 /)
  assert.match(answers, /\r\nConnection: close\r\n/)
  assert.match(answers, /"code":"request_timeout"/)
  assert.match(closing, /^HTTP\/1\.1 408 /)
  assert.deepEqual(api.accepted, [])
  assert.deepEqual(
    api.rejections.map((each) => each.code),
    ['request_timeout', 'request_timeout'],
  )
})

test('a sender that keeps sending after a rejection is disconnected at the deadline', async (t) => {
  // Long enough to send more than is allowed, on a busy machine too.
  const api = await trackingApi(t, { bodyTimeoutMs: 2_000 })
  const socket = connect(api.port, '127.0.0.1')
  const closed = new Promise((resolve) => socket.on('error', () => {}).on('close', resolve))
  socket.write(`POST /v1/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`)
  const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
  const write = (): void => void socket.write(chunk, (error) => error || write())
  write()
  const [head] = (await once(socket, 'data')) as [Buffer]
  assert.match(head.toString(), /^HTTP\/1\.1 400 [^]*batch_too_large/)
  await closed
})

test('nothing is stored for an incomplete request', async (t) => {
  const api = await trackingApi(t)
  const socket = connect(api.port, '127.0.0.1')
  socket.write(rawRequest(text).slice(0, -5))
  await once(socket, 'connect')
  socket.destroy()
  // Valid JSON, but the declared length is longer.
  const other = connect(api.port, '127.0.0.1')
  other.write(rawRequest(`${text}   `).slice(0, -3))
  await once(other, 'connect')
  other.end()
  await once(other.resume(), 'close')
  assert.equal((await api.post('/v1/batch', text)).status, 200)
  assert.deepEqual([api.accepted.length, api.rejections], [1, []])
})

test('a sender that disconnects before the response does not cause an error', async (t) => {
  const api = await trackingApi(t)
  const handed = deferred()
  const stored = deferred<AcceptResult>()
  api.store.accept = () => {
    handed.resolve()
    return stored.promise
  }
  const socket = connect(api.port, '127.0.0.1')
  socket.write(rawRequest(text))
  await handed.promise
  socket.destroy()
  await once(socket, 'close')
  stored.resolve({ segment: 1, duplicates: [] })
  assert.equal((await api.post('/v1/batch', text)).status, 200)
  assert.equal(api.accepted.length, 2)
})

test('bytes beyond the declared length are read as the next request, which is invalid', async (t) => {
  const api = await trackingApi(t)
  const answers = await api.exchange(`${rawRequest(text)}xxxx\r\n\r\n`)
  assert.match(answers, /HTTP\/1\.1 400 Bad Request[^]*"code":"invalid_request"/)
  assert.ok(api.accepted.length <= 1)
})

test('invalid HTTP and headers that are too large are rejected with the usual error shape', async (t) => {
  const api = await trackingApi(t)
  assert.match(
    await api.exchange('nonsense\r\n\r\n'),
    /^HTTP\/1\.1 400 Bad Request\r\n[^]*"error":"invalid_request","code":"invalid_request"/,
  )
  const large = `POST /v1/batch HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`
  assert.match(await api.exchange(large), /^HTTP\/1\.1 431 [^]*"code":"headers_too_large"/)
  const chunked = `POST /v1/batch HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}Transfer-Encoding: chunked\r\n\r\nzz\r\n`
  assert.match(await api.exchange(chunked), /^HTTP\/1\.1 400 /)
  assert.deepEqual(api.accepted, [])
})

test('a client that sends Expect: 100-continue gets a 100', async (t) => {
  const api = await trackingApi(t)
  const { request, answer } = openRequest(api, '/v1/batch', { ...BASIC, Expect: '100-continue', 'Content-Length': String(text.length) })
  await once(request, 'continue')
  request.end(text)
  assert.equal((await answer).status, 200)
})

test('pipelined requests are answered in order', async (t) => {
  const api = await trackingApi(t)
  const first = deferred<AcceptResult>()
  const both = deferred()
  let calls = 0
  api.store.accept = () => {
    calls++
    if (calls === 1) return first.promise
    both.resolve()
    return Promise.resolve({ segment: 2, duplicates: [] })
  }
  // Two messages each: requests of one message would be gathered into one batch.
  const pair = JSON.stringify({ batch: [good, { ...good, messageId: 'n' }] })
  const answers = api.exchange(rawRequest(pair) + rawRequest('{') + rawRequest(pair, 'Connection: close\r\n'))
  await both.promise
  first.resolve({ segment: 1, duplicates: [] })
  assert.deepEqual(
    [...(await answers).matchAll(/HTTP\/1\.1 (\d+)/g)].map((each) => each[1]),
    ['200', '400', '200'],
  )
})

// A thread limits the unanswered requests of a connection, as the service does.
test('a thousand requests on one connection are all stored', { skip: THREADS > 0 }, async (t) => {
  const api = await trackingApi(t)
  const many = Array.from({ length: 999 }, () => rawRequest(text)).join('')
  const answers = await api.exchange(many + rawRequest(text, 'Connection: close\r\n'))
  assert.equal([...answers.matchAll(/HTTP\/1\.1 200/g)].length, 1_000)
  assert.equal(api.accepted.flatMap(({ messageIds }) => messageIds).length, 1_000)
})

test('a body that is not JSON is rejected with what is wrong, and a control token is not taken for a write key', async (t) => {
  const api = await trackingApi(t)
  const said = async (body: string | Buffer, headers: Record<string, string> = BASIC): Promise<unknown> =>
    (await api.post('/v1/batch', body, headers)).body['message']
  assert.equal(await said(''), 'The request body is empty. Send a JSON object.')
  assert.match(String(await said("{'batch': []}")), /not valid JSON: unexpected ' at position 2\. JSON uses double quotes/)
  assert.match(String(await said('{"batch": [],}')), /trailing comma before } at position 14/)
  assert.match(String(await said('{"batch": [')), /ends too early/)
  assert.match(String(await said('userId=u&event=E')), /is a form/)
  assert.match(String(await said(Buffer.from([0x22, 0xe9, 0x22]))), /not valid UTF-8/)
  const token = `sy_${'x'.repeat(43)}`
  const basic = { Authorization: `Basic ${Buffer.from(`${token}:`).toString('base64')}` }
  const bearer = { Authorization: `Bearer ${token}` }
  for (const headers of [basic, bearer]) assert.match(String(await said(text, headers)), /^This is a control token, not a write key/)
  assert.match(String(await said(JSON.stringify({ batch: [good], writeKey: token }), {})), /^This is a control token/)
  assert.match(String(await said(JSON.stringify({ batch: [good], writeKey: 'nobody' }), {})), /^The write key is missing or unknown/)
})
