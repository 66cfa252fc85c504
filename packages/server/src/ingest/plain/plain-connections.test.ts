// Which requests are read without node:http, what happens to a connection when one of another kind follows, and that both give the same answers.
// plain-requests.test.ts runs the tests of the tracking API in this way.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type PlainConnection, PlainConnections } from './plain-connections.ts'
import type { PlainHead } from './plain-head.ts'

const SERVER = { keepAliveTimeout: 72_000, headersTimeout: 10_000, requestTimeout: 15_000 }
const KNOWN = new Set(['/v1/batch', '/v1/track'])

interface Rig {
  port: number
  plain: PlainConnections
  silent: Set<Socket>
  /** The paths of the requests that Node.js read. */
  byNode: string[]
  /** The requests that were read here. The test answers those that it holds. */
  here: { path: string; body: string; connection: PlainConnection; answer: () => void }[]
  clock: { nowMs: number }
  open: () => Promise<Client>
}

interface Client {
  socket: Socket
  write: (text: string) => void
  /** Waits until the received text contains this, and returns all of it. */
  until: (text: string) => Promise<string>
  closed: Promise<string>
}

/** The answer of both ways to the same request. */
const answerOf = (path: string, authorization: string | undefined, body: string): string =>
  `${path} ${authorization} ${body.length} ${body}\n`
const headersOf = (text: string): string[] => ['Content-Type', 'text/plain', 'Content-Length', String(Buffer.byteLength(text))]

function answersByNode(server: Server, byNode: string[]): void {
  server.on('request', (request, response) => {
    byNode.push(request.url ?? '')
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = answerOf(request.url ?? '', request.headers.authorization, Buffer.concat(chunks).toString('latin1'))
      response.writeHead(200, headersOf(text)).end(text)
    })
    response.on('error', () => {})
  })
  // Otherwise, a test waits for connections that a faulty service keeps open.
  server.on('clientError', (_error, socket) => socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'))
}

async function rig(t: TestContext, holds = false): Promise<Rig> {
  const server = createServer(SERVER)
  const byNode: string[] = []
  const here: Rig['here'] = []
  const silent = new Set<Socket>()
  const clock = { nowMs: 0 }
  answersByNode(server, byNode)
  server.on('connection', (socket) => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  const plain = new PlainConnections({
    server,
    silent,
    nowMs: () => clock.nowMs,
    handler: {
      takes: ({ path }: PlainHead) => KNOWN.has(path),
      handle(connection, { path, headers }, bytes) {
        const body = bytes.toString('latin1')
        const text = answerOf(path, headers.authorization, body)
        const answer = (): void => connection.answer(200, headersOf(text), text)
        here.push({ path, body, connection, answer })
        if (!holds) answer()
      },
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  t.after(() => {
    plain.close()
    server.closeAllConnections()
    server.close()
  })
  return { port, plain, silent, byNode, here, clock, open: () => openClient(t, port) }
}

async function openClient(t: TestContext, port: number): Promise<Client> {
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let received = ''
  let check = (): void => {}
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
    check()
  })
  socket.on('error', () => {})
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(received)))
  await once(socket, 'connect')
  return {
    socket,
    write: (text) => void socket.write(text, 'latin1'),
    until: (text) =>
      new Promise((resolve) => {
        check = () => received.includes(text) && resolve(received)
        check()
      }),
    closed,
  }
}

function post(path: string, body: string, more = ''): string {
  return `POST ${path} HTTP/1.1\r\nHost: service.test\r\nAuthorization: Basic a2V5Og==\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`
}

/** Resolves when the server has seen everything that was written before. */
async function untilTrue(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}

test('requests one after the other are read here, and the connection is idle between them', async (t) => {
  const { open, byNode, here, silent } = await rig(t, true)
  const client = await open()
  for (const body of ['one', 'two', 'three']) {
    client.write(post('/v1/track', body))
    await untilTrue(() => here.at(-1)?.body === body)
    assert.equal(silent.size, 0)
    here.at(-1)?.answer()
    await client.until(` ${body}\n`)
    assert.equal(silent.size, 1)
  }
  assert.deepEqual([byNode, here.length], [[], 3])
})

