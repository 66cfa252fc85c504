// Tests the proxy that simulates a broken network: it must lose nothing while connected, and close nothing when cut.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { Signals } from '../system/signals.ts'
import { DatabaseProxy } from './proxy.ts'

test('a cut proxy holds back data and new connections, closes nothing, and delivers all of it when it is healed', async () => {
  const signals = new Signals()
  const heard: string[] = []
  const ends: number[] = []
  let connections = 0
  const server = createServer((socket) => {
    const nth = ++connections
    socket.setEncoding('utf8').on('data', (text: string) => {
      heard.push(text)
      socket.write(text.toUpperCase())
      signals.notify()
    })
    socket.on('end', () => {
      ends.push(nth)
      signals.notify()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using proxy = await DatabaseProxy.start((server.address() as { port: number }).port)
  const answers = new Map<Socket, string>()
  const open = async (): Promise<Socket> => {
    const socket = connect(proxy.port, '127.0.0.1')
    answers.set(socket, '')
    socket.setEncoding('utf8').on('data', (text: string) => {
      answers.set(socket, answers.get(socket) + text)
      signals.notify()
    })
    socket.on('close', () => signals.notify())
    await once(socket, 'connect')
    return socket
  }

  const kept = await open()
  const givenUp = await open()
  kept.write('a')
  givenUp.write('b')
  await signals.until(() => answers.get(kept) === 'A' && answers.get(givenUp) === 'B')

  proxy.cut()
  kept.write('c')
  givenUp.write('d')
  givenUp.destroy()
  const fresh = await open()
  fresh.write('e')
  await signals.until(() => proxy.swallowed === 1)
  // Longer than any of this takes here; there is no signal for something that does not happen.
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.deepEqual([heard.sort(), ends, connections], [['a', 'b'], [], 2])
  assert.equal(kept.closed, false)

  proxy.heal()
  await signals.until(() => answers.get(kept) === 'AC' && answers.get(fresh) === 'E' && ends.length === 1)
  assert.deepEqual([heard.sort(), connections], [['a', 'b', 'c', 'd', 'e'], 3])
  for (const socket of [kept, fresh]) socket.destroy()
  await signals.until(() => ends.length === 3)
  server.close()
})

test('a slow proxy delays both directions and keeps the order, and reset() breaks all connections', async (t) => {
  const server = createServer((socket) => void socket.on('error', () => {}).pipe(socket))
  t.after(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using proxy = await DatabaseProxy.start((server.address() as { port: number }).port)
  const signals = new Signals()
  let answer = ''
  const socket = connect(proxy.port, '127.0.0.1')
  socket
    .setEncoding('utf8')
    .on('data', (text: string) => {
      answer += text
      signals.notify()
    })
    .on('error', () => {})
  proxy.slow({ delayMs: 40, bytesPerSecond: 1_000 })
  const since = performance.now()
  socket.write('a'.repeat(30))
  await signals.until(() => answer.length === 30)
  assert.ok(performance.now() - since >= 2 * (40 + 30) - 5, 'latency and transfer, there and back')
  socket.write('b')
  // What is sent afterwards must not overtake it.
  await new Promise((resolve) => setTimeout(resolve, 10))
  proxy.heal()
  socket.write('c')
  await signals.until(() => answer.length === 32)
  assert.equal(answer.slice(30), 'bc')
  const closed = new Promise((resolve) => socket.once('close', resolve))
  assert.equal(proxy.reset(), 1)
  await closed
})
