import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import Fastify from 'fastify'
import { boundConnections, type Connections, MAX_UNANSWERED, queuedIn, UNREAD_MS } from './connections.ts'

interface Rig extends Connections {
  port: number
  /** Requests that reached their route. */
  handled: () => number
  /** Opens a connection and returns both ends of it. */
  open: () => Promise<{ client: Socket; server: Socket }>
}

const MB = 1024 * 1024
/** More than the buffers of both kernels hold. */
const LARGE = Buffer.alloc(32 * MB, 'x')

async function rig(t: TestContext): Promise<Rig> {
  const app = Fastify({ forceCloseConnections: true })
  const connections = boundConnections(app)
  let handled = 0
  app.get('/small', () => {
    handled++
    return 'small'
  })
  app.get('/large', (_request, reply) => {
    handled++
    return reply.send(LARGE)
  })
  app.get('/never', () => {
    handled++
    return new Promise(() => {})
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as AddressInfo
  return {
    ...connections,
    port,
    handled: () => handled,
    async open() {
      const arrived = once(app.server, 'connection') as Promise<[Socket]>
      const client = connect(port, '127.0.0.1')
      client.on('error', () => {})
      t.after(() => client.destroy())
      const [server] = await arrived
      return { client, server }
    },
  }
}

const requests = (path: string, count: number): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(count)

/** Resolves when this many responses have been read. */
async function answers(client: Socket, count: number): Promise<void> {
  let text = ''
  for await (const chunk of client.iterator({ destroyOnReturn: false })) {
    text += String(chunk)
    if (text.split('HTTP/1.1 200').length > count) return
  }
  assert.fail(`closed after ${text.split('HTTP/1.1 200').length - 1} answers`)
}

/** Resolves when the service has bytes to send that the client does not read. */
async function backlogged(server: Socket): Promise<void> {
  while (server.writableLength === 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('a connection can pipeline requests repeatedly, and each is answered', async (t) => {
  const { open, handled } = await rig(t)
  const { client } = await open()
  for (let round = 0; round < 3; round++) {
    client.write(requests('/small', MAX_UNANSWERED))
    await answers(client, MAX_UNANSWERED)
  }
  assert.equal(handled(), 3 * MAX_UNANSWERED)
})

for (const path of ['/small', '/large', '/never']) {
  test(`a connection with too many unanswered requests for ${path} is closed, and the requests above the limit are not handled`, async (t) => {
    const { open, handled } = await rig(t)
    const { client, server } = await open()
    const closed = once(server, 'close')
    client.write(requests(path, 1_700))
    await closed
    assert.equal(handled(), MAX_UNANSWERED)
    const other = await open()
    other.client.write(requests('/small', 1))
    await answers(other.client, 1)
  })
}

test('requests to unknown paths count as well', async (t) => {
  const { open } = await rig(t)
  const { client, server } = await open()
  const closed = once(server, 'close')
  client.write(requests('/nowhere', 1_700))
  await closed
})

test('a connection whose client does not read its response is closed after a while', async (t) => {
  const { open, sweep } = await rig(t)
  const { client, server } = await open()
  client.pause().write(requests('/large', 2))
  await backlogged(server)
  sweep(0)
  sweep(UNREAD_MS - 1)
  assert.ok(!server.destroyed)
  sweep(UNREAD_MS)
  assert.ok(server.destroyed)
})

test('a connection whose client reads slowly stays open, and so does one that waits for a response', async (t) => {
  const { open, sweep, handled } = await rig(t)
  const slow = await open()
  slow.client.pause().write(requests('/large', 1))
  await backlogged(slow.server)
  const waiting = await open()
  waiting.client.write(requests('/never', 1))
  while (handled() < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  const idle = await open()
  slow.client.on('data', () => {})
  for (let nowMs = 0; nowMs < 3 * UNREAD_MS; nowMs += UNREAD_MS) {
    slow.client.pause()
    sweep(nowMs)
    const before = queuedIn(slow.server)
    slow.client.resume()
    while (queuedIn(slow.server) === before) await new Promise((resolve) => setImmediate(resolve))
    sweep(nowMs + UNREAD_MS)
    assert.deepEqual([slow.server.destroyed, waiting.server.destroyed, idle.server.destroyed], [false, false, false])
  }
})

test('connections that have sent nothing are tracked', async (t) => {
  const { open, silent } = await rig(t)
  const { client, server } = await open()
  assert.deepEqual([...silent], [server])
  client.write(requests('/small', 1))
  await answers(client, 1)
  assert.deepEqual([...silent], [])
  const gone = await open()
  gone.client.destroy()
  await once(gone.server, 'close')
  assert.deepEqual([...silent], [])
})