test('the head and the body may arrive one after the other', async (t) => {
  const { open, byNode, here } = await rig(t)
  const client = await open()
  const text = post('/v1/track', 'body')
  client.write(text.slice(0, -4))
  await untilTrue(() => client.socket.bytesWritten > 0)
  client.write(text.slice(-4))
  await client.until(' body\n')
  assert.deepEqual([byNode, here.length], [[], 1])
})

test('Node.js reads a request that arrives in many pieces, or does not arrive within a second, and what follows it', async (t) => {
  const { open, byNode, here, clock, plain } = await rig(t)
  const [first, second] = [await open(), await open()]
  const text = post('/v1/track', 'in pieces')
  for (const part of text.match(/.{1,25}/gs) ?? []) {
    first.write(part)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await first.until(' in pieces\n')
  first.write(post('/v1/track', 'next'))
  await first.until(' next\n')
  second.write(text.slice(0, 40))
  await untilTrue(() => plain.incompleteBytes === 40)
  clock.nowMs = 1_001
  plain.sweep()
  assert.equal(plain.incompleteBytes, 0)
  second.write(text.slice(40))
  await second.until(' in pieces\n')
  assert.deepEqual([byNode, here.length], [['/v1/track', '/v1/track', '/v1/track'], 0])
})

test('incomplete requests hold four megabytes together; Node.js gets the others at once', async (t) => {
  const { open, plain } = await rig(t)
  const part = post('/v1/batch', 'x'.repeat(60_000)).slice(0, -1)
  const clients = await Promise.all(Array.from({ length: 80 }, () => open()))
  for (const client of clients) client.write(part)
  // Each client's part arrives in one or two pieces.
  await untilTrue(() => plain.incompleteBytes > 3_900_000)
  assert.ok(plain.incompleteBytes < 4 * 1024 * 1024 + 2 * 65_536, String(plain.incompleteBytes))
  for (const client of clients) client.write('x')
  for (const client of clients) await client.until('x\n')
  assert.equal(plain.incompleteBytes, 0)
})

test('a client that does not wait for its answer gets all answers, in order', async (t) => {
  const { open, byNode, here } = await rig(t, true)
  const client = await open()
  client.write(post('/v1/track', 'first'))
  await untilTrue(() => here.length === 1)
  client.write(post('/v1/track', 'second'))
  client.write(post('/v1/other', 'third', 'Connection: close\r\n'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.deepEqual(byNode, [])
  here[0]?.answer()
  const received = await client.closed
  assert.deepEqual(received.match(/first|second|third/g), ['first', 'second', 'third'])
  assert.deepEqual([byNode, here.length], [['/v1/track', '/v1/other'], 1])
})

test('several requests in one piece are all read by Node.js', async (t) => {
  const { open, byNode, here } = await rig(t)
  const client = await open()
  client.write(post('/v1/track', 'first') + post('/v1/track', 'second', 'Connection: close\r\n'))
  assert.deepEqual((await client.closed).match(/first|second/g), ['first', 'second'])
  assert.deepEqual([byNode.length, here.length], [2, 0])
})

test('an idle connection is closed after the announced time', async (t) => {
  const { open, clock, plain } = await rig(t)
  const client = await open()
  client.write(post('/v1/track', 'x'))
  assert.match(await client.until(' x\n'), /\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n/)
  clock.nowMs = 72_999
  plain.sweep()
  client.write(post('/v1/track', 'y'))
  await client.until(' y\n')
  clock.nowMs += 73_001
  plain.sweep()
  await client.closed
})

test('a connection without any bytes is given to Node.js, whose timeouts apply', async (t) => {
  const { open, clock, plain, byNode } = await rig(t)
  const client = await open()
  clock.nowMs = 1_001
  plain.sweep()
  client.write(post('/v1/track', 'late'))
  await client.until(' late\n')
  assert.deepEqual(byNode, ['/v1/track'])
})

test('a client that sends requests and reads no answers is not read any more', async (t) => {
  const { open, here } = await rig(t)
  const client = await open()
  client.socket.pause()
  const body = 'x'.repeat(60_000)
  const one = post('/v1/batch', body)
  let sent = 0
  // The answer contains the body, so both directions fill up.
  while (sent < 2_000 && client.socket.writableLength < 1_000_000) {
    const before = here.length
    client.write(one)
    sent++
    await new Promise((resolve) => setTimeout(resolve, 1))
    if (here.length === before && client.socket.writableLength > 0) break
  }
  assert.ok(sent < 2_000 && here.length < sent, `${here.length} of ${sent}`)
  client.socket.resume()
  await untilTrue(() => client.socket.bytesRead >= sent * 60_000)
})

test('closing closes idle connections at once, and the others after their answer', async (t) => {
  const { open, here, plain } = await rig(t, true)
  const [idle, busy] = [await open(), await open()]
  idle.write(post('/v1/track', 'idle'))
  await untilTrue(() => here.length === 1)
  here[0]?.answer()
  await idle.until(' idle\n')
  busy.write(post('/v1/track', 'busy'))
  await untilTrue(() => here.length === 2)
  plain.close()
  await idle.closed
  here[1]?.answer()
  assert.match(await busy.closed, /\r\nConnection: close\r\n\r\n.* busy\n$/)
})

test('closing gives an incomplete request to Node.js, which answers it', async (t) => {
  const { open, byNode, plain, silent } = await rig(t)
  const client = await open()
  const text = post('/v1/track', 'late')
  client.write(text.slice(0, -2))
  await untilTrue(() => plain.incompleteBytes > 0)
  plain.close()
  assert.deepEqual([plain.incompleteBytes, silent.size], [0, 0])
  client.write(text.slice(-2))
  await client.until(' late\n')
  assert.deepEqual(byNode, ['/v1/track'])
})

test('what follows the last request of a connection is no request, even while the answer is sent', async (t) => {
  const { open, here, byNode } = await rig(t, true)
  const client = await open()
  client.socket.pause()
  client.write(post('/v1/track', 'last', 'Connection: close\r\n'))
  await untilTrue(() => here.length === 1)
  // More than the buffers of both sides hold.
  const large = 'x'.repeat(32 * 1024 * 1024)
  here[0]?.connection.answer(200, headersOf(large), large)
  client.write(post('/v1/track', 'too late'))
  await new Promise((resolve) => setTimeout(resolve, 100))
  client.socket.resume()
  assert.ok((await client.closed).endsWith('x'))
  assert.deepEqual([here.length, byNode], [1, []])
})

test('connections that send too far ahead of their answers are closed', async (t) => {
  const { open, here, plain } = await rig(t, true)
  let closed = 0
  for (let nth = 0; nth < 400 && closed === 0; nth++) {
    const client = await open()
    client.socket.once('close', () => closed++)
    client.write(post('/v1/track', String(nth)))
    await untilTrue(() => here.length === nth + 1)
    client.write('x'.repeat(60_000))
    const before = plain.aheadBytes
    await untilTrue(() => plain.aheadBytes !== before || closed > 0)
  }
  assert.ok(closed > 0, 'none was closed')
  assert.ok(plain.aheadBytes <= 32 * 1024 * 1024, String(plain.aheadBytes))
  for (const { answer } of here) answer()
  await untilTrue(() => plain.aheadBytes === 0)
})

test('what waits for an answer is told when the connection is reset, and a late answer goes nowhere', async (t) => {
  const server = createServer(SERVER)
  let ended = 0
  let answer: (() => void) | undefined
  const plain = new PlainConnections({
    server,
    silent: new Set(),
    handler: {
      takes: () => true,
      handle(connection) {
        connection.onAnswered(() => ended++)
        answer = () => connection.answer(200, [], '')
      },
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    plain.close()
    server.close()
  })
  const client = await openClient(t, (server.address() as AddressInfo).port)
  client.write(post('/v1/track', 'x'))
  await untilTrue(() => answer !== undefined)
  client.socket.resetAndDestroy()
  await untilTrue(() => ended === 1)
  answer?.()
  assert.equal(ended, 1)
})

// ── The same answers as Node.js gives ──

/** Requests of which some are plain, and others nearly. */
const EXAMPLES = [
  post('/v1/track', '{"a":1}'),
  post('/v1/batch', 'x'.repeat(3_000), 'Content-Type: application/json\r\nUser-Agent: test/1.0 (a; b)\r\n'),
  post('/v1/track', 'p', 'Connection: keep-alive\r\n'),
  post('/v1/track', 'q', 'connection:   Keep-Alive  \r\nX-Empty:\r\n'),
  post('/v1/other', 'o'),
  post('/v1/track', ''),
  post('/v1/track', 'e', 'Expect: 100-continue\r\n'),
  post('/v1/track', 'd', 'Content-Length: 1\r\n'),
  post('/v1/track', 'a', 'Authorization: Basic b3RoZXI6\r\n'),
  post('/v1/track', 'f', 'X-Folded: one\r\n two\r\n'),
  post('/v1/track', 'h', 'Host: other.test\r\n'),
  post('/v1/track', 's', 'X-Space : one\r\n'),
  post('/v1/track', 'c', 'Proxy-Connection: close\r\n'),
  post('/v1/track', 'n', 'X-Latin: \xe9\r\n'),
  'POST /v1/track HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
  'POST /v1/track HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
  'POST /v1/track HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc',
  'POST /v1/track HTTP/1.1\nHost: a\nContent-Length: 3\n\nabc',
  'POST /v1/track HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc',
  'POST /v1/track HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST  /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc',
  'POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc',
  'POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc',
  'POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc',
  'POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nabc',
  'GET /v1/track HTTP/1.1\r\nHost: a\r\n\r\n',
  `POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n${'a:\r\n'.repeat(1_500)}\r\nabc`,
  '\r\nPOST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc',
  'PUT /v1/track HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\nContent-Length: 3\r\n\r\nabc',
]
const LAST = post('/v1/track', 'last', 'Connection: close\r\n')
const BYTES = ['\r', '\n', '\0', ' ', ':', '\t', '0', '9', '\xff', 'A', ',', '']

/** Numbers from 0 to below 1, the same ones for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

/** How long a request without an answer is waited for. It is incomplete then, or the connection is about to be closed. */
const UNANSWERED_MS = 300

/** Sends one request after the other, each in pieces, and returns everything that is received until the connection is closed. */
async function exchange(port: number, requests: readonly string[][]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  let onData = (): void => {}
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
    onData()
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'connect')
  for (const pieces of requests) {
    if (socket.destroyed) break
    const answered = new Promise<void>((resolve) => {
      onData = resolve
    })
    for (const piece of pieces) {
      socket.write(piece, 'latin1')
      await new Promise((resolve) => setImmediate(resolve))
    }
    // Without this wait, Node.js gives different answers, too: what follows in the same piece may be invalid before the answer was written.
    await Promise.race([closed, answered, new Promise((resolve) => setTimeout(resolve, UNANSWERED_MS))])
  }
  socket.end()
  await closed
  return received.replaceAll(/Date: [^\r]*\r\n/g, '')
}

test('examples and random variants of them get the answers of Node.js, however they are split', async (t) => {
  const { port, byNode, here } = await rig(t)
  const alone = createServer(SERVER)
  answersByNode(alone, [])
  alone.listen(0, '127.0.0.1')
  await once(alone, 'listening')
  t.after(() => alone.close())
  const nodePort = (alone.address() as AddressInfo).port
  const random = randomFrom(42)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const variant = (text: string): string => {
    const at = Math.floor(random() * Math.min(text.length, 200))
    return text.slice(0, at) + pick(BYTES) + text.slice(at + Math.floor(random() * 2))
  }
  const pieces = (text: string): string[] => {
    const at = Math.floor(random() * text.length)
    return random() < 0.5 ? [text] : [text.slice(0, at), text.slice(at)]
  }
  const cases = EXAMPLES.map((text) => [[text], [LAST]])
  for (let more = 0; more < 250; more++) {
    // The first ones are plain, and stay so in many of their variants.
    const example = (): string => pick(random() < 0.6 ? EXAMPLES.slice(0, 4) : EXAMPLES)
    const texts = Array.from({ length: 1 + Math.floor(random() * 3) }, () => (random() < 0.5 ? example() : variant(example())))
    cases.push([...texts, LAST].map(pieces))
  }
  const compare = async (requests: string[][]): Promise<void> => {
    const [expected, got] = await Promise.all([exchange(nodePort, requests), exchange(port, requests)])
    assert.equal(got, expected, JSON.stringify(requests))
  }
  for (let at = 0; at < cases.length; at += 16) await Promise.all(cases.slice(at, at + 16).map(compare))
  assert.ok(here.length > 100, `${here.length} were read here`)
  assert.ok(byNode.length > 100, `${byNode.length} were read by Node.js`)
})
