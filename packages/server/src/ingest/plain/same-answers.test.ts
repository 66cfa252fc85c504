// Connections with plain requests give the same answers as Node.js alone, also to requests that are nearly plain.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { answersByNode, post, rig, SERVER } from '../fixtures/plain-rig.ts'

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
