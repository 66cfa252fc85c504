// Attempts at real receivers on free ports, most of them ill-behaved. A deadline that has to pass is kept short.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import test, { type TestContext } from 'node:test'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { verdictOfStatus } from '../../destinations/webhook/verdict.ts'
import { createCertificate } from '../fixtures/certificates.ts'
import { createAddressGuard } from './address-guard.ts'
import { createSender, MAX_RESPONSE_BYTES, type Sender, type SenderOptions, type SendRequest } from './attempt.ts'
import type { Outcome } from './outcome.ts'

const SHORT_MS = 150
const anywhere = createAddressGuard({ allowPrivate: true, allow: [] })
const publicOnly = createAddressGuard({ allowPrivate: false, allow: [] })

function senderFor(t: TestContext, options: Partial<SenderOptions> = {}): Sender {
  const sender = createSender({ guard: anywhere, closeGraceMs: 0, ...options })
  t.after(() => sender.close())
  return sender
}

function post(sender: Sender, url: string, given: Partial<SendRequest> = {}): Promise<Outcome> {
  const headers = ['content-type', 'application/json']
  return sender.send({ url, headers, body: '{"type":"track"}', timeoutMs: 3_000, verdictOf: verdictOfStatus, ...given })
}

async function listening(t: TestContext, server: Server, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Talks bytes: `answer` is called with every chunk that arrives. */
async function rawReceiver(t: TestContext, answer: (socket: Socket, chunk: Buffer, nth: number) => void): Promise<string> {
  let nth = 0
  const server = createServer((socket) => socket.on('data', (chunk) => answer(socket, chunk, (nth += 1))))
  return `http://127.0.0.1:${await listening(t, server)}/hook`
}

async function httpReceiver(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createHttpServer(listener)
  return `http://127.0.0.1:${await listening(t, server)}/hook`
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function statusAnswer(status: number, headers: Record<string, string> = {}, body = ''): RequestListener {
  return (request, response) => {
    request.resume()
    response.writeHead(status, headers).end(body)
  }
}

function assertFailed(outcome: Outcome, verdict: 'temporary' | 'permanent', reason: string): void {
  assert.deepEqual([outcome.verdict, outcome.reason], [verdict, reason])
  assert.match(outcome.error ?? '', /^[A-Z].*\.$/)
}

/** The deadline passed and not much more. */
function assertTimedOut(outcome: Outcome, doing: RegExp): void {
  assertFailed(outcome, 'temporary', 'timeout')
  assert.match(outcome.error ?? '', doing)
  const { totalMs } = outcome.timings
  assert.ok(totalMs >= SHORT_MS - 5 && totalMs < SHORT_MS + 1_000, String(totalMs))
}

test('a message is posted whole, with its headers and its length, and a 2xx is a success', async (t) => {
  let got: unknown
  const url = await httpReceiver(t, (request, response) => {
    void readAll(request).then((body) => {
      got = [request.method, request.url, request.rawHeaders.join(), body]
      response.writeHead(202).end('ignored')
    })
  })
  const body = '{"name":"é ✓ 🎉"}'
  const outcome = await post(senderFor(t), `${url}?a=b%20c`, { body, headers: ['Content-Type', 'application/json', 'X-Attempt', '1'] })
  const { timings, ...rest } = outcome
  assert.deepEqual(rest, {
    verdict: 'success',
    status: 202,
    reason: null,
    error: null,
    address: '127.0.0.1',
    retryAfterMs: null,
    responseStart: null,
  })
  assert.deepEqual([timings.dnsMs, timings.tlsMs], [null, null])
  for (const value of [timings.connectMs, timings.firstByteMs, timings.totalMs]) assert.ok(value !== null && value >= 0 && value < 3_000)
  assert.deepEqual(got, [
    'POST',
    '/hook?a=b%20c',
    `host,${new URL(url).host},connection,keep-alive,Content-Type,application/json,X-Attempt,1,content-length,${Buffer.byteLength(body)}`,
    body,
  ])
})

test('a body of bytes is posted as it is, and an empty one with a length of 0', async (t) => {
  const bodies: [string, string | undefined][] = []
  const url = await httpReceiver(t, (request, response) => {
    void readAll(request).then((body) => {
      bodies.push([body, request.headers['content-length']])
      response.end()
    })
  })
  const sender = senderFor(t)
  await post(sender, url, { body: Buffer.from('[1,2]') })
  await post(sender, url, { body: '' })
  assert.deepEqual(bodies, [
    ['[1,2]', '5'],
    ['', '0'],
  ])
})

test('every status counts as the decisions say, and a failure keeps the start of the answer', async (t) => {
  const url = await httpReceiver(t, (request, response) => {
    request.resume()
    response.writeHead(Number(request.url?.slice(6))).end('why')
  })
  const sender = senderFor(t)
  const expected: [status: number, verdict: string][] = [
    [200, 'success'],
    [299, 'success'],
    [300, 'permanent'],
    [400, 'permanent'],
    [404, 'permanent'],
    [408, 'temporary'],
    [410, 'permanent'],
    [425, 'temporary'],
    [429, 'temporary'],
    [500, 'temporary'],
    [501, 'permanent'],
    [503, 'temporary'],
    [505, 'permanent'],
    [599, 'temporary'],
    [600, 'permanent'],
  ]
  for (const [status, verdict] of expected) {
    const outcome = await post(sender, `${url}/${status}`)
    const failed = verdict !== 'success'
    assert.deepEqual(
      [outcome.verdict, outcome.status, outcome.reason, outcome.responseStart],
      [verdict, status, failed ? `http_${status}` : null, failed ? 'why' : null],
    )
  }
})

test('redirects are not followed', async (t) => {
  let requests = 0
  const url = await httpReceiver(t, (request, response) => {
    requests += 1
    statusAnswer(307, { Location: '/elsewhere' })(request, response)
  })
  assertFailed(await post(senderFor(t), url), 'permanent', 'http_307')
  assert.equal(requests, 1)
})

test('204 needs no body, and interim answers are passed over', async (t) => {
  const sender = senderFor(t)
  assert.equal((await post(sender, await httpReceiver(t, statusAnswer(204)))).status, 204)
  for (const interim of ['100 Continue', '100 Continue\r\n\r\nHTTP/1.1 100 Continue', '102 Processing', '103 Early Hints\r\nLink: </a>']) {
    const together = await rawReceiver(t, (socket) => {
      socket.write(`HTTP/1.1 ${interim}\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n`)
    })
    const apart = await rawReceiver(t, (socket) => {
      socket.write(`HTTP/1.1 ${interim}\r\n\r\n`)
      setImmediate(() => setImmediate(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')))
    })
    assert.equal((await post(sender, together)).status, 204, interim)
    assert.equal((await post(sender, apart)).status, 200, interim)
    assert.equal((await post(sender, apart)).timings.connectMs, null, `${interim}, reused`)
  }
})

test('Retry-After is heard on 429 and 503', async (t) => {
  const nowMs = Date.UTC(2030, 0, 1)
  const sender = senderFor(t, { now: () => nowMs })
  const asked = async (status: number, retryAfter: string): Promise<number | null> =>
    (await post(sender, await httpReceiver(t, statusAnswer(status, { 'Retry-After': retryAfter })))).retryAfterMs
  assert.equal(await asked(429, '30'), 30_000)
  assert.equal(await asked(503, 'Tue, 01 Jan 2030 00:01:00 GMT'), 60_000)
  assert.equal(await asked(503, 'tomorrow'), null)
  assert.equal(await asked(500, '30'), null)
})

test('a receiver that never answers times out', async (t) => {
  const url = await rawReceiver(t, () => undefined)
  assertTimedOut(await post(senderFor(t), url, { timeoutMs: SHORT_MS }), /waiting for the answer/)
})

test('a receiver that drips its headers or its body times out, whatever the status', async (t) => {
  const drip = (start: string) => (socket: Socket) => {
    socket.write(start)
    const timer = setInterval(() => socket.write('x'), 20)
    socket.once('close', () => clearInterval(timer))
  }
  const sender = senderFor(t)
  const headers = await post(sender, await rawReceiver(t, drip('HTTP/1.1 200 OK\r\nX-Slow: ')), { timeoutMs: SHORT_MS })
  assertTimedOut(headers, /waiting for the answer/)
  const body = await post(sender, await rawReceiver(t, drip('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')), { timeoutMs: SHORT_MS })
  assertTimedOut(body, /answer was being read/)
  assert.equal(body.status, 200)
  const endless = await post(sender, await rawReceiver(t, drip('HTTP/1.1 500 No\r\n\r\n')), { timeoutMs: SHORT_MS })
  assertTimedOut(endless, /answer was being read/)
  assert.match(endless.responseStart ?? '', /^x+$/)
})

test('a receiver that never reads a large body times out', async (t) => {
  const server = createServer({ pauseOnConnect: true })
  const url = `http://127.0.0.1:${await listening(t, server)}/`
  const outcome = await post(senderFor(t), url, { body: Buffer.alloc(64 * 1024 * 1024, 'x'), timeoutMs: SHORT_MS })
  assertTimedOut(outcome, /request was being sent/)
})

test('a receiver that sends a gigabyte is cut off after 64 KB and counts by its status', async (t) => {
  for (const [status, verdict] of [
    [200, 'success'],
    [500, 'temporary'],
  ] as const) {
    let written = 0
    const chunk = Buffer.alloc(65_536, 'é')
    const { promise: closed, resolve: onClosed } = withResolvers()
    const url = await rawReceiver(t, (socket) => {
      socket.write(`HTTP/1.1 ${status} Long\r\nContent-Length: 1073741824\r\n\r\n`)
      const more = (): void => {
        while (!socket.destroyed && written < 2 ** 30) {
          written += chunk.length
          if (!socket.write(chunk)) return
        }
      }
      socket.on('drain', more).once('close', onClosed)
      more()
    })
    const outcome = await post(senderFor(t), url)
    assert.deepEqual([outcome.verdict, outcome.status], [verdict, status])
    await closed
    // What the kernel's two buffers hold comes on top of what was read.
    assert.ok(written < 32 * 1024 * 1024, `${written} bytes taken`)
    if (status === 500) assert.equal(outcome.responseStart, 'é'.repeat(2_048))
  }
})

test('the start of a good answer is kept where it is asked for', async (t) => {
  const url = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  const sender = senderFor(t)
  assert.equal((await post(sender, url)).responseStart, null)
  assert.equal((await post(sender, url, { keepAnswer: true })).responseStart, 'ok')
})

test('an answer that reaches 64 KB and then stalls counts by its status, and a shorter one does not', async (t) => {
  const stalling = (bodyBytes: number): Promise<string> =>
    rawReceiver(t, (socket) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(bodyBytes)}`))
  const sender = senderFor(t)
  assert.equal((await post(sender, await stalling(MAX_RESPONSE_BYTES))).verdict, 'success')
  assertTimedOut(await post(sender, await stalling(MAX_RESPONSE_BYTES - 1), { timeoutMs: SHORT_MS }), /being read/)
})

test('the kept start of an answer is at most 4 KB of text that any store takes', async (t) => {
  const sender = senderFor(t)
  const keptOf = async (body: Buffer): Promise<string> =>
    (await post(sender, await rawReceiver(t, (socket) => socket.end(Buffer.concat([Buffer.from('HTTP/1.1 400 No\r\n\r\n'), body])))))
      .responseStart ?? ''
  assert.equal(await keptOf(Buffer.from('a\0b')), 'a\uFFFDb')
  const broken = await keptOf(Buffer.alloc(5_000, 0xff))
  assert.ok(Buffer.byteLength(broken) <= 4_096 && /^\uFFFD+$/.test(broken))
  const cut = await keptOf(Buffer.from(`a${'✓'.repeat(3_000)}`))
  assert.ok(Buffer.byteLength(cut) <= 4_096 && cut.startsWith('a✓✓'))
})

test('connections that are refused, reset or closed are temporary failures', async (t) => {
  const sender = senderFor(t)
  const server = createServer()
  const port = await listening(t, server)
  server.close()
  await once(server, 'close')
  const refused = await post(sender, `http://127.0.0.1:${port}/`)
  assertFailed(refused, 'temporary', 'connection_refused')
  assert.equal(refused.address, '127.0.0.1')
  assertFailed(await post(sender, await rawReceiver(t, (socket) => socket.resetAndDestroy())), 'temporary', 'connection_reset')
  assertFailed(await post(sender, await rawReceiver(t, (socket) => socket.end())), 'temporary', 'connection_closed')
  const short = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort'))
  const cut = await post(sender, short)
  assertFailed(cut, 'temporary', 'connection_closed')
  assert.equal(cut.status, 200)
})

test('an answer that ends with the connection is whole', async (t) => {
  const url = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'))
  assert.equal((await post(senderFor(t), url)).verdict, 'success')
})

test('what is not HTTP/1.1 is a temporary failure', async (t) => {
  const garbage = [
    'SSH-2.0-OpenSSH_9.6\r\n',
    '<html>hello</html>',
    'HTTP/1.1 abc\r\n\r\n',
    'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`,
  ]
  const sender = senderFor(t)
  for (const text of garbage) {
    const url = await rawReceiver(t, (socket) => socket.write(text))
    assertFailed(await post(sender, url, { timeoutMs: 1_000 }), 'temporary', 'invalid_response')
  }
})

test('a kept connection is used again, the one used last first, and then no dialling is timed', async (t) => {
  const ports: (number | undefined)[] = []
  const url = await httpReceiver(t, (request, response) => {
    ports.push(request.socket.remotePort)
    statusAnswer(200)(request, response)
  })
  const sender = senderFor(t)
  await Promise.all([post(sender, url), post(sender, url)])
  const third = await post(sender, `${url}/other`)
  const fourth = await post(sender, url)
  assert.equal(new Set(ports).size, 2)
  assert.equal(ports[2], ports[3])
  for (const { timings, address } of [third, fourth]) {
    assert.deepEqual([timings.dnsMs, timings.connectMs, timings.tlsMs, address], [null, null, null, '127.0.0.1'])
    assert.notEqual(timings.firstByteMs, null)
  }
})

test('a connection that the receiver announces to close is not used again', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200, { Connection: 'close' }))
  const sender = senderFor(t)
  for (let round = 0; round < 3; round += 1) assert.notEqual((await post(sender, url)).timings.connectMs, null)
})

test('a connection is closed once it has been idle for as long as the receiver announced, less a second', async (t) => {
  const { promise: left, resolve: onLeave } = withResolvers()
  const url = await httpReceiver(t, (request, response) => {
    request.socket.once('close', onLeave)
    statusAnswer(200, { 'Keep-Alive': 'timeout=2' })(request, response)
  })
  await post(senderFor(t), url)
  const startedAtMs = performance.now()
  await left
  const idleMs = performance.now() - startedAtMs
  assert.ok(idleMs > 800 && idleMs < 1_900, String(idleMs))
})

test('at the limit of open connections, the one that has been idle longest is closed for each new one', async (t) => {
  const sender = senderFor(t, { maxOpen: 3 })
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
  for (const url of urls.slice(0, 3)) assert.equal((await post(sender, url)).verdict, 'success')
  // Used again, it is the warmest.
  assert.equal((await post(sender, urls[0] as string)).verdict, 'success')
  for (const url of urls.slice(3)) assert.equal((await post(sender, url)).verdict, 'success')
  await untilClosed
  assert.deepEqual(closed, [1, 2, 0])
  assert.deepEqual([...open.values()], [1, 1, 1, 1, 1, 1])
})

test('a kept connection that turns out closed is dialled again, and that is no outcome', async (t) => {
  for (const leave of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
    // The second request on a connection is met with its end, as when the receiver's patience runs out at that moment.
    const seen = new WeakSet<Socket>()
    const url = await rawReceiver(t, (socket) => {
      if (seen.has(socket)) return leave(socket)
      seen.add(socket)
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const sender = senderFor(t)
    for (let round = 0; round < 4; round += 1) {
      const outcome = await post(sender, url)
      assert.equal(outcome.verdict, 'success', outcome.error ?? '')
      assert.notEqual(outcome.timings.connectMs, null)
    }
  }
})

test('a connection is dialled again once only, and not after the answer has begun', async (t) => {
  let requests = 0
  const dying = await rawReceiver(t, (socket, _chunk, nth) => {
    requests += 1
    if (nth === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    else socket.end()
  })
  const sender = senderFor(t)
  await post(sender, dying)
  const again = await post(sender, dying)
  assertFailed(again, 'temporary', 'connection_closed')
  assert.notEqual(again.timings.connectMs, null)
  assert.equal(requests, 3)
  let begun = 0
  const cut = await rawReceiver(t, (socket, _chunk, nth) => {
    begun += 1
    if (nth === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx')
  })
  await post(sender, cut)
  assertFailed(await post(sender, cut), 'temporary', 'connection_closed')
  assert.equal(begun, 2)
})

test('a connection with the rest of a request in it is not used again', async (t) => {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.pause()
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n')
    })
  })
  const url = `http://127.0.0.1:${await listening(t, server)}/`
  const sender = senderFor(t)
  assertFailed(await post(sender, url, { body: Buffer.alloc(32 * 1024 * 1024, 'x') }), 'permanent', 'http_413')
  assert.notEqual((await post(sender, url)).timings.connectMs, null)
})

test('an address that is not public is not dialled, however it is written', async (t) => {
  let dialled = 0
  const server = createServer(() => (dialled += 1))
  const port = await listening(t, server)
  const sender = senderFor(t, { guard: publicOnly })
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
    const outcome = await post(sender, `http://${host}:${port}/`)
    assertFailed(outcome, 'permanent', 'address_refused')
    assert.equal(outcome.address, null, host)
  }
  assert.equal(dialled, 0)
})

