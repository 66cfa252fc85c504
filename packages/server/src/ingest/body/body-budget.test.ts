// How much memory a request may use before its body is complete: requests with an unknown key in the headers get none, and all bodies
// together stay within a limit. Over real connections.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Answer, BASIC, openRequest, type TrackingApi, trackingApi } from '../fixtures/tracking-api.ts'

const good = { type: 'track', userId: 'u', event: 'e', messageId: 'm' }
const small = JSON.stringify({ batch: [good] })
const WRONG = { Authorization: `Basic ${Buffer.from('nobody:').toString('base64')}` }
const LARGE_BYTES = 400_000

/** A request that has been sent almost completely. */
function begin(api: TrackingApi, headers: Record<string, string>, bytes = LARGE_BYTES): { answer: Promise<Answer>; finish: () => void } {
  const text = JSON.stringify({ batch: [good], writeKey: 'key-1' }).padEnd(bytes)
  const { request, answer } = openRequest(api, '/v1/batch', { ...headers, 'Content-Length': String(bytes) })
  request.write(text.slice(0, bytes - 1_000))
  return { answer, finish: () => request.end(text.slice(bytes - 1_000)) }
}

/** Writes to a raw connection and waits for the expected response each time. */
async function dialogue(api: TrackingApi, ...turns: [send: string, expected: RegExp][]): Promise<string> {
  const socket = connect(api.port, '127.0.0.1')
  let text = ''
  let seen = 0
  socket.on('data', (chunk) => (text += String(chunk)))
  for (const [send, expected] of turns) {
    socket.write(send)
    while (!expected.test(text.slice(seen))) await once(socket, 'data')
    seen = text.length
  }
  socket.end()
  await once(socket, 'close')
  return text
}

