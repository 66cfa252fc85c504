// How an attempt gets its connection, with real receivers on free ports: reused connections, addresses that may be dialled,
// certificates that are valid for the host.

import assert from 'node:assert/strict'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Socket } from 'node:net'
import test, { type TestContext } from 'node:test'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { verdictOfStatus } from '../../../destinations/webhook/verdict.ts'
import {
  assertFailed,
  assertTimedOut,
  clientFor,
  httpReceiver,
  listening,
  post,
  rawReceiver,
  SHORT_MS,
  statusAnswer,
  withResolvers,
} from '../../fixtures/attempts.ts'
import { createCertificate } from '../../fixtures/certificates.ts'
import type { Outcome } from '../../link/outcome.ts'
import { createAddressGuard } from './address-guard.ts'
import type { HttpClient } from './attempt.ts'

const publicOnly = createAddressGuard({ allowPrivate: false, allow: [] })

test('idle connections are reused, the most recently used first, and have no connect timings', async (t) => {
  const ports: (number | undefined)[] = []
  const url = await httpReceiver(t, (request, response) => {
    ports.push(request.socket.remotePort)
    statusAnswer(200)(request, response)
  })
  const client = clientFor(t)
  await Promise.all([post(client, url), post(client, url)])
  const third = await post(client, `${url}/other`)
  const fourth = await post(client, url)
  assert.equal(new Set(ports).size, 2)
  assert.equal(ports[2], ports[3])
  for (const { timings, address } of [third, fourth]) {
    assert.deepEqual([timings.dnsMs, timings.connectMs, timings.tlsMs, address], [null, null, null, '127.0.0.1'])
    assert.notEqual(timings.firstByteMs, null)
  }
})

test('a connection is not reused after the receiver sent Connection: close', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200, { Connection: 'close' }))
  const client = clientFor(t)
  for (let round = 0; round < 3; round += 1) assert.notEqual((await post(client, url)).timings.connectMs, null)
})

/** Starts each request when the one before has its outcome, in the same turn of the event loop. */
function oneByOne(client: HttpClient, url: string, count: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const request = { url, headers: [], body: '{}', timeoutMs: 30_000, verdictOf: verdictOfStatus }
  return new Promise((resolve) => {
    const next = (): void =>
      client.send(request, (outcome) => {
        if (outcomes.push(outcome) === count) resolve(outcomes)
        else next()
      })
    next()
  })
}

test('a request that an outcome starts goes over the same connection', async (t) => {
  const ports = new Set<number | undefined>()
  const url = await httpReceiver(t, (request, response) => {
    ports.add(request.socket.remotePort)
    statusAnswer(200, {}, 'a body')(request, response)
  })
  const [first, ...others] = await oneByOne(clientFor(t), url, 4)
  assert.equal(ports.size, 1)
  assert.notEqual(first?.timings.connectMs, null)
  for (const { verdict, timings } of others) assert.deepEqual([verdict, timings.connectMs], ['success', null])
})

