// Our request client beside the library's: the same bytes for a receiver, the same answers and errors for an action.

import assert from 'node:assert/strict'
import dns from 'node:dns'
import { createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib'
import { library } from '../library.ts'
import { type FetchResponse, type LibraryClient, libraryRequests } from './library-requests.ts'
import { preparedRequest, requestClient } from './request-client.ts'

type Options = Record<string, unknown>

const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\nconnection: close\r\n\r\n{"ok":1}'

/** Answers each request with `answer`, and keeps what it received. */
async function startReceiver(t: TestContext, answer: (socket: Socket, received: string) => void = (socket) => socket.end(OK)) {
  const received: string[] = []
  const server = createServer((socket) => {
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const [head = '', body] = text.split('\r\n\r\n', 2)
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
      if (body === undefined || body.length < length) return
      received.push(text)
      const whole = text
      text = ''
      answer(socket, whole)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, received }
}

const refused = (): never => {
  throw new Error('the library was asked')
}

function clients(own: Options, signal = new AbortController().signal): { ours: LibraryClient; theirs: LibraryClient } {
  const shared = { statsContext: { tags: [] }, signal }
  return { ours: requestClient(own, shared, refused), theirs: library().createRequestClient(own, shared) }
}

async function outcome(call: () => Promise<FetchResponse>): Promise<object> {
  try {
    return described(await call())
  } catch (error) {
    const { name, message, code, errno, status, type, response } = error as Error & Options & { response?: FetchResponse }
    const constructors = [error?.constructor.name, Object.getPrototypeOf(error?.constructor).name]
    return {
      constructors,
      name,
      message,
      code,
      errno,
      status,
      type,
      ...(response !== undefined && { response: await described(response) }),
    }
  }
}

async function described(response: FetchResponse): Promise<object> {
  const { status, statusText, ok, content, data, headers } = response
  const { url, redirected, request } = response as unknown as { url: string; redirected: boolean; request?: { url: string } }
  const text = await response.text().catch((error: Error) => error.message)
  const isKnown = response instanceof library().Response
  return { status, statusText, ok, content, data, headers: JSON.stringify(headers), url, redirected, text, isKnown, at: request?.url }
}

const UNUSUAL_PATH = `/a b/'c'/{d}|e^f?q=a b'c&x="y"#hash`
const REQUESTS: readonly [what: string, own: Options, call: Options, path?: string][] = [
  ['a GET', {}, {}],
  ['JSON', {}, { method: 'post', json: { a: 'ü', b: [1, null] } }],
  ['JSON with a type of its own', { headers: { 'Content-Type': 'application/vnd.api+json' } }, { method: 'post', json: {} }],
  ['headers of both levels', { headers: { Zebra: '1', 'x-b': 2, Authorization: 'Bearer t' } }, { headers: { 'X-B': 3, Alpha: 'a' } }],
  ['a header that is left out', { headers: { 'x-a': '1', 'user-agent': 'x' } }, { headers: { 'X-A': undefined } }],
  ['no user agent', {}, { method: 'PUT', headers: { 'User-Agent': undefined } }],
  ['text', {}, { method: 'put', body: 'a=b' }],
  ['text with a type', {}, { method: 'PUT', body: 'a=b', headers: { 'Content-Type': 'text/csv' } }],
  ['a form', {}, { method: 'POST', body: new URLSearchParams({ a: 'b c', d: 'ü' }) }],
  ['bytes', {}, { method: 'PATCH', body: Buffer.from([1, 2, 200]) }],
  ['an empty text', {}, { method: 'POST', body: '' }],
  ['no body', {}, { method: 'post' }],
  ['a PATCH without a body', {}, { method: 'patch' }],
  ['a DELETE without a body', {}, { method: 'delete' }],
  ['a header with a number as its name', {}, { method: 'post', json: {}, headers: { 'x-b': '2', 7: 'a' } }],
  ['a DELETE with JSON', {}, { method: 'delete', json: { id: 1 } }],
  ['basic authentication', { username: 'u', password: 'p', headers: { 'x-z': 1 } }, { method: 'post', json: {}, headers: { 'x-a': 1 } }],
  ['basic authentication with a type', { username: 'u' }, { method: 'post', json: {}, headers: { 'content-type': 'a/b' } }],
  ['basic authentication with text', { password: 'p' }, { method: 'post', body: 'x' }],
  [
    'own lengths and encodings',
    {},
    { method: 'post', body: 'x', headers: { 'Content-Length': '1', 'Accept-Encoding': 'br', accept: 'a/b' } },
  ],
  ['a query', { searchParams: { a: 'b c', d: 'ü' } }, { username: 'u' }, '/path?old=1'],
  ['an unusual path', {}, {}, UNUSUAL_PATH],
  ['other options', { responseType: 'json', timeout: 30_000 }, { skipResponseCloning: false, throwHttpErrors: false }],
]

for (const [what, own, call, path = '/path'] of REQUESTS) {
  test(`the request is the same, byte by byte: ${what}`, async (t) => {
    const { url, received } = await startReceiver(t)
    const { ours, theirs } = clients(own)
    const answers = [await outcome(() => ours(`${url}${path}`, call)), await outcome(() => theirs(`${url}${path}`, call))]
    assert.equal(received.length, 2)
    assert.equal(received[0], received[1])
    assert.deepEqual(omitRequest(answers[0]), omitRequest(answers[1]))
  })
}

/** The library's own client does not name it: an action adds it. */
function omitRequest(answer: object = {}): object {
  const { at: _, ...rest } = answer as { at?: string; response?: object }
  return 'response' in rest ? { ...rest, response: omitRequest(rest.response) } : rest
}

const head = (status: string, ...headers: string[]): string => [`HTTP/1.1 ${status}`, 'connection: close', ...headers, '', ''].join('\r\n')
const zipped = (encoding: string, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(head('200 OK', `content-encoding: ${encoding}`, `content-length: ${body.length}`)), body])

const ANSWERS: readonly [what: string, answer: (socket: Socket, received: string) => void, call?: Options][] = [
  ['an error with JSON', (socket) => socket.end(`${head('429 Slow Down', 'content-type: application/json', 'retry-after: 4')}{"a":1}`)],
  ['an error that is not thrown', (socket) => socket.end(head('500 Broken')), { throwHttpErrors: false }],
  ['no content', (socket) => socket.end(head('204 No Content'))],
  ['invalid JSON', (socket) => socket.end(`${head('200 OK', 'content-type: application/json')}{`)],
  ['repeated headers', (socket) => socket.end(`${head('200 OK', 'set-cookie: a=1', 'set-cookie: b=2', 'X-Y: 1', 'x-y: 2')}text`)],
  ['gzip', (socket) => socket.end(zipped('gzip', gzipSync('{"a":1}')))],
  ['gzip without its end', (socket) => socket.end(zipped('gzip', gzipSync('{"a":1}').subarray(0, -4)))],
  ['deflate', (socket) => socket.end(zipped('deflate', deflateSync('text')))],
  ['an unknown encoding', (socket) => socket.end(zipped('zstd', Buffer.from('text')))],
  ['chunks', (socket) => socket.end(`${head('200 OK', 'transfer-encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`)],
  ['chunks that end early', (socket) => socket.end(`${head('200 OK', 'transfer-encoding: chunked')}3\r\nabc\r\n`)],
  ['what is not HTTP', (socket) => socket.end('hello\r\n\r\n')],
  ['a closed connection', (socket) => socket.destroy()],
  ['a redirect without a location', (socket) => socket.end(head('302 Found'))],
  ['a redirect to nowhere', (socket) => socket.end(head('302 Found', 'location: http://['))],
  ['a body that is read once', (socket) => socket.end(OK), { skipResponseCloning: true }],
]

for (const [what, answer, call = {}] of ANSWERS) {
  test(`the result is the same: ${what}`, async (t) => {
    const { url } = await startReceiver(t, answer)
    const { ours, theirs } = clients({})
    const results = [await outcome(() => ours(url, call)), await outcome(() => theirs(url, call))]
    assert.deepEqual(omitRequest(results[0]), omitRequest(results[1]))
  })
}

for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect with ${status} is followed with the same requests`, async (t) => {
    const other = await startReceiver(t)
    const { url, received } = await startReceiver(t, (socket, text) =>
      socket.end(
        text.includes('/start') ? head(`${status} Moved`, 'location: /next') : head(`${status} Moved`, `location: ${other.url}/end`),
      ),
    )
    const { ours, theirs } = clients({ headers: { authorization: 'Bearer t', 'x-a': '1' } })
    for (const client of [ours, theirs]) await client(`${url}/start`, { method: 'post', json: { a: 1 } })
    assert.deepEqual([received.length, other.received.length], [4, 2])
    assert.deepEqual(received.slice(0, 2), received.slice(2))
    assert.equal(other.received[0], other.received[1])
  })
}

for (const [from, to, isKept] of [
  ['tool.test', 'api.tool.test', true],
  ['api.tool.test', 'tool.test', false],
  ['tool.test', 'othertool.test', false],
] as const) {
  test(`a redirect from ${from} to ${to} ${isKept ? 'keeps' : 'drops'} credentials, as in the library`, async (t) => {
    t.mock.method(dns, 'lookup', (_: string, options: { all?: boolean }, done: (...args: unknown[]) => void) =>
      options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4),
    )
    const { url, received } = await startReceiver(t, (socket, text) => {
      const { port } = new URL(url)
      socket.end(text.includes('/start') ? head('307 Moved', `location: http://${to}:${port}/end`) : OK)
    })
    const { ours, theirs } = clients({ headers: { authorization: 'Bearer t', cookie: 'a=b' } })
    for (const client of [ours, theirs]) await client(`http://${from}:${new URL(url).port}/start`, { method: 'post', json: { a: 1 } })
    assert.equal(received.length, 4)
    assert.deepEqual(received.slice(0, 2), received.slice(2))
    assert.equal(received[1]?.includes('Bearer t'), isKept)
  })
}

