import assert from 'node:assert/strict'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { Exchange } from '../exchange.ts'
import { IngestThreads, type IngestThreadsOptions } from './ingest-threads.ts'

const PROGRAM = new URL('./fixtures/mortal-thread.ts', import.meta.url)

interface Answer {
  status: number | undefined
  connection: string | undefined
  text: string
}

/** Ingest threads with a main thread that keeps what it has received until the test answers. */
async function openThreads(t: TestContext, options: Partial<IngestThreadsOptions> = {}) {
  const keys = { known: ['k'] }
  const lost: Error[] = []
  const received: Exchange[] = []
  let onReceived: (() => void) | null = null
  const server = createServer((request, response) => {
    if (request.url === '/slow') return
    response.end(`${request.method} ${request.url} from ${request.socket.remoteAddress}`)
  })
  const { threads, address } = await IngestThreads.open({
    count: 1,
    host: '127.0.0.1',
    port: 0,
    settings: { bodyTimeoutMs: 10_000, maxBodiesBytes: 1_000_000 },
    trustedProxies: [],
    deciding: {
      receive(exchange) {
        received.push(exchange)
        onReceived?.()
      },
      unread: () => assert.fail('every body is read'),
      writeKeys: () => keys.known,
    },
    onConnection: (connection) => void server.emit('connection', connection),
    onLost: (error) => void lost.push(error),
    program: PROGRAM,
    ...options,
  })
  t.after(() => threads.close(0))
  const send = (method: string, path: string, body = ''): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const given = { host: '127.0.0.1', port: address.port, method, path, agent: false } as const
      httpRequest(given, (response) => void answerOf(response).then(resolve, reject))
        .on('error', reject)
        .end(body)
    })
  const exchange = async (): Promise<Exchange> => {
    if (received.length === 0) await new Promise<void>((resolve) => (onReceived = resolve))
    return received.shift() as Exchange
  }
  return { threads, port: address.port, keys, lost, send, exchange }
}

async function answerOf(response: IncomingMessage): Promise<Answer> {
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, connection: response.headers.connection, text }
}

test('a thread that ends is reported and replaced, and its connections are closed', async (t) => {
  const lost: Error[] = []
  const { threads, keys, send, exchange } = await openThreads(t, {
    onLost(error) {
      lost.push(error)
      keys.known = ['k']
      threads.updateKeys()
    },
  })
  const unanswered = send('POST', '/v1/batch', '{}')
  const abandoned = await exchange()
  keys.known = ['die']
  threads.updateKeys()
  await assert.rejects(unanswered, /socket hang up|ECONNRESET/)
  // What the thread has passed on is decided all the same. There is nobody to answer.
  abandoned.answerSuccess()
  for (let isBack = false; !isBack; ) {
    isBack = await send('GET', '/x').then(
      () => true,
      () => new Promise((resolve) => setTimeout(() => resolve(false), 20)),
    )
  }
  assert.match(String(lost[0]), /an ingest thread ended unexpectedly, with code 3/)
})

test('a stop answers requests in progress before the threads end', async (t) => {
  const { threads, lost, send, exchange } = await openThreads(t)
  const answer = send('POST', '/v1/batch', '{}')
  const held = await exchange()
  const closed = threads.close(60_000)
  held.answerSuccess()
  assert.deepEqual(await answer, { status: 200, connection: 'close', text: '{"success":true}\n' })
  await closed
  assert.deepEqual(lost, [])
  await assert.rejects(send('GET', '/x'), /ECONNREFUSED/)
})

test('a stop closes connections that are not answered in time', async (t) => {
  const { threads, send, exchange } = await openThreads(t)
  const outcomes = Promise.allSettled([send('POST', '/v1/batch', '{}'), send('GET', '/slow')])
  await exchange()
  await threads.close(50)
  for (const { status } of await outcomes) assert.equal(status, 'rejected')
})

test('other requests reach the main thread with the address of the client', async (t) => {
  const { send } = await openThreads(t)
  assert.equal((await send('GET', '/a?b=c')).text, 'GET /a?b=c from 127.0.0.1')
  assert.equal((await send('PUT', '/v1/batch', 'x'.repeat(300_000))).text, 'PUT /v1/batch from 127.0.0.1')
})

test('a request that announces trailers reaches the main thread', async (t) => {
  const { port } = await openThreads(t)
  const client = connect(port, '127.0.0.1')
  // node:http sends no such request.
  client.write('GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTrailer: X-Sum\r\n\r\n')
  let text = ''
  for await (const chunk of client) text += String(chunk)
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n.*GET \/a from 127\.0\.0\.1$/s)
})

test('a client with HTTP/1.0 gets no 100 Continue, as from a server of this thread', async (t) => {
  const { port } = await openThreads(t)
  const client = connect(port, '127.0.0.1')
  client.write('PUT /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx')
  let text = ''
  for await (const chunk of client) text += String(chunk)
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n.*PUT \/a from 127\.0\.0\.1$/s)
})

test('a port that is in use is reported as by a server of this thread', async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  await assert.rejects(openThreads(t, { port }), { code: 'EADDRINUSE' })
})
