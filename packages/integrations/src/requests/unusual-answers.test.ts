// Usual, malformed and hostile answers over real connections. Our client must return the same result or error as the client of Node.js, and
// may use a connection again only after a plain answer.

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { RunTrace, runs } from '../recording/run-trace.ts'
import { settingsScrubber } from '../recording/scrub.ts'
import { type Answer, type Outgoing, OwnTimeout, sentByNode } from './node-request.ts'
import { sentByUs } from './own-request.ts'
import { PlainAnswer } from './plain-answer.ts'
import { requestTarget } from './request-target.ts'

/** Gives every request the answer, and counts the connections. */
async function startTool(t: TestContext, answer: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const tool = { url: '', connections: 0 }
  const server = createServer((socket) => {
    sockets.add(socket)
    tool.connections++
    socket.on('error', () => undefined)
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (!text.endsWith('\r\n\r\n{}')) return
      text = ''
      answer(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  tool.url = `http://127.0.0.1:${(server.address() as { port: number }).port}/path`
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return tool
}

function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

function outgoing(url: string, more: Partial<Outgoing> = {}): Outgoing {
  const target = requestTarget(url)
  assert.ok(target)
  const { signal } = new AbortController()
  return { target, method: 'POST', headers: { 'Content-Length': '2' }, body: Buffer.from('{}'), signal, timeoutMs: null, ...more }
}

async function outcome(sent: Promise<Answer> | null): Promise<object> {
  assert.ok(sent)
  try {
    const { status, statusText, headers, body } = await sent
    return { status, statusText, headers: { ...headers }, body: body.toString('latin1') }
  } catch (error) {
    const { name, message, code, type } = error as Error & Record<string, unknown>
    return { name, message, code, type }
  }
}

function summary(result: object): string {
  const { status, body, code } = result as { status?: number; body?: string; code?: string }
  return status === undefined ? String(code) : `${status} ${(body ?? '').length > 40 ? (body ?? '').length : body}`
}

const head = (...headers: string[]): string => ['HTTP/1.1 200 OK', ...headers, '', ''].join('\r\n')
const LENGTH = 'content-length: 3'
const CHUNKED = 'transfer-encoding: chunked'

/** `isKept`: whether the connection is used again. `isEnded`: the tool ends it after the answer. */
const ANSWERS: readonly (readonly [what: string, answer: string, expected: string, isKept: boolean, isEnded?: boolean])[] = [
  ['a length', `${head(LENGTH)}abc`, '200 abc', true],
  ['a length of 0', head('content-length: 0'), '200 ', true],
  ['no reason phrase', 'HTTP/1.1 200 \r\ncontent-length: 1\r\n\r\na', '200 a', true],
  ['spaces and tabs around values', `${head('Content-Length: \t 3 \t', 'x:\t a  b\t ')}abc`, '200 abc', true],
  ['bytes beyond ASCII', `${head(LENGTH, 'x: \xfc\x80')}\xff\x00a`, '200 \xff\x00a', true],
  ['repeated headers', `${head(LENGTH, 'Vary: a', 'vary: b', 'set-cookie: a', 'Set-Cookie: b', 'etag: 1', 'etag: 2')}abc`, '200 abc', true],
  ['a header that is named like a property of all objects', `${head(LENGTH, 'constructor: a', 'x__y: b')}abc`, '200 abc', true],
  ['an Upgrade header', `${head(LENGTH, 'upgrade: h2', 'connection: Upgrade, Keep-Alive')}abc`, '200 abc', true],
  ['204', 'HTTP/1.1 204 No Content\r\nx: y\r\n\r\n', '204 ', true],
  ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n', '304 ', true],
  ['chunks', `${head(CHUNKED)}3\r\nabc\r\n00A\r\n0123456789\r\n1\r\n\n\r\n0\r\n\r\n`, '200 abc0123456789\n', true],
  ['only the last chunk', `${head(CHUNKED)}0\r\n\r\n`, '200 ', true],
  ['a connection that is closed', `${head(LENGTH, 'connection: foo, Close')}abc`, '200 abc', false],
  ['a connection that is kept for a second', `${head(LENGTH, 'keep-alive: timeout=1')}abc`, '200 abc', false],
  ['100', `HTTP/1.1 100 Continue\r\n\r\n${head(LENGTH)}abc`, '200 abc', false],
  ['103', `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${head(LENGTH)}abc`, '200 abc', false],
  ['no length', `${head()}abc`, '200 abc', false, true],
  ['HTTP/1.0', `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 3\r\n\r\nabc`, '200 abc', false],
  ['HTTP/2.0', `HTTP/2.0 200 OK\r\ncontent-length: 3\r\n\r\nabc`, '200 abc', false],
  ['HTTP/1.2', `HTTP/1.2 200 OK\r\ncontent-length: 3\r\n\r\nabc`, 'HPE_INVALID_VERSION', false],
  ['a version in lower case', `http/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc`, 'HPE_INVALID_CONSTANT', false],
  ['no version', `200 OK\r\n\r\nabc`, 'HPE_INVALID_CONSTANT', false],
  ['a status of two digits', `HTTP/1.1 20 OK\r\ncontent-length: 3\r\n\r\nabc`, 'HPE_INVALID_STATUS', false],
  ['a status of four digits', `HTTP/1.1 2000 OK\r\ncontent-length: 3\r\n\r\nabc`, 'HPE_INVALID_STATUS', false],
  ['a status of 600', `HTTP/1.1 600 OK\r\ncontent-length: 3\r\n\r\nabc`, '600 abc', false],
  ['two spaces after the status', `HTTP/1.1 200  OK\r\ncontent-length: 3\r\n\r\nabc`, '200 abc', false],
  ['a line break before the answer', `\r\n${head(LENGTH)}abc`, '200 abc', false],
  ['a length that is no number', `${head('content-length: abc')}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['an empty length', `${head('content-length:')}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['a negative length', `${head('content-length: -3')}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['a length with a sign', `${head('content-length: +3')}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['a hexadecimal length', `${head('content-length: 0x3')}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['a list of lengths', `${head('content-length: 3, 3')}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['two lengths in one header', `${head('content-length: 3 3')}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['a length of 30 digits', `${head(`content-length: ${'9'.repeat(30)}`)}abc`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['the same length twice', `${head(LENGTH, LENGTH)}abc`, 'HPE_UNEXPECTED_CONTENT_LENGTH', false],
  ['different lengths', `${head(LENGTH, 'content-length: 4')}abc`, 'HPE_UNEXPECTED_CONTENT_LENGTH', false],
  ['a length and chunks', `${head(LENGTH, CHUNKED)}3\r\nabc\r\n0\r\n\r\n`, 'HPE_INVALID_TRANSFER_ENCODING', false],
  ['chunks and a length', `${head(CHUNKED, LENGTH)}3\r\nabc\r\n0\r\n\r\n`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['chunks twice', `${head(CHUNKED, CHUNKED)}3\r\nabc\r\n0\r\n\r\n`, '200 abc', false],
  ['another transfer encoding', `${head('transfer-encoding: gzip')}abc`, '200 abc', false, true],
  ['chunks within another transfer encoding', `${head('transfer-encoding: gzip, chunked')}3\r\nabc\r\n0\r\n\r\n`, '200 abc', false],
  [
    'chunks that are not the last encoding',
    `${head('transfer-encoding: chunked, gzip')}3\r\nabc\r\n0\r\n\r\n`,
    '200 3\r\nabc\r\n0\r\n\r\n',
    false,
    true,
  ],
  ['an extension of a chunk', `${head(CHUNKED)}3;a=b\r\nabc\r\n0\r\n\r\n`, '200 abc', false],
  ['a trailer', `${head(CHUNKED)}3\r\nabc\r\n0\r\nx: y\r\n\r\n`, '200 abc', false],
  ['a trailer that is a length', `${head(CHUNKED)}3\r\nabc\r\n0\r\ncontent-length: 9\r\n\r\n`, 'HPE_INVALID_CONTENT_LENGTH', false],
  ['an invalid size of a chunk', `${head(CHUNKED)}xyz\r\nabc\r\n0\r\n\r\n`, 'HPE_INVALID_CHUNK_SIZE', false],
  ['a negative size of a chunk', `${head(CHUNKED)}-3\r\nabc\r\n0\r\n\r\n`, 'HPE_INVALID_CHUNK_SIZE', false],
  ['an empty size of a chunk', `${head(CHUNKED)}\r\nabc\r\n0\r\n\r\n`, 'HPE_INVALID_CHUNK_SIZE', false],
  ['a space after the size of a chunk', `${head(CHUNKED)}3 \r\nabc\r\n0\r\n\r\n`, 'HPE_INVALID_CHUNK_SIZE', false],
  ['a size of a chunk that is too large', `${head(CHUNKED)}${'F'.repeat(17)}\r\nabc\r\n`, 'HPE_INVALID_CHUNK_SIZE', false],
  ['a chunk that is longer than its size', `${head(CHUNKED)}3\r\nabcd\r\n0\r\n\r\n`, 'HPE_STRICT', false],
  ['a chunk that is shorter than its size', `${head(CHUNKED)}3\r\nab\r\n0\r\n\r\n`, 'HPE_CR_EXPECTED', false],
  ['chunks with line breaks without CR', `${head(CHUNKED)}3\nabc\n0\n\n`, 'HPE_CR_EXPECTED', false],
  ['204 with a length', `HTTP/1.1 204 No Content\r\n${LENGTH}\r\n\r\n`, '204 ', false],
  ['204 with a body', 'HTTP/1.1 204 No Content\r\n\r\nabc', 'HPE_INVALID_CONSTANT', false],
  ['304 with a length', `HTTP/1.1 304 Not Modified\r\n${LENGTH}\r\n\r\n`, '304 ', false],
  ['a header without a colon', `${head(LENGTH, 'xyz')}abc`, 'HPE_INVALID_HEADER_TOKEN', false],
  ['a header without a name', `${head(LENGTH, ': y')}abc`, 'HPE_INVALID_HEADER_TOKEN', false],
  ['a space before the colon', `${head('content-length : 3')}abc`, 'HPE_INVALID_HEADER_TOKEN', false],
  ['a space before a name', `HTTP/1.1 200 OK\r\n content-length: 3\r\n\r\nabc`, 'HPE_UNEXPECTED_SPACE', false],
  ['a folded header', `${head(LENGTH, 'x: a', ' b')}abc`, 'HPE_INVALID_HEADER_TOKEN', false],
  ['a folded length', `${head('content-length:', ' 3')}abc`, 'HPE_INVALID_HEADER_TOKEN', false],
  ['line breaks without CR', 'HTTP/1.1 200 OK\ncontent-length: 3\n\nabc', 'HPE_CR_EXPECTED', false],
  ['LF without CR in a header', `${head(LENGTH, 'x: a\ny: b')}abc`, 'HPE_CR_EXPECTED', false],
  ['CR without LF in a header', `${head(LENGTH, 'x: a\ry: b')}abc`, 'HPE_LF_EXPECTED', false],
  ['a null byte in a header', `${head(LENGTH, 'x: a\0b')}abc`, 'HPE_INVALID_HEADER_TOKEN', false],
  ['a control character in the reason phrase', `HTTP/1.1 200 O\x01K\r\n${LENGTH}\r\n\r\nabc`, '200 abc', false],
  ['headers of 20 KB', `${head(LENGTH, `x: ${'a'.repeat(20_000)}`)}abc`, 'HPE_HEADER_OVERFLOW', false],
  ['headers of 20 KB that do not end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}`, 'HPE_HEADER_OVERFLOW', false],
  ['500 headers', `${head(LENGTH, ...Array.from({ length: 500 }, (_, at) => `x${at}: a`))}abc`, '200 abc', false],
  ['a Proxy-Connection header', `${head(LENGTH, 'proxy-connection: close')}abc`, '200 abc', false],
  ['a header named __proto__', `${head(LENGTH, '__proto__: a')}abc`, '200 abc', false],
  ['5000 chunks', `${head(CHUNKED)}${'2\r\nab\r\n'.repeat(5_000)}0\r\n\r\n`, '200 10000', false],
  ['bytes after the answer', `${head(LENGTH)}abcd`, 'HPE_INVALID_CONSTANT', false],
  ['two answers', `${head(LENGTH)}abc${head(LENGTH)}abc`, '200 abc', false],
  ['bytes after the last chunk', `${head(CHUNKED)}3\r\nabc\r\n0\r\n\r\nx`, 'HPE_INVALID_CONSTANT', false],
  ['a body of 2 MB', `${head('content-length: 2000000')}${'a'.repeat(2_000_000)}`, '200 2000000', false],
  ['chunks of 2 MB', `${head(CHUNKED)}${`80000\r\n${'a'.repeat(0x80000)}\r\n`.repeat(4)}0\r\n\r\n`, '200 2097152', false],
  ['no bytes', '', 'ECONNRESET', false, true],
  ['the start of a head', 'HTTP/1.1 200 OK\r\nconte', 'ECONNRESET', false, true],
  ['the start of a body', `${head(LENGTH)}ab`, 'ECONNRESET', false, true],
  ['chunks without an end', `${head(CHUNKED)}3\r\nabc\r\n`, 'ERR_STREAM_PREMATURE_CLOSE', false, true],
]

for (const [what, answer, expected, isKept, isEnded = false] of ANSWERS) {
  test(`an answer with ${what}`, async (t) => {
    const bytes = Buffer.from(answer, 'latin1')
    const tool = await startTool(t, (socket) => (isEnded ? socket.end(bytes) : socket.write(bytes)))
    const ours = await outcome(sentByUs(outgoing(tool.url)))
    assert.deepEqual(ours, await outcome(sentByNode(outgoing(tool.url))))
    assert.equal(summary(ours), expected)
    // One of ours and one of Node.js.
    assert.equal(tool.connections, 2)
    await outcome(sentByUs(outgoing(tool.url)))
    assert.equal(tool.connections, isKept ? 2 : 3)
  })
}

test('an answer may arrive in pieces of any size', () => {
  for (const [what, answer, , isKept] of ANSWERS) {
    const bytes = Buffer.from(answer, 'latin1')
    if (!isKept) continue
    const whole = new PlainAnswer()
    assert.equal(whole.read(bytes), 'complete', what)
    for (let at = 1; at < bytes.length; at++) {
      const split = new PlainAnswer()
      assert.equal(split.read(bytes.subarray(0, at)), 'incomplete', what)
      assert.equal(split.read(bytes.subarray(at)), 'complete', what)
      assert.deepEqual([split.head, Buffer.concat(split.body)], [whole.head, Buffer.concat(whole.body)])
    }
    // The head at once: it may come in 32 pieces.
    const bodyAt = bytes.indexOf('\r\n\r\n') + 4
    const slow = new PlainAnswer()
    const states = [bytes.subarray(0, bodyAt), ...Array.from(bytes.subarray(bodyAt), (byte) => Buffer.of(byte))].map((piece) =>
      slow.read(piece),
    )
    assert.deepEqual([states.indexOf('complete'), Buffer.concat(slow.body)], [states.length - 1, Buffer.concat(whole.body)], what)
  }
})

test('an answer that cannot become a plain one is detected at once', () => {
  for (const start of [
    'hello',
    'HTTP/1.0',
    'HTTP/1.1 200 OK\n',
    'HTTP/1.1 200 OK\r\nx\r\n',
    'HTTP/1.1 200 OK\r\nx: y\nz',
    'HTTP/1.1 200 OK\r\nx: y\r\n\rz',
    'HTTP/1.1 20\r\n',
  ]) {
    assert.equal(new PlainAnswer().read(Buffer.from(start)), 'unusual', start)
  }
  const dripping = new PlainAnswer()
  const states = Array.from({ length: 33 }, (_, at) => dripping.read(Buffer.from(at === 0 ? 'HTTP/1.1 200 OK\r\n' : 'x: y\r\n')))
  assert.deepEqual([states.indexOf('unusual'), states.length], [32, 33])
})

const PLAIN = `${head(LENGTH)}abc`

test('a kept connection that the tool has ended is not used again', async (t) => {
  const tool = await startTool(t, (socket) => {
    socket.write(PLAIN)
    if (tool.connections === 1) ends.push(socket)
  })
  const ends: Socket[] = []
  await sentByUs(outgoing(tool.url))
  const closed = closeOf(ends[0] as Socket)
  ends[0]?.end()
  // Closed by us, because the tool has ended it.
  await closed
  assert.equal(summary(await outcome(sentByUs(outgoing(tool.url)))), '200 abc')
  assert.equal(tool.connections, 2)
})

test('a kept connection is closed if bytes arrive without a request', async (t) => {
  const sockets: Socket[] = []
  const tool = await startTool(t, (socket) => {
    sockets.push(socket)
    socket.write(PLAIN)
  })
  await sentByUs(outgoing(tool.url))
  const closed = closeOf(sockets[0] as Socket)
  sockets[0]?.write(PLAIN)
  await closed
  assert.equal(summary(await outcome(sentByUs(outgoing(tool.url)))), '200 abc')
  assert.equal(tool.connections, 2)
})

test('a request over a kept connection that the tool closes instead of answering fails, and is not sent again', async (t) => {
  let requests = 0
  const tool = await startTool(t, (socket) => {
    requests++
    if (requests === 1) socket.write(PLAIN)
    else socket.resetAndDestroy()
  })
  await sentByUs(outgoing(tool.url))
  assert.equal(summary(await outcome(sentByUs(outgoing(tool.url)))), 'ECONNRESET')
  assert.deepEqual([tool.connections, requests], [1, 2])
})

test('a connection is not used again if the answer came before the whole request was sent', async (t) => {
  const server = createServer((socket) => {
    // It never reads the rest, which does not fit into the buffers of the system.
    socket.once('data', () => {
      socket.pause()
      socket.write(PLAIN)
    })
    socket.on('error', () => undefined)
    t.after(() => socket.destroy())
  })
  let connections = 0
  server.on('connection', () => connections++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`
  const body = Buffer.alloc(32 * 1024 * 1024, 'a')
  const large = outgoing(url, { headers: { 'Content-Length': String(body.length) }, body })
  assert.equal(summary(await outcome(sentByUs(large))), '200 abc')
  assert.equal(summary(await outcome(sentByUs(outgoing(url)))), '200 abc')
  assert.equal(connections, 2)
})

test('a request that ends with its signal or its own timeout closes its connection, also after the start of an answer', async (t) => {
  for (const start of ['', 'HTTP/1.1 100 Continue\r\n\r\n', head(LENGTH)]) {
    let closed: Promise<void> | undefined
    const tool = await startTool(t, (socket) => {
      closed = closeOf(socket)
      socket.write(start)
    })
    const result = await outcome(sentByUs(outgoing(tool.url, { signal: AbortSignal.timeout(100) })))
    assert.equal((result as { name: string }).name, 'AbortError')
    await closed
    if (start.includes('200')) continue
    await assert.rejects(sentByUs(outgoing(tool.url, { timeoutMs: 100 })) as Promise<Answer>, OwnTimeout)
    await closed
  }
})

test('the rest of a redirect is not read', async (t) => {
  const tool = await startTool(t, (socket) => void socket.write('HTTP/1.1 307 Moved\r\nlocation: /a\r\ncontent-length: 9\r\n\r\nabc'))
  const { status, body } = (await outcome(sentByUs(outgoing(tool.url)))) as { status: number; body: string }
  assert.deepEqual([status, body], [307, ''])
})

test('a connection whose answer Node.js has read is closed, also if the tool leaves it open', async (t) => {
  for (const [what, answer, , isKept, isEnded] of ANSWERS) {
    if (isKept || isEnded) continue
    let closed: Promise<void> | undefined
    const tool = await startTool(t, (socket) => {
      closed = closeOf(socket)
      socket.write(Buffer.from(answer, 'latin1'))
    })
    await outcome(sentByUs(outgoing(tool.url)))
    assert.ok(closed, what)
    await closed
  }
})

function promiseOf<Value>(): [Promise<Value>, (value: Value) => void] {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((given) => {
    resolve = given
  })
  return [promise, resolve]
}

function traceOf(signal: AbortSignal): RunTrace {
  return new RunTrace({
    signal,
    isPreview: false,
    isDetailed: false,
    renewsTokens: true,
    scrubber: settingsScrubber({}, new Set()),
  })
}

test('the end of a run does not close a connection that another run already uses', async (t) => {
  let requests = 0
  const [asked, onAsked] = promiseOf<Socket>()
  const tool = await startTool(t, (socket) => (++requests === 1 ? void socket.write(PLAIN) : onAsked(socket)))
  const first = traceOf(new AbortController().signal)
  await runs.run({ trace: first, positions: [0] }, () => sentByUs(outgoing(tool.url)))
  const second = outcome(sentByUs(outgoing(tool.url)))
  const socket = await asked
  first.abortRequests()
  socket.write(PLAIN)
  assert.equal(summary(await second), '200 abc')
  assert.deepEqual([tool.connections, requests], [1, 2])
})

test('the end of a run ends its requests, also while Node.js reads the answer', async (t) => {
  for (const [start, error] of [
    ['', { name: 'AbortError' }],
    [`${head(CHUNKED)}3;a=b\r\nab`, { code: 'ERR_STREAM_PREMATURE_CLOSE' }],
  ] as const) {
    let closed: Promise<void> | undefined
    const [asked, onAsked] = promiseOf<unknown>()
    const tool = await startTool(t, (socket) => {
      closed = closeOf(socket)
      if (start === '') onAsked(socket)
      else socket.write(start)
    })
    // Node.js publishes this when it has read the headers.
    subscribe('http.client.response.finish', onAsked)
    t.after(() => unsubscribe('http.client.response.finish', onAsked))
    const trace = traceOf(new AbortController().signal)
    const sent = runs.run({ trace, positions: [0] }, () => sentByUs(outgoing(tool.url)))
    await asked
    trace.abortRequests()
    await assert.rejects(sent as Promise<Answer>, error)
    await closed
  }
})

test('thousands of chunks are joined in their order', async (t) => {
  const parts = Array.from({ length: 5_000 }, (_, at) => String(at + 1_000))
  const answer = `${head(CHUNKED)}${parts.map((part) => `4\r\n${part}\r\n`).join('')}0\r\n\r\n`
  const tool = await startTool(t, (socket) => void socket.write(answer))
  const { body } = (await outcome(sentByUs(outgoing(tool.url)))) as { body: string }
  assert.equal(body, parts.join(''))
})