test('a request that an outcome starts is dialled if the receiver closes the connection, or sends more than its response', async (t) => {
  const answers = {
    'Connection: close': (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'),
    'closed although it is kept alive': (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
    'a second response': (socket: Socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 Not asked for\r\nContent-Length: 0\r\n\r\n'),
  }
  for (const [name, answer] of Object.entries(answers)) {
    const url = await rawReceiver(t, answer)
    for (const { verdict, status, timings } of await oneByOne(clientFor(t), url, 4)) {
      assert.deepEqual([verdict, status], ['success', 200], name)
      assert.notEqual(timings.connectMs, null, name)
    }
  }
})

/** A receiver whose connections may be idle for 15 seconds, and an idle connection to it. */
async function idleConnection(t: TestContext): Promise<{ client: HttpClient; url: string; socket: Socket }> {
  const sockets: Socket[] = []
  const url = await rawReceiver(t, (socket) => {
    sockets.push(socket)
    socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 0\r\n\r\n')
  })
  const client = clientFor(t)
  await post(client, url)
  return { client, url, socket: sockets[0] as Socket }
}

const NOT_ASKED_FOR = 'HTTP/1.1 500 Not asked for\r\nContent-Length: 0\r\n\r\n'

test('an idle connection on which bytes arrive is closed at once', async (t) => {
  const { client, url, socket } = await idleConnection(t)
  const startedAtMs = performance.now()
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(NOT_ASKED_FOR)
  await closed
  assert.ok(performance.now() - startedAtMs < 10_000)
  const { status, timings } = await post(client, url)
  assert.deepEqual([status, timings.connectMs === null], [200, false])
})

test('bytes that have arrived on an idle connection, and were not read yet, are not the answer to the next request', async (t) => {
  const { client, url, socket } = await idleConnection(t)
  // In the phase of timers, which comes before sockets are read. What a socket of this process writes has arrived at once.
  await new Promise((resolve) => setTimeout(resolve, 1))
  socket.write(NOT_ASKED_FOR)
  const { status, timings } = await post(client, url)
  assert.deepEqual([status, timings.connectMs === null], [200, false])
})

test('answers over one connection that differ in their last byte only are not mixed up', async (t) => {
  let requests = 0
  const url = await rawReceiver(t, (socket) => {
    requests += 1
    socket.write(`HTTP/1.1 400 No\r\nContent-Length: 1\r\n\r\n${requests}`)
  })
  const client = clientFor(t)
  for (const nth of ['1', '2', '3']) {
    const { responseStart, timings } = await post(client, url)
    assert.deepEqual([responseStart, timings.connectMs === null], [nth, nth !== '1'])
  }
})

test('a receiver that closes every connection after its answer, without announcing it, gets few requests twice', async (t) => {
  let received = 0
  const url = await rawReceiver(t, (socket, chunk) => {
    if (!chunk.includes('POST ')) return
    received += 1
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    setImmediate(() => socket.end())
  })
  for (const { verdict } of await oneByOne(clientFor(t), url, 170)) assert.equal(verdict, 'success')
  assert.ok(received <= 181, `${received} requests`)
})

test('a connection is closed once it has been idle for as long as the receiver announced, less a second', async (t) => {
  const { promise: left, resolve: onLeave } = withResolvers()
  const url = await httpReceiver(t, (request, response) => {
    request.socket.once('close', onLeave)
    statusAnswer(200, { 'Keep-Alive': 'timeout=2' })(request, response)
  })
  await post(clientFor(t), url)
  const startedAtMs = performance.now()
  await left
  const idleMs = performance.now() - startedAtMs
  // If the receiver had announced nothing, it would be idle for four seconds.
  assert.ok(idleMs > 800 && idleMs < 3_500, String(idleMs))
})

test('at the limit of open connections, the one that has been idle longest is closed for each new one', async (t) => {
  const client = clientFor(t, { maxOpen: 3 })
  const urls: string[] = []
  const open = new Map<number, number>()
  const closed: number[] = []
  let allClosed = (): void => undefined
  const untilClosed = new Promise<void>((resolve) => {
    allClosed = resolve
  })
  for (let nth = 0; nth < 6; nth++) {
    const server = createHttpServer(statusAnswer(200)).on('connection', (socket) => {
      open.set(nth, (open.get(nth) ?? 0) + 1)
      socket.once('close', () => {
        if (closed.push(nth) === 3) allClosed()
      })
    })
    urls.push(`http://127.0.0.1:${await listening(t, server)}/`)
  }
  for (const url of urls.slice(0, 3)) assert.equal((await post(client, url)).verdict, 'success')
  // The first connection is now the most recently used.
  assert.equal((await post(client, urls[0] as string)).verdict, 'success')
  for (const url of urls.slice(3)) assert.equal((await post(client, url)).verdict, 'success')
  await untilClosed
  assert.deepEqual(closed, [1, 2, 0])
  assert.deepEqual([...open.values()], [1, 1, 1, 1, 1, 1])
})

test('a reused connection that turns out to be closed is dialled again, which does not count as an outcome', async (t) => {
  for (const leave of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
    // The receiver closes the connection on the second request, as if its idle timeout expired at that moment.
    const seen = new WeakSet<Socket>()
    const url = await rawReceiver(t, (socket) => {
      if (seen.has(socket)) return leave(socket)
      seen.add(socket)
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const client = clientFor(t)
    for (let round = 0; round < 4; round += 1) {
      const outcome = await post(client, url)
      assert.equal(outcome.verdict, 'success', outcome.error ?? '')
      assert.notEqual(outcome.timings.connectMs, null)
    }
  }
})

test('a connection is dialled again only once, and not after the response has begun', async (t) => {
  let requests = 0
  const dying = await rawReceiver(t, (socket, _chunk, nth) => {
    requests += 1
    if (nth === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    else socket.end()
  })
  const client = clientFor(t)
  await post(client, dying)
  const again = await post(client, dying)
  assertFailed(again, 'temporary', 'connection_closed')
  assert.notEqual(again.timings.connectMs, null)
  assert.equal(requests, 3)
  let begun = 0
  const cut = await rawReceiver(t, (socket, _chunk, nth) => {
    begun += 1
    if (nth === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx')
  })
  await post(client, cut)
  assertFailed(await post(client, cut), 'temporary', 'connection_closed')
  assert.equal(begun, 2)
})

test('a connection is not reused after a DELETE with a body, which some servers do not read', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200))
  const client = clientFor(t)
  const isReused = async (body: string): Promise<boolean> =>
    (await post(client, url, { method: 'DELETE', body })).timings.connectMs === null
  assert.deepEqual([await isReused(''), await isReused(''), await isReused('{}'), await isReused('{}')], [false, true, true, false])
})

test('a connection with an unfinished request is not reused', async (t) => {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.pause()
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n')
    })
  })
  const url = `http://127.0.0.1:${await listening(t, server)}/`
  const client = clientFor(t)
  assertFailed(await post(client, url, { body: Buffer.alloc(32 * 1024 * 1024, 'x') }), 'permanent', 'http_413')
  assert.notEqual((await post(client, url)).timings.connectMs, null)
})