test('a request ends with its signal and with its own timeout, with the errors of the library', async (t) => {
  const { url } = await startReceiver(t, () => undefined)
  for (const reason of [undefined, new DOMException('late', 'TimeoutError')]) {
    const controller = new AbortController()
    const { ours, theirs } = clients({}, controller.signal)
    const results = [ours, theirs].map((client) => outcome(() => client(url)))
    setImmediate(() => controller.abort(reason))
    const [first, second] = await Promise.all(results)
    assert.deepEqual(first, second)
  }
  const { ours, theirs } = clients({ timeout: 5 })
  assert.deepEqual(await outcome(() => ours(url)), await outcome(() => theirs(url)))
})

const BROKEN: readonly [what: string, answer: string | Buffer, code: string][] = [
  ['ends before its length', `${head('200 OK', 'content-length: 10')}abc`, 'ECONNRESET'],
  ['is not what its encoding says', zipped('gzip', Buffer.from('text')), 'Z_DATA_ERROR'],
  ['has an invalid chunk', `${head('200 OK', 'transfer-encoding: chunked')}3\r\nabc\r\nzz\r\n`, 'HPE_INVALID_CHUNK_SIZE'],
]
for (const [what, answer, code] of BROKEN) {
  test(`an answer that ${what} fails at once, and not at the deadline`, async (t) => {
    const { url } = await startReceiver(t, (socket) => socket.end(answer))
    const result = (await outcome(() => clients({}).ours(url))) as { name: string; code: string }
    assert.deepEqual([result.name, result.code], ['FetchError', code])
  })
}

