// Which answers are plain, and that undici reads them in the same way.

import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import test from 'node:test'
import { Client } from 'undici'
import { randomFrom } from '../../fixtures/random.ts'
import { type AnswerState, PlainAnswer } from './plain-answer.ts'

interface Reading {
  state: AnswerState | 'failed'
  status: number | null
  retryAfter: string | undefined
  body: string
  keepsAlive: boolean
}

function read(...pieces: Buffer[]): Reading & { kept: Buffer } {
  const got = { status: null as number | null, retryAfter: undefined as string | undefined, body: '' }
  const answer = new PlainAnswer(
    {
      onHead: (status, retryAfter) => Object.assign(got, { status, retryAfter }),
      onBody: (piece) => (got.body += piece.toString('latin1')),
    },
    null,
  )
  let state: AnswerState = 'incomplete'
  // What was read is overwritten afterwards, as in the memory that all sockets share.
  const shared = Buffer.alloc(256 * 1024)
  for (const piece of pieces) {
    if (state !== 'incomplete') break
    const length = piece.copy(shared)
    state = answer.read(shared.subarray(0, length))
    shared.fill('?', 0, length)
  }
  return { ...got, state, keepsAlive: state === 'complete' && answer.head?.keepsAlive === true && !answer.hasMore, kept: answer.kept }
}

const text = (answer: string): Buffer => Buffer.from(answer, 'latin1')
const head = (...headers: string[]): string => `HTTP/1.1 200 OK\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`
const LENGTH = 'content-length: 3'
const CHUNKED = 'transfer-encoding: chunked'

const PLAIN: readonly [what: string, answer: string, status: number, body: string, keepsAlive?: false][] = [
  ['a length', `${head(LENGTH)}abc`, 200, 'abc'],
  ['a length without a blank before it', `${head('Content-Length:3')}abc`, 200, 'abc'],
  ['chunks', `${head(CHUNKED)}2\r\nab\r\n1\r\nc\r\n0\r\n\r\n`, 200, 'abc'],
  ['chunks of line breaks', `${head(CHUNKED)}2\r\n\r\n\r\n4\r\n0\r\n\r\r\n0\r\n\r\n`, 200, '\r\n0\r\n\r'],
  ['no body', head('content-length: 0'), 200, ''],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 204, ''],
  ['204 with a length of 0', 'HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n', 204, ''],
  ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n', 304, ''],
  ['no reason phrase', 'HTTP/1.1 500\r\ncontent-length: 3\r\n\r\nabc', 500, 'abc'],
  ['characters outside of ASCII', `HTTP/1.1 200 \xe9\r\nx: \xe9\r\n${LENGTH}\r\n\r\n\xe9\0\xff`, 200, '\xe9\0\xff'],
  ['Connection: close', `${head(LENGTH, 'Connection: close')}abc`, 200, 'abc', false],
  ['an offer of HTTP/2', `${head(LENGTH, 'Upgrade: h2,h2c', 'Connection: Upgrade, Keep-Alive')}abc`, 200, 'abc'],
  ['an offer of HTTP/2, and close', `${head(LENGTH, 'Upgrade: h2,h2c', 'Connection: Upgrade, close')}abc`, 200, 'abc', false],
  ['100 Continue', `HTTP/1.1 100 Continue\r\n\r\n${head(LENGTH)}abc`, 200, 'abc'],
  ['several interim answers', `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100\r\n\r\n${head(LENGTH)}abc`, 200, 'abc'],
  ['bytes after it', `${head(LENGTH)}abcd`, 200, 'abc', false],
  ['bytes after the last chunk', `${head(CHUNKED)}3\r\nabc\r\n0\r\n\r\nx`, 200, 'abc', false],
  ['bytes after 204', 'HTTP/1.1 204 No Content\r\n\r\nabc', 204, '', false],
]