test('an address that is not public is not dialled, however it is written', async (t) => {
  let dialled = 0
  const server = createServer(() => (dialled += 1))
  const port = await listening(t, server)
  const client = clientFor(t, { guard: publicOnly })
  const hosts = [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '169.254.169.254',
    '[fd00:ec2::254]',
    'localhost',
  ]
  for (const host of hosts) {
    const outcome = await post(client, `http://${host}:${port}/`)
    assertFailed(outcome, 'permanent', 'address_refused')
    assert.equal(outcome.address, null, host)
  }
  assert.equal(dialled, 0)
})

test('an IPv6 address in the URL is dialled where it is allowed', async (t) => {
  const server = createHttpServer(statusAnswer(200))
  const port = await listening(t, server, '::1').catch(() => undefined)
  if (port === undefined) return t.skip('this machine has no IPv6 loopback')
  const outcome = await post(clientFor(t), `http://[::1]:${port}/`)
  assert.deepEqual([outcome.verdict, outcome.address, outcome.timings.dnsMs], ['success', '::1', null])
})

test('the metadata service is not dialled even where private addresses are allowed', async (t) => {
  assertFailed(await post(clientFor(t), 'http://169.254.169.254/latest/meta-data/'), 'permanent', 'address_refused')
})

test('of the addresses of a name only permitted ones are dialled', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200))
  const named = url.replace('127.0.0.1', 'receiver.example')
  const asked: string[] = []
  const guard = {
    permits: (ip: string): boolean => {
      asked.push(ip)
      return ip === '127.0.0.1'
    },
  }
  const outcome = await post(clientFor(t, { guard, lookup: async () => ['10.9.8.7', '127.0.0.1', '::1'] }), named)
  assert.deepEqual([outcome.verdict, outcome.address], ['success', '127.0.0.1'])
  assert.deepEqual(asked, ['10.9.8.7', '127.0.0.1', '::1'])
  assert.notEqual(outcome.timings.dnsMs, null)
})

test('a name that changes its address after the check is not dialled at the new address (DNS rebinding)', async (t) => {
  let dialled = 0
  const server = createServer((socket) => {
    dialled += 1
    socket.end()
  })
  const port = await listening(t, server)
  let lookups = 0
  // Permitted at first, though nothing listens there; then the loopback address, where something does.
  const lookup = async (): Promise<string[]> => ((lookups += 1) === 1 ? ['127.0.0.77'] : ['127.0.0.1'])
  const guard = createAddressGuard({ allowPrivate: false, allow: ['127.0.0.77'] })
  const client = clientFor(t, { guard, lookup })
  const first = await post(client, `http://rebinding.example:${port}/`)
  assertFailed(first, 'temporary', 'connection_refused')
  assert.deepEqual([first.address, lookups, dialled], ['127.0.0.77', 1, 0])
  assertFailed(await post(client, `http://rebinding.example:${port}/`), 'permanent', 'address_refused')
  assert.deepEqual([lookups, dialled], [2, 0])
})

test('if the first address of a name fails, the next one is dialled', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200))
  const client = clientFor(t, { lookup: async () => ['127.0.0.78', '127.0.0.1'] })
  const outcome = await post(client, url.replace('127.0.0.1', 'two.example'))
  assert.deepEqual([outcome.verdict, outcome.address], ['success', '127.0.0.1'])
  const none = clientFor(t, { lookup: async () => ['127.0.0.78', '127.0.0.79'] })
  assertFailed(await post(none, url.replace('127.0.0.1', 'two.example')), 'temporary', 'connection_refused')
})