test('an IPv6 address in the URL is dialled where it is allowed', async (t) => {
  const server = createHttpServer(statusAnswer(200))
  const port = await listening(t, server, '::1').catch(() => undefined)
  if (port === undefined) return t.skip('this machine has no IPv6 loopback')
  const outcome = await post(senderFor(t), `http://[::1]:${port}/`)
  assert.deepEqual([outcome.verdict, outcome.address, outcome.timings.dnsMs], ['success', '::1', null])
})

test('the metadata service is not dialled even where private addresses are allowed', async (t) => {
  assertFailed(await post(senderFor(t), 'http://169.254.169.254/latest/meta-data/'), 'permanent', 'address_refused')
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
  const outcome = await post(senderFor(t, { guard, lookup: async () => ['10.9.8.7', '127.0.0.1', '::1'] }), named)
  assert.deepEqual([outcome.verdict, outcome.address], ['success', '127.0.0.1'])
  assert.deepEqual(asked, ['10.9.8.7', '127.0.0.1', '::1'])
  assert.notEqual(outcome.timings.dnsMs, null)
})

test('a name that changes its address between the check and the dialling gains nothing', async (t) => {
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
  const sender = senderFor(t, { guard, lookup })
  const first = await post(sender, `http://rebinding.example:${port}/`)
  assertFailed(first, 'temporary', 'connection_refused')
  assert.deepEqual([first.address, lookups, dialled], ['127.0.0.77', 1, 0])
  assertFailed(await post(sender, `http://rebinding.example:${port}/`), 'permanent', 'address_refused')
  assert.deepEqual([lookups, dialled], [2, 0])
})