const HUGE = Buffer.alloc(17 * 1024 * 1024, 'a')
const TOO_LARGE: readonly [what: string, answer: Buffer][] = [
  ['as it is sent', Buffer.concat([Buffer.from(head('200 OK')), HUGE])],
  ['when it is decompressed (gzip)', zipped('gzip', gzipSync(HUGE))],
  ['when it is decompressed (deflate)', zipped('deflate', deflateSync(HUGE))],
  ['when it is decompressed (br)', zipped('br', brotliCompressSync(HUGE, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }))],
]
for (const [what, answer] of TOO_LARGE) {
  test(`an answer of more than 16 MB ${what} fails and is not kept in memory`, async (t) => {
    const { url } = await startReceiver(t, (socket) => socket.end(answer))
    const result = (await outcome(() => clients({}).ours(url))) as { name: string; type: string; message: string }
    assert.deepEqual([result.name, result.type], ['FetchError', 'max-size'])
    assert.match(result.message, /larger than 16777216 bytes/)
  })
}

test('the request of a response is available, and errors have it', async (t) => {
  const { url } = await startReceiver(t, (socket) => socket.end(head('400 Bad Request')))
  const error = await clients({})
    .ours(`${url}/x`, { method: 'post', json: {} })
    .catch((thrown: unknown) => thrown as { request: object; response: { request: { method: string; url: string }; options: Options } })
  assert.ok('response' in error && 'request' in error.response)
  assert.ok(error.request instanceof libraryRequests().fetch.Request)
  assert.deepEqual(
    [error.response.request.method, error.response.request.url, error.response.options['method']],
    ['POST', `${url}/x`, 'POST'],
  )
})

test('a response can be cloned', async (t) => {
  const { url } = await startReceiver(t)
  const { ours, theirs } = clients({})
  for (const client of [ours, theirs]) {
    const response = await client(url)
    assert.deepEqual([await response.clone().text(), await response.text()], ['{"ok":1}', '{"ok":1}'])
  }
})

test('the library makes a request whose options are not known', () => {
  const { signal } = new AbortController()
  const url = 'https://tool.example/'
  const isOurs = (options: Options, own: Options = {}, to: unknown = url): boolean =>
    preparedRequest(to, [own, { signal }, options]) !== null
  assert.equal(isOurs({}), true)
  assert.equal(isOurs({}, {}, new URL(url)), true)
  const unknown: readonly [Options, Options?, unknown?][] = [
    [{ agent: {} }],
    [{ redirect: 'manual' }],
    [{ compress: false }],
    [{ afterResponse: [] }],
    [{ signal: new AbortController().signal }],
    [{ json: { b: 1 }, method: 'post' }, { json: { a: 1 } }],
    [{ body: 'x' }],
    [{ body: new Blob(['x']), method: 'post' }],
    [{ body: 'x', json: {}, method: 'post' }],
    [{ json: () => 0, method: 'post' }],
    [{ headers: { 'x-a': 'line\nbreak' } }],
    [{ headers: { 'x a': '1' } }],
    [{ headers: { Host: 'other.example' } }],
    [{ headers: { 'X-A': '1', 'x-a': '2' } }],
    [{ headers: [['x-a', '1']] }],
    [{ username: 'ü' }],
    [{ timeout: 5, skipResponseCloning: true }],
    [{}, {}, '//tool.example/'],
    [{}, {}, 'https://user:password@tool.example/'],
    [{}, {}, 'ftp://tool.example/'],
    [{}, {}, '/relative'],
    [{}, {}, 7],
  ]
  for (const [options, own, to] of unknown) assert.equal(isOurs(options, own, to ?? url), false, JSON.stringify([options, own, to]))
})
