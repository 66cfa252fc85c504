// What is read without node:http, and what happens to a connection when something else follows. plain-requests.test.ts runs the tests of the tracking API
// in this way.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { headersOf, openClient, post, rig, SERVER, untilTrue } from '../fixtures/plain-rig.ts'
import { PlainConnections } from './plain-connections.ts'

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
  const closed: number[] = []
  for (let nth = 0; nth < 400 && closed.length === 0; nth++) {
    const client = await open()
    client.socket.once('close', () => closed.push(nth))
    client.write(post('/v1/track', String(nth)))
    await untilTrue(() => here.length === nth + 1)
    client.write('x'.repeat(60_000))
    const before = plain.aheadBytes
    await untilTrue(() => plain.aheadBytes !== before || closed.length > 0)
  }
  assert.ok(closed.length > 0, 'none was closed')
  assert.ok(plain.aheadBytes <= 32 * 1024 * 1024, String(plain.aheadBytes))
  for (const { answer } of here) answer()
  await untilTrue(() => plain.aheadBytes === 0)
})

test('a connection that is reset ends its request, and a late answer is dropped', async (t) => {
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