test('the next address of a name is dialled where the first one fails', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200))
  const sender = senderFor(t, { lookup: async () => ['127.0.0.78', '127.0.0.1'] })
  const outcome = await post(sender, url.replace('127.0.0.1', 'two.example'))
  assert.deepEqual([outcome.verdict, outcome.address], ['success', '127.0.0.1'])
  const none = senderFor(t, { lookup: async () => ['127.0.0.78', '127.0.0.79'] })
  assertFailed(await post(none, url.replace('127.0.0.1', 'two.example')), 'temporary', 'connection_refused')
})

test('names that are not found or cannot be looked up are temporary failures', async (t) => {
  const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }))
  const url = 'http://receiver.example/'
  assertFailed(await post(senderFor(t, { lookup: failing('ENOTFOUND') }), url), 'temporary', 'dns_not_found')
  assertFailed(await post(senderFor(t, { lookup: failing('EAI_AGAIN') }), url), 'temporary', 'dns_failure')
  assertFailed(await post(senderFor(t, { lookup: async () => [] }), url), 'temporary', 'dns_not_found')
})

test('a lookup that hangs times out, and is asked once for all that wait for it', async (t) => {
  let lookups = 0
  const sender = senderFor(t, {
    lookup: () => {
      lookups += 1
      return new Promise<never>(() => undefined)
    },
  })
  const outcomes = await Promise.all([1, 2, 3].map(() => post(sender, 'http://slow.example/', { timeoutMs: SHORT_MS })))
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
  const sender = senderFor(t, { ca: authority.cert })
  for (const host of ['localhost', '127.0.0.1']) {
    const url = await tlsReceiver(t, createCertificate(localhost), host)
    const first = await post(sender, url)
    assert.equal(first.verdict, 'success', first.error ?? '')
    assert.ok((first.timings.tlsMs ?? 0) > 0)
    const second = await post(sender, url)
    assert.deepEqual([second.verdict, second.timings.tlsMs], ['success', null])
  }
})

