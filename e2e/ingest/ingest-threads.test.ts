// A service with ingest threads gives the same answers and stores the same messages as one without them. All other requests go through them, too.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Service, startService, track } from '../system/service.ts'

const NO_THREADS = process.platform !== 'linux' && 'threads can share a port only on Linux'

/** Sends bytes and resolves with everything received until the service has closed the connection. */
function exchange(service: Service, bytes: Buffer): Promise<string> {
  const { port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', reject).on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  })
}

/** Removes the parts that differ from one answer to the next, or depend on the write key. */
const comparable = (answer: string): string => answer.replaceAll(/\r\n(?:Date|ETag): [^\r]*/gi, '')

function request(method: string, path: string, headers: Record<string, string>, body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body)
  const all = { Host: 'service.test', ...(method === 'POST' ? { 'Content-Length': String(bytes.length) } : {}), ...headers }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n`), bytes])
}

/** Requests of all kinds, valid and not. The last one of a connection closes it. */
function oddRequests(writeKey: string): Buffer[] {
  const basic = { Authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` }
  const wrong = { Authorization: `Basic ${Buffer.from('nobody:').toString('base64')}` }
  const close = { Connection: 'close' }
  const batch = (id: string): string => JSON.stringify({ batch: [track(id)], sentAt: '2026-11-14T09:00:00.000Z' })
  const heads: Record<string, string>[] = [
    basic,
    wrong,
    {},
    { ...basic, Origin: 'https://shop.test' },
    { ...basic, 'Content-Type': 'text/plain' },
    { ...basic, traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
  ]
  const bodies = (id: string): [more: Record<string, string>, body: string | Buffer][] => [
    [{}, batch(id)],
    [{}, JSON.stringify({ batch: [track(`${id}-a`), { type: 'track' }, 7, null], writeKey })],
    [{}, '{"batch": ['],
    [{}, '[]'],
    [{}, Buffer.from([0xef, 0xbb, 0xbf, ...Buffer.from(batch(`${id}-b`))])],
    [{}, Buffer.from([0x7b, 0xff, 0x7d])],
    [{ 'Content-Encoding': 'gzip' }, gzipSync(batch(`${id}-c`))],
    [{ 'Content-Encoding': 'gzip' }, 'not gzip'],
    [{ 'Content-Encoding': 'br' }, batch(`${id}-d`)],
    [{}, ' '.repeat(600_000)],
    [{}, JSON.stringify({ type: 'track', userId: 'u', event: 'E', messageId: `${id}-e`, timestamp: '2031-01-01T00:00:00.000Z', writeKey })],
  ]
  const paths = [
    '/v1/batch',
    '/v1/track',
    '/v1/t',
    '/v1/import/',
    '//v1/batch',
    '/v1/batch?x=1',
    '/v1/m',
    '/beacon/v1/batch',
    '/v1/nothing',
  ]
  const posts = paths.flatMap((path, at) =>
    heads.flatMap((head, of) =>
      bodies(`m-${at}-${of}`).flatMap(([more, body], nth) =>
        // Every body on the first path, and each of them on some of the others.
        at === 0 || (nth + of) % paths.length === at ? [request('POST', path, { ...head, ...more, ...close }, body)] : [],
      ),
    ),
  )
  const others = [
    request('GET', '/healthz', close),
    request('GET', '/readyz', close),
    request('HEAD', '/healthz', close),
    request('GET', '/nothing', close),
    request('GET', '/%zz', close),
    request('GET', '/v1/batch', close),
    request('PUT', '/v1/batch', { ...close, 'Content-Length': '2' }, '{}'),
    request('OPTIONS', '/v1/batch', { ...close, Origin: 'https://shop.test', 'Access-Control-Request-Headers': 'x-y' }),
    request('GET', `/v1/projects/${writeKey}/settings`, close),
    request('GET', `/v1/pixel/track?data=${Buffer.from(JSON.stringify({ ...track('p-1'), writeKey })).toString('base64')}`, close),
    request('GET', '/api/sources', close),
    request('POST', '/api/sources', { ...close, Authorization: 'Bearer nobody' }, '{}'),
    Buffer.from('GET /healthz HTTP/1.0\r\n\r\n'),
    Buffer.from('POST /v1/batch HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}'),
    Buffer.from('POST /v1/batch HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}'),
    Buffer.from('NONSENSE\r\n\r\n'),
    Buffer.concat([
      request('GET', '/healthz', {}),
      request('POST', '/v1/batch', basic, batch('kept-1')),
      request('GET', '/v1/nothing', {}),
      request('POST', '/v1/track', basic, JSON.stringify(track('kept-2'))),
      request('POST', '/v1/batch', { ...wrong, ...close }, batch('kept-3')),
    ]),
  ]
  return [...posts, ...others]
}

test('the same odd requests get the same answers with and without threads, and the same messages are stored', {
  skip: NO_THREADS,
}, async () => {
  await using plain = await startService({ log: 'error', env: { SWITCHYARD_INGEST_THREADS: '0' } })
  await using threaded = await startService({ log: 'error', env: { SWITCHYARD_INGEST_THREADS: '2' } })
  const [asked, alsoAsked] = [oddRequests(plain.writeKey), oddRequests(threaded.writeKey)]
  for (const [at, bytes] of asked.entries()) {
    const answer = (await exchange(plain, bytes)).replaceAll(plain.writeKey, 'KEY').replaceAll(plain.url, 'URL')
    const other = (await exchange(threaded, alsoAsked[at] as Buffer)).replaceAll(threaded.writeKey, 'KEY').replaceAll(threaded.url, 'URL')
    assert.equal(comparable(other), comparable(answer), bytes.subarray(0, 400).toString('latin1'))
  }
  const stored = async (service: Service): Promise<unknown[]> => {
    const { data } = await service.api<{ data: { messageId: string; type: string; userId: string | null }[] }>('/messages?limit=500')
    return data.map(({ messageId, type, userId }) => [messageId, type, userId].join(' ')).sort((one, other) => (one < other ? -1 : 1))
  }
  const messages = await stored(plain)
  assert.ok(messages.length > 20, String(messages.length))
  assert.deepEqual(await stored(threaded), messages)
})

test('the live view goes through a thread, a new write key works at once, and a stop loses nothing', { skip: NO_THREADS }, async () => {
  await using service = await startService({ log: 'error', env: { SWITCHYARD_INGEST_THREADS: '2' } })
  const live = await fetch(`${service.url}/api/live`, { headers: { authorization: `Bearer ${service.token}` } })
  const reader = (live.body as ReadableStream<Uint8Array>).getReader()
  const { writeKeys } = await service.api<{ writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'new' } })
  const authorization = `Basic ${Buffer.from(`${writeKeys[0]}:`).toString('base64')}`
  // Enough connections to reach every thread with high probability.
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, at) =>
      fetch(`${service.url}/v1/batch`, { method: 'POST', headers: { authorization }, body: JSON.stringify({ batch: [track(`n-${at}`)] }) }),
    ),
  )
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  let seen = ''
  while (!seen.includes('n-0')) {
    const { done, value } = await reader.read()
    assert.ok(!done, 'the live view ended')
    seen += Buffer.from(value).toString()
  }
  const { code } = await service.stop()
  assert.equal(code, 0)
  const next = await service.restart({ env: { SWITCHYARD_INGEST_THREADS: '0' } })
  const { data } = await next.api<{ data: unknown[] }>('/messages?limit=100')
  assert.equal(data.length, 16)
})