function head(headers: Record<string, string>): string {
  const lines = Object.entries({ Host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST /v1/batch HTTP/1.1\r\n${lines.join('')}\r\n`
}

test('a request with an unknown Basic key is rejected before the body is sent, and the start of the body is recorded', async (t) => {
  const api = await trackingApi(t)
  for (const path of ['/v1/batch', '/v1/track', '/beacon/v1/batch']) {
    const { request, answer } = openRequest(api, path, { ...WRONG, 'Content-Length': '490000' })
    const { status, body } = await answer
    assert.deepEqual([status, body['code']], [401, 'invalid_write_key'], path)
    request.destroy()
  }
  // Even if the body contains a valid key: the key in the headers takes precedence.
  assert.equal((await api.post('/v1/batch', { batch: [good], writeKey: 'key-1' }, WRONG)).status, 401)
  assert.equal((await api.post('/v1/batch', gzipSync(small), { ...WRONG, 'Content-Encoding': 'gzip' })).status, 401)
  assert.equal((await api.post('/v1/batch', ' '.repeat(1_000_000), WRONG)).status, 401, 'before it is found to be too large')
  const samples = api.rejections.map(({ code, sample }) => [code, sample.trim().slice(0, 9)])
  assert.deepEqual(samples.slice(-3), [
    ['invalid_write_key', '{"batch":'],
    ['invalid_write_key', ''],
    ['invalid_write_key', ''],
  ])
  assert.deepEqual(api.accepted, [])
})

test('a connection can be reused after a request with an unknown key, once its body has arrived', async (t) => {
  const api = await trackingApi(t)
  const body = 'x'.repeat(200_000)
  const text = await dialogue(
    api,
    [head({ ...WRONG, 'Content-Length': String(body.length) }) + body.slice(0, 70_000), /^HTTP\/1\.1 401 [^]*invalid_write_key/],
    [body.slice(70_000) + head({ ...BASIC, 'Content-Length': String(small.length) }) + small, /^HTTP\/1\.1 200 [^]*success/],
  )
  assert.equal(text.match(/HTTP/g)?.length, 2)
  assert.equal(api.accepted.length, 1)
})

test('if the body does not arrive after the rejection, the connection is closed at the deadline', async (t) => {
  const api = await trackingApi(t, { bodyTimeoutMs: 2_000 })
  assert.match(await api.exchange(head({ ...WRONG, 'Content-Length': '1000' })), /^HTTP\/1\.1 401 /)
  assert.equal(api.rejections.length, 1)
})

test('a client that sends Expect: 100-continue gets a 100 unless its key is unknown', async (t) => {
  const api = await trackingApi(t)
  const expecting = { 'Content-Length': String(small.length), Expect: '100-continue' }
  const refused = await api.exchange(head({ ...WRONG, ...expecting }))
  assert.match(refused, /^HTTP\/1\.1 401 [^]*Connection: close/)
  const withKey = JSON.stringify({ batch: [good], writeKey: 'key-1' })
  const rows: [headers: Record<string, string>, body: string][] = [
    [BASIC, small],
    [{}, withKey],
  ]
  for (const [headers, body] of rows) {
    const asked = head({ ...headers, ...expecting, 'Content-Length': String(body.length) })
    const text = await dialogue(api, [asked, /^HTTP\/1\.1 100 Continue\r\n\r\n$/], [body, /^HTTP\/1\.1 200 /])
    assert.doesNotMatch(text, /Connection: close/)
  }
  assert.equal(api.accepted.length, 2)
})

test('with lenient keys, an unknown key gets a success response before the body is sent, and nothing is stored', async (t) => {
  const api = await trackingApi(t, { lenientKeys: true })
  const { request, answer } = openRequest(api, '/v1/batch', { ...WRONG, 'Content-Length': '490000' })
  assert.equal((await answer).status, 200)
  request.destroy()
  const expecting = head({ ...WRONG, 'Content-Length': String(small.length), Expect: '100-continue' })
  await dialogue(api, [expecting, /^HTTP\/1\.1 100 Continue\r\n\r\n[^]*HTTP\/1\.1 200 /], [small, /^/])
  assert.deepEqual(api.accepted, [])
})

test('above the limit of all bodies, the sender of the body that has been arriving the longest is asked to send it again', async (t) => {
  const api = await trackingApi(t, { maxBodiesBytes: 2.5 * LARGE_BYTES })
  const bodies = [begin(api, {}), begin(api, {}), begin(api, {})]
  const first = await Promise.race(bodies.map(async ({ answer }, index) => ({ index, answer: await answer })))
  assert.deepEqual([first.answer.status, first.answer.body['code'], first.answer.headers['retry-after']], [503, 'overloaded', '1'])
  // The other bodies hold almost the whole budget, and ordinary requests are still accepted.
  for (let nth = 0; nth < 20; nth++) assert.equal((await api.post('/v1/batch', small)).status, 200)
  const rest = bodies.filter((_, index) => index !== first.index)
  for (const { finish } of rest) finish()
  assert.deepEqual(await Promise.all(rest.map(async ({ answer }) => (await answer).status)), [200, 200])
  assert.deepEqual(api.rejections, [], 'it will be sent again, so it is not recorded')
  // The whole budget is free again.
  const again = [begin(api, {}), begin(api, {})]
  for (const { finish } of again) finish()
  assert.deepEqual(await Promise.all(again.map(async ({ answer }) => (await answer).status)), [200, 200])
})

test('bodies without a key in the headers are abandoned before those with one', async (t) => {
  const api = await trackingApi(t, { maxBodiesBytes: 2.5 * LARGE_BYTES })
  const known = begin(api, BASIC)
  const unknown = [begin(api, {}), begin(api, { Authorization: 'Bearer x' }), begin(api, {}), begin(api, {})]
  let refused = 0
  await new Promise<void>((resolve) => {
    for (const { answer } of unknown) void answer.then(({ status }) => status === 503 && ++refused === 3 && resolve())
  })
  for (const { finish } of [known, ...unknown]) finish()
  assert.equal((await known.answer).status, 200)
  const statuses = await Promise.all(unknown.map(async ({ answer }) => (await answer).status))
  assert.equal(statuses.filter((status) => status === 503).length, 3, statuses.join())
})

test('slow bodies with a key in the headers do not block a body that contains its key', async (t) => {
  const api = await trackingApi(t, { maxBodiesBytes: 2.5 * LARGE_BYTES })
  const dripping = [begin(api, BASIC), begin(api, BASIC)]
  const sender = begin(api, {}, 0.6 * LARGE_BYTES)
  const first = await Promise.race([sender, ...dripping].map(async ({ answer }, index) => ({ index, status: (await answer).status })))
  assert.equal(first.status, 503)
  assert.notEqual(first.index, 0)
  sender.finish()
  assert.equal((await sender.answer).status, 200)
})

test('a body in tiny chunks counts with the memory that the chunks use', async (t) => {
  const api = await trackingApi(t, { maxBodiesBytes: 1024 * 1024 })
  const pieces = '1\r\n \r\n'.repeat(5_000)
  const answer = await api.exchange(`${head({ 'Transfer-Encoding': 'chunked', Connection: 'close' })}${pieces}0\r\n\r\n`)
  assert.match(answer, /^HTTP\/1\.1 503 [^]*overloaded/)
})

test('incomplete and rejected bodies release their share of the budget', async (t) => {
  const api = await trackingApi(t, { maxBodiesBytes: 1.5 * LARGE_BYTES, bodyTimeoutMs: 200 })
  for (let round = 0; round < 3; round++) {
    assert.equal((await begin(api, {}).answer).status, 408)
    const broken = connect(api.port, '127.0.0.1')
    broken.end(head({ 'Content-Length': String(LARGE_BYTES) }) + ' '.repeat(LARGE_BYTES - 1))
    await once(broken.resume(), 'close')
  }
})

test('gzip bodies count while they wait for decompression, even if they arrived in one piece', async (t) => {
  const api = await trackingApi(t, { maxBodiesBytes: 10_000 })
  const bomb = gzipSync(JSON.stringify({ batch: [], writeKey: 'nobody' }).padEnd(490_000))
  const one = Buffer.concat([Buffer.from(head({ 'Content-Encoding': 'gzip', 'Content-Length': String(bomb.length) })), bomb])
  const last = Buffer.from(head({ ...BASIC, 'Content-Length': String(small.length), Connection: 'close' }) + small)
  const text = await api.exchange(Buffer.concat([...Array.from({ length: 40 }, () => one), last]))
  const statuses = Array.from(text.matchAll(/HTTP\/1\.1 (\d+)/g), ([, status]) => status)
  assert.equal(statuses.pop(), '200')
  assert.equal(statuses.length, 40)
  assert.deepEqual(new Set(statuses), new Set(['401', '503']))
})