test('the name of the URL is the server name, also where the address was resolved to', async (t) => {
  const names: unknown[] = []
  const server = createTlsServer(createCertificate({ commonName: 'x', hosts: ['hooks.example'], issuer: authority }), (socket) => {
    names.push((socket as unknown as { servername: unknown }).servername)
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('HTTP/1.1 204 No Content\r\n\r\n'))
  })
  const port = await listening(t, server)
  const sender = senderFor(t, { ca: authority.cert, lookup: async () => ['127.0.0.1'] })
  assert.equal((await post(sender, `https://hooks.example:${port}/`)).status, 204)
  assert.deepEqual(names, ['hooks.example'])
})

test('a certificate that is self-signed, expired, for another host or of an unknown authority fails for good, unsent', async (t) => {
  const other = createCertificate({ commonName: 'Other Authority', isAuthority: true })
  const wrong: [reason: string, request: Parameters<typeof createCertificate>[0]][] = [
    ['tls_self_signed', { ...localhost, issuer: undefined as never }],
    ['tls_expired', { ...localhost, notAfter: '20210101000000Z' }],
    ['tls_expired', { ...localhost, notBefore: '20990101000000Z' }],
    ['tls_wrong_host', { ...localhost, hosts: ['elsewhere.example'] }],
    ['tls_untrusted', { ...localhost, issuer: other }],
  ]
  const sender = senderFor(t, { ca: authority.cert })
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED)
  for (const [reason, request] of wrong) {
    let received = 0
    const server = createTlsServer(createCertificate(request), (socket) => {
      socket.on('error', () => undefined)
      socket.on('data', () => (received += 1))
    })
    server.on('tlsClientError', () => undefined)
    const outcome = await post(sender, `https://localhost:${await listening(t, server)}/`)
    assertFailed(outcome, 'permanent', reason)
    assert.equal(received, 0)
  }
})