const UNUSUAL: readonly [what: string, answer: string][] = [
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['HTML', '<html>hello</html>'],
  ['HTTP/1.0', `HTTP/1.0 200 OK\r\n${LENGTH}\r\n\r\nabc`],
  ['a status of 600', `HTTP/1.1 600 OK\r\n${LENGTH}\r\n\r\nabc`],
  ['101', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'],
  ['an interim answer with a length', `HTTP/1.1 103 Early Hints\r\n${LENGTH}\r\n\r\n${head(LENGTH)}abc`],
  ['an interim answer that closes', `HTTP/1.1 103 Early Hints\r\nconnection: close\r\n\r\n${head(LENGTH)}abc`],
  ['no length', head('x: y')],
  ['two lengths', `${head(LENGTH, LENGTH)}abc`],
  ['a length and chunks', `${head(LENGTH, CHUNKED)}3\r\nabc\r\n0\r\n\r\n`],
  ['a length with a sign', `${head('content-length: +3')}abc`],
  ['a length of 16 digits', head('content-length: 1234567890123456')],
  ['a length that ends with a blank', `${head('content-length: 3 ')}abc`],
  ['204 with a length', `HTTP/1.1 204 No Content\r\n${LENGTH}\r\n\r\n`],
  ['another transfer encoding', head('transfer-encoding: gzip, chunked')],
  ['an unknown option of the connection', head(LENGTH, 'connection: x')],
  ['two Connection headers', head(LENGTH, 'connection: keep-alive', 'connection: close')],
  ['Proxy-Connection', head(LENGTH, 'proxy-connection: close')],
  ['a folded header', head(LENGTH, 'x: a', ' b')],
  ['a blank before the colon', head('content-length : 3')],
  ['LF without CR', 'HTTP/1.1 200 OK\ncontent-length: 3\n\nabc'],
  ['a null byte in a header', head(LENGTH, 'x: a\0b')],
  ['an extension of a chunk', `${head(CHUNKED)}3;a=b\r\nabc\r\n0\r\n\r\n`],
  ['a trailer', `${head(CHUNKED)}3\r\nabc\r\n0\r\nx: y\r\n\r\n`],
  ['a chunk that is longer than its size', `${head(CHUNKED)}3\r\nabcd\r\n0\r\n\r\n`],
  ['an empty size of a chunk', `${head(CHUNKED)}\r\nabc\r\n0\r\n\r\n`],
  ['a long head', `${head(LENGTH, `x: ${'a'.repeat(20_000)}`)}abc`],
  ['a long head without an end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}`],
  ['many chunks', `${head(CHUNKED)}${'1\r\na\r\n'.repeat(4_000)}`],
]

test('plain answers are read here', async (t) => {
  for (const [what, answer, status, body, keepsAlive = true] of PLAIN) {
    await t.test(what, () => {
      const { kept: _kept, ...got } = read(text(answer))
      assert.deepEqual(got, { state: 'complete', status, retryAfter: undefined, body, keepsAlive })
    })
  }
})

test('unusual answers are left to undici, from their first byte', async (t) => {
  for (const [what, answer] of UNUSUAL) {
    await t.test(what, () => {
      const { state, kept } = read(text(answer))
      assert.equal(state, 'unusual')
      assert.equal(kept.toString('latin1'), answer)
    })
  }
})

test('an answer may arrive in pieces of any size', () => {
  for (const [what, answer] of PLAIN) {
    const bytes = text(answer)
    const whole = read(bytes)
    for (let at = 1; at < bytes.length; at++) {
      const { state, status, body } = read(bytes.subarray(0, at), bytes.subarray(at))
      assert.deepEqual([state, status, body], ['complete', whole.status, whole.body], `${what}, ${at}`)
    }
  }
  for (const [what, answer] of UNUSUAL) {
    const bytes = text(answer)
    for (const at of [1, 9, 16, 30]) assert.equal(read(bytes.subarray(0, at), bytes.subarray(at)).state, 'unusual', what)
  }
  // Counted bytes are not kept, so they may come in any number of pieces.
  const drip = [text(head('content-length: 1000')), ...Array.from({ length: 1_000 }, () => text('x'))]
  assert.deepEqual(read(...drip).body, 'x'.repeat(1_000))
})

test('a head or chunks that come in very many pieces are left to undici', () => {
  const pieces = Array.from(text(`${head(CHUNKED)}${'1\r\na\r\n'.repeat(20)}`), (byte) => Buffer.of(byte))
  const { state, kept } = read(...pieces)
  assert.deepEqual([state, kept.length], ['unusual', 33])
})

test('Retry-After and the announced idle time are read', () => {
  const heads = [
    'Retry-After: 30\r\nretry-after: 40\r\nKeep-Alive: timeout=5, max=100\r\n',
    'keep-alive: max=1,timeout=7\r\n',
    'keep-alive: x\r\n',
  ]
  const got = heads.map((headers) => {
    const answer = new PlainAnswer({ onHead: () => undefined, onBody: () => undefined }, null)
    assert.equal(answer.read(text(`HTTP/1.1 503 No\r\n${headers}content-length: 0\r\n\r\n`)), 'complete')
    return [answer.head?.retryAfter, answer.head?.announcedIdleMs]
  })
  assert.deepEqual(got, [
    ['30', 5_000],
    [undefined, 7_000],
    [undefined, null],
  ])
})

test('a head is recognized only if all its bytes are the same', () => {
  const handler = { onHead: () => undefined, onBody: () => undefined }
  const first = new PlainAnswer(handler, null)
  first.read(text('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'))
  for (const [answer, isKnown] of [
    ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', true],
    ['HTTP/1.1 500 OK\r\ncontent-length: 0\r\n\r\n', false],
    ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: y\r\n\r\n', false],
  ] as const) {
    const second = new PlainAnswer(handler, first.head)
    assert.equal(second.read(text(answer)), 'complete')
    assert.equal(second.head === first.head, isKnown)
  }
})

/** How undici reads the bytes, over a stream. */
async function readByUndici(bytes: Buffer): Promise<Reading> {
  const got: Reading = { state: 'incomplete', status: null, retryAfter: undefined, body: '', keepsAlive: false }
  const stream = new Duplex({
    read() {},
    write(_chunk, _encoding, done) {
      done()
    },
  })
  const client = new Client('http://receiver.invalid', {
    connect: (_options, callback) => setImmediate(() => callback(null, stream as never)),
  })
  const written = new Promise<void>((resolve) => {
    client.dispatch(
      { path: '/', method: 'POST' },
      {
        onRequestStart: () => resolve(),
        onResponseStart(_controller, status, headers) {
          if (status >= 200) Object.assign(got, { status, retryAfter: [headers['retry-after']].flat()[0] })
        },
        onResponseData: (_controller, piece) => void (got.body += piece.toString('latin1')),
        onResponseEnd: () => void (got.state = 'complete'),
        onResponseError: () => void (got.state = 'failed'),
      },
    )
  })
  await written
  stream.push(bytes)
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  got.keepsAlive = got.state === 'complete' && !stream.destroyed
  const result = { ...got }
  await client.destroy()
  return result
}

test('undici reads plain answers in the same way, also random and broken ones', async () => {
  const random = randomFrom(20_261)
  const counts: Record<string, number> = {}
  for (let nth = 0; nth < 4_000; nth++) {
    const answer = randomAnswer(random)
    const { kept: _kept, keepsAlive, ...ours } = read(text(answer))
    counts[ours.state] = (counts[ours.state] ?? 0) + 1
    // undici refuses 100 Continue, which is therefore removed before it reads an answer (unusual-answer.ts).
    if (ours.state === 'unusual' || answer.includes('HTTP/1.1 100')) continue
    const { keepsAlive: mayKeepAlive, ...theirs } = await readByUndici(text(answer))
    assert.deepEqual(ours, theirs, JSON.stringify(answer))
    assert.ok(mayKeepAlive || !keepsAlive, JSON.stringify(answer))
  }
  for (const state of ['complete', 'incomplete', 'unusual']) assert.ok((counts[state] ?? 0) > 300, JSON.stringify(counts))
})

const STATUSES = [
  '200 OK',
  '202 ',
  '204 No Content',
  '304 Not Modified',
  '404 Not Found',
  '429 Too Many Requests',
  '500',
  '503 \xe9',
  '600 x',
]
const HEADERS = [
  ['Date: Tue, 01 Jan 2030 00:00:00 GMT', 'Connection: keep-alive', 'Connection: close', 'Connection: Upgrade, Keep-Alive', 'Upgrade: h2c'],
  ['Keep-Alive: timeout=5', 'Retry-After: 30', 'retry-after:  9 ', 'Retry-After: \xa030', 'x: \xe9', 'x:', 'x : y', ' x: y', 'x'],
  ['Connection: x', 'Proxy-Connection: close', 'Set-Cookie: a', 'x: a\nb', 'x: a\rb', 'x: a\x7fb', 'Transfer-Encoding: gzip', 'Trailer: x'],
].flat()
const BODIES = ['', 'a', 'abc', '\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(300)]
const BYTES = ['\r', '\n', ' ', '\t', ':', '0', '1', 'a', '\0', '\x7f', '\xff', ',', ';']

function randomAnswer(random: () => number): string {
  const below = (end: number): number => Math.floor(random() * end)
  const oneOf = (list: readonly string[]): string => list[below(list.length)] as string
  const body = oneOf(BODIES)
  const framing = random()
  const headers = Array.from({ length: below(3) }, () => oneOf(HEADERS))
  if (framing < 0.55) headers.push(`Content-Length:${oneOf([' ', '', '\t'])}${body.length}`)
  else if (framing < 0.95) headers.push(`Transfer-Encoding: ${oneOf(['chunked', 'Chunked', 'chunked '])}`)
  let answer = `${random() < 0.1 ? oneOf(['HTTP/1.1 103 x\r\n\r\n', 'HTTP/1.1 100\r\n\r\n', '\r\n']) : ''}HTTP/1.1 ${oneOf(STATUSES)}\r\n`
  answer += `${headers.map((header) => `${header}\r\n`).join('')}\r\n${framing < 0.55 ? body : inChunks(body, below)}`
  if (random() < 0.05) answer += oneOf(['x', '\r\n', 'HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n'])
  for (let left = random() < 0.4 ? 1 + below(2) : 0; left > 0; left--) {
    const at = below(answer.length)
    answer = answer.slice(0, at) + (random() < 0.7 ? oneOf(BYTES) : '') + answer.slice(at + below(2))
  }
  return random() < 0.2 ? answer.slice(0, 1 + below(answer.length)) : answer
}

function inChunks(body: string, below: (end: number) => number): string {
  let chunks = ''
  for (let at = 0; at < body.length; ) {
    const size = 1 + below(body.length - at)
    chunks += `${size.toString(16)}\r\n${body.slice(at, at + size)}\r\n`
    at += size
  }
  return `${chunks}0\r\n\r\n`
}