test('names that are not found or cannot be looked up are temporary failures', async (t) => {
  const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }))
  const url = 'http://receiver.example/'
  assertFailed(await post(clientFor(t, { lookup: failing('ENOTFOUND') }), url), 'temporary', 'dns_not_found')
  assertFailed(await post(clientFor(t, { lookup: failing('EAI_AGAIN') }), url), 'temporary', 'dns_failure')
  assertFailed(await post(clientFor(t, { lookup: async () => [] }), url), 'temporary', 'dns_not_found')
})

test('a lookup that hangs times out, and is made once for all attempts that wait for it', async (t) => {
  let lookups = 0
  const client = clientFor(t, {
    lookup: () => {
      lookups += 1
      return new Promise<never>(() => undefined)
    },
  })
  const outcomes = await Promise.all([1, 2, 3].map(() => post(client, 'http://slow.example/', { timeoutMs: SHORT_MS })))
  for (const outcome of outcomes) assertTimedOut(outcome, /looked up/)
  assert.equal(lookups, 1)
})

const authority = createCertificate({ commonName: 'Test Authority', isAuthority: true })
const localhost = { commonName: 'localhost', hosts: ['localhost', '127.0.0.1'], issuer: authority }

async function tlsReceiver(t: TestContext, options: TlsOptions, host = '127.0.0.1'): Promise<string> {
  const server = createTlsServer(options, (socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
  })
  return `https://${host}:${await listening(t, server)}/`
}

test('a certificate from a trusted authority is accepted, for a name and for an address', async (t) => {
  const client = clientFor(t, { ca: authority.cert })
  for (const host of ['localhost', '127.0.0.1']) {
    const url = await tlsReceiver(t, createCertificate(localhost), host)
    const first = await post(client, url)
    assert.equal(first.verdict, 'success', first.error ?? '')
    assert.ok((first.timings.tlsMs ?? 0) > 0)
    const second = await post(client, url)
    assert.deepEqual([second.verdict, second.timings.tlsMs], ['success', null])
  }
})

test('the TLS server name is the host name of the URL, not the resolved address', async (t) => {
  const names: unknown[] = []
  const server = createTlsServer(createCertificate({ commonName: 'x', hosts: ['hooks.example'], issuer: authority }), (socket) => {
    names.push((socket as unknown as { servername: unknown }).servername)
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('HTTP/1.1 204 No Content\r\n\r\n'))
  })
  const port = await listening(t, server)
  const client = clientFor(t, { ca: authority.cert, lookup: async () => ['127.0.0.1'] })
  assert.equal((await post(client, `https://hooks.example:${port}/`)).status, 204)
  assert.deepEqual(names, ['hooks.example'])
})

test('a certificate that is self-signed, expired, for another host or from an unknown authority is a permanent failure, and nothing is sent', async (t) => {
  const other = createCertificate({ commonName: 'Other Authority', isAuthority: true })
  const wrong: [reason: string, request: Parameters<typeof createCertificate>[0]][] = [
    ['tls_self_signed', { ...localhost, issuer: undefined as never }],
    ['tls_expired', { ...localhost, notAfter: '20210101000000Z' }],
    ['tls_expired', { ...localhost, notBefore: '20990101000000Z' }],
    ['tls_wrong_host', { ...localhost, hosts: ['elsewhere.example'] }],
    ['tls_untrusted', { ...localhost, issuer: other }],
  ]
  const client = clientFor(t, { ca: authority.cert })
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED)
  for (const [reason, request] of wrong) {
    let received = 0
    const server = createTlsServer(createCertificate(request), (socket) => {
      socket.on('error', () => undefined)
      socket.on('data', () => (received += 1))
    })
    server.on('tlsClientError', () => undefined)
    const outcome = await post(client, `https://localhost:${await listening(t, server)}/`)
    assertFailed(outcome, 'permanent', reason)
    assert.equal(received, 0)
  }
})

test('other handshake errors are temporary failures', async (t) => {
  const client = clientFor(t, { ca: authority.cert })
  const plain = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const reset = await rawReceiver(t, (socket) => socket.resetAndDestroy())
  const closing = await rawReceiver(t, (socket) => socket.end())
  for (const url of [plain, reset, closing]) assertFailed(await post(client, url.replace('http:', 'https:')), 'temporary', 'tls_failure')
  const silent = await rawReceiver(t, () => undefined)
  assertTimedOut(await post(client, silent.replace('http:', 'https:'), { timeoutMs: SHORT_MS }), /TLS handshake/)
})