test('other trouble in the handshake is a temporary failure', async (t) => {
  const sender = senderFor(t, { ca: authority.cert })
  const plain = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const reset = await rawReceiver(t, (socket) => socket.resetAndDestroy())
  const closing = await rawReceiver(t, (socket) => socket.end())
  for (const url of [plain, reset, closing]) assertFailed(await post(sender, url.replace('http:', 'https:')), 'temporary', 'tls_failure')
  const silent = await rawReceiver(t, () => undefined)
  assertTimedOut(await post(sender, silent.replace('http:', 'https:'), { timeoutMs: SHORT_MS }), /TLS handshake/)
})

test('a header that would break out of its line is not sent', async (t) => {
  let requests = 0
  const url = await rawReceiver(t, () => (requests += 1))
  const sender = senderFor(t)
  const breaking = [
    ['x-a', 'b\r\nX-Injected: 1'],
    ['x-a', 'b\n\nGET / HTTP/1.1'],
    ['x-a', 'b\0c'],
    ['x-a\r\nX-Injected', '1'],
    ['x a', '1'],
    ['', '1'],
    ['transfer-encoding', 'chunked'],
    ['content-length', '1'],
    ['odd'],
  ]
  for (const headers of breaking) assertFailed(await post(sender, url, { headers }), 'permanent', 'invalid_request')
  assert.equal(requests, 0)
})

test('a URL that is not http or https is not sent', async (t) => {
  const sender = senderFor(t)
  for (const url of ['', 'nonsense', 'ftp://example.com/', 'file:///etc/passwd', 'http://', 'http://[::1', 'javascript:1']) {
    assertFailed(await post(sender, url), 'permanent', 'invalid_request')
  }
})

test('a line break in a URL does not reach the request line', async (t) => {
  let line: string | undefined
  const url = await rawReceiver(t, (socket, chunk) => {
    line = chunk.toString().split('\r\n', 1)[0]
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  })
  await post(senderFor(t), `${url}\r\nX-Injected: 1 HTTP/1.1`)
  assert.equal(line, 'POST /hookX-Injected:%201%20HTTP/1.1 HTTP/1.1')
})

test('a user name and password in the URL become Basic authorization, unless the headers have their own', async (t) => {
  const seen: (string | undefined)[] = []
  const url = await httpReceiver(t, (request, response) => {
    seen.push(request.headers.authorization)
    statusAnswer(200)(request, response)
  })
  const sender = senderFor(t)
  const withUser = url.replace('//', '//us%20er:p%40%C3%A9s@')
  await post(sender, withUser)
  await post(sender, withUser, { headers: ['Authorization', 'Bearer own'] })
  await post(sender, url.replace('//', '//only@'))
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
  assert.deepEqual(seen, [basic('us er:p@és'), 'Bearer own', basic('only:')])
})

test('a proxy in the environment is not used', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200))
  process.env.HTTP_PROXY = process.env.http_proxy = 'http://127.0.0.1:1'
  t.after(() => {
    delete process.env.HTTP_PROXY
    delete process.env.http_proxy
  })
  assert.equal((await post(senderFor(t), url)).verdict, 'success')
})

test('close lets an attempt under way finish, takes no more, and leaves no connection', async (t) => {
  const { promise: arrived, resolve: onArrival } = withResolvers()
  const { promise: left, resolve: onLeave } = withResolvers()
  let answer: (() => void) | undefined
  const url = await rawReceiver(t, (socket) => {
    answer = () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    socket.once('close', onLeave)
    onArrival()
  })
  const sender = createSender({ guard: anywhere })
  const sent = post(sender, url)
  await arrived
  const closed = sender.close()
  assertFailed(await post(sender, url), 'temporary', 'aborted')
  answer?.()
  assert.equal((await sent).verdict, 'success')
  await closed
  await left
})

test('close ends what does not finish within its time', async (t) => {
  const { promise: arrived, resolve: onArrival } = withResolvers()
  const url = await rawReceiver(t, onArrival)
  const sender = createSender({ guard: anywhere, closeGraceMs: 20 })
  const sent = post(sender, url)
  await arrived
  await sender.close()
  assertFailed(await sent, 'temporary', 'aborted')
  await sender.close()
})

test('a thousand attempts leave no timer, listener or connection behind', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200))
  const warnings: Error[] = []
  const onWarning = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const sender = createSender({ guard: anywhere })
  const timersBefore = timers()
  for (let round = 0; round < 100; round += 1) {
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => post(sender, url)))
    for (const { verdict } of outcomes) assert.equal(verdict, 'success')
  }
  await sender.close()
  assert.equal(timers(), timersBefore)
  assert.deepEqual(warnings, [])
})

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
