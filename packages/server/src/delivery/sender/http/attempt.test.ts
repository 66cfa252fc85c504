// Sends attempts to real receivers on free ports, most of which misbehave. How an attempt gets its connection is tested in
// connections.test.ts.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer, type Socket } from 'node:net'
import test from 'node:test'
import {
  anywhere,
  assertFailed,
  assertTimedOut,
  clientFor,
  httpReceiver,
  listening,
  PARTIAL_READ_MS,
  post,
  rawReceiver,
  SHORT_MS,
  statusAnswer,
  withResolvers,
} from '../../fixtures/attempts.ts'
import type { Outcome } from '../../link/outcome.ts'
import { createHttpClient, MAX_RESPONSE_BYTES } from './attempt.ts'

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

test('a message is posted with its headers and its length, and a 2xx is a success', async (t) => {
  let got: unknown
  const url = await httpReceiver(t, (request, response) => {
    void readAll(request).then((body) => {
      got = [request.method, request.url, request.rawHeaders.join(), body]
      response.writeHead(202).end('ignored')
    })
  })
  const body = '{"name":"é ✓ 🎉"}'
  const outcome = await post(clientFor(t), `${url}?a=b%20c`, { body, headers: ['Content-Type', 'application/json', 'X-Attempt', '1'] })
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

test('a request has its own method and path, which goes before the query of the URL', async (t) => {
  const got: unknown[] = []
  const url = await httpReceiver(t, (request, response) => {
    void readAll(request).then((body) => {
      got.push([request.method, request.url, body])
      response.end()
    })
  })
  const client = clientFor(t)
  const { origin } = new URL(url)
  const sent = [
    [`${url}?key=1`, '/users/%2E%2E%2Fa', 'PUT'],
    [`${url}/?key=1`, '/x', 'PATCH'],
    [origin, '/x', 'DELETE'],
    [`${origin}/`, '/x', 'POST'],
    [url, '', 'PUT'],
  ] as const
  for (const [to, path, method] of sent) assert.equal((await post(client, to, { path, method, body: '{}' })).verdict, 'success')
  assert.deepEqual(got, [
    ['PUT', '/hook/users/%2E%2E%2Fa?key=1', '{}'],
    ['PATCH', '/hook/x?key=1', '{}'],
    ['DELETE', '/x', '{}'],
    ['POST', '/x', '{}'],
    ['PUT', '/hook', '{}'],
  ])
})

test('a body of bytes is posted unchanged, and an empty body with a content length of 0', async (t) => {
  const bodies: [string, string | undefined][] = []
  const url = await httpReceiver(t, (request, response) => {
    void readAll(request).then((body) => {
      bodies.push([body, request.headers['content-length']])
      response.end()
    })
  })
  const client = clientFor(t)
  await post(client, url, { body: Buffer.from('[1,2]') })
  await post(client, url, { body: '' })
  assert.deepEqual(bodies, [
    ['[1,2]', '5'],
    ['', '0'],
  ])
})

test('every status gets its verdict, and a failure keeps the start of the response', async (t) => {
  const url = await httpReceiver(t, (request, response) => {
    request.resume()
    response.writeHead(Number(request.url?.slice(6))).end('why')
  })
  const client = clientFor(t)
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
    const outcome = await post(client, `${url}/${status}`)
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
  assertFailed(await post(clientFor(t), url), 'permanent', 'http_307')
  assert.equal(requests, 1)
})

test('a 204 needs no body, and interim (1xx) responses are skipped', async (t) => {
  const client = clientFor(t)
  assert.equal((await post(client, await httpReceiver(t, statusAnswer(204)))).status, 204)
  for (const interim of ['100 Continue', '100 Continue\r\n\r\nHTTP/1.1 100 Continue', '102 Processing', '103 Early Hints\r\nLink: </a>']) {
    const together = await rawReceiver(t, (socket) => {
      socket.write(`HTTP/1.1 ${interim}\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n`)
    })
    const apart = await rawReceiver(t, (socket) => {
      socket.write(`HTTP/1.1 ${interim}\r\n\r\n`)
      setImmediate(() => setImmediate(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')))
    })
    assert.equal((await post(client, together)).status, 204, interim)
    assert.equal((await post(client, apart)).status, 200, interim)
    assert.equal((await post(client, apart)).timings.connectMs, null, `${interim}, reused`)
  }
})

test('Retry-After is honoured on 429 and 503 only', async (t) => {
  const nowMs = Date.UTC(2030, 0, 1)
  const client = clientFor(t, { now: () => nowMs })
  const asked = async (status: number, retryAfter: string): Promise<number | null> =>
    (await post(client, await httpReceiver(t, statusAnswer(status, { 'Retry-After': retryAfter })))).retryAfterMs
  assert.equal(await asked(429, '30'), 30_000)
  assert.equal(await asked(503, 'Tue, 01 Jan 2030 00:01:00 GMT'), 60_000)
  assert.equal(await asked(503, 'tomorrow'), null)
  assert.equal(await asked(500, '30'), null)
})

test('a receiver that never answers times out', async (t) => {
  const url = await rawReceiver(t, () => undefined)
  assertTimedOut(await post(clientFor(t), url, { timeoutMs: SHORT_MS }), /waiting for the response/)
})

test('a receiver that sends its headers or its body one byte at a time causes a timeout, whatever the status', async (t) => {
  // At one byte every 20 ms, neither the headers nor the 1,000 bytes of the body are complete by the deadline.
  const drip = (start: string) => (socket: Socket) => {
    socket.write(start)
    const timer = setInterval(() => socket.write('x'), 20)
    socket.once('close', () => clearInterval(timer))
  }
  const client = clientFor(t)
  const starts = ['HTTP/1.1 200 OK\r\nX-Slow: ', 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n', 'HTTP/1.1 500 No\r\n\r\n'] as const
  const urls = await Promise.all(starts.map((start) => rawReceiver(t, drip(start))))
  const outcomes = await Promise.all(urls.map((url) => post(client, url, { timeoutMs: PARTIAL_READ_MS })))
  const [headers, body, endless] = outcomes as [Outcome, Outcome, Outcome]
  assertTimedOut(headers, /waiting for the response/, PARTIAL_READ_MS)
  assertTimedOut(body, /response was being read/, PARTIAL_READ_MS)
  assert.equal(body.status, 200)
  assertTimedOut(endless, /response was being read/, PARTIAL_READ_MS)
  assert.match(endless.responseStart ?? '', /^x+$/)
})

test('a receiver that never reads a large body times out', async (t) => {
  const server = createServer({ pauseOnConnect: true })
  const url = `http://127.0.0.1:${await listening(t, server)}/`
  const outcome = await post(clientFor(t), url, { body: Buffer.alloc(64 * 1024 * 1024, 'x'), timeoutMs: SHORT_MS })
  assertTimedOut(outcome, /request was being sent/)
})

test('reading stops after 64 KB of a response of a gigabyte, and its status decides the verdict', async (t) => {
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
    const outcome = await post(clientFor(t), url)
    assert.deepEqual([outcome.verdict, outcome.status], [verdict, status])
    await closed
    // More is written than was read, because the kernel buffers data on both sides.
    assert.ok(written < 32 * 1024 * 1024, `${written} bytes written`)
    if (status === 500) assert.equal(outcome.responseStart, 'é'.repeat(2_048))
  }
})

test('the start of a successful response is kept on request', async (t) => {
  const url = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  const client = clientFor(t)
  assert.equal((await post(client, url)).responseStart, null)
  assert.equal((await post(client, url, { keepAnswer: true })).responseStart, 'ok')
})

test('the status decides the verdict of a response that stalls after 64 KB; one that stalls earlier times out', async (t) => {
  const stalling = (bodyBytes: number): Promise<string> =>
    rawReceiver(t, (socket) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(bodyBytes)}`))
  const client = clientFor(t)
  assert.equal((await post(client, await stalling(MAX_RESPONSE_BYTES))).verdict, 'success')
  const stalled = await post(client, await stalling(MAX_RESPONSE_BYTES - 1), { timeoutMs: PARTIAL_READ_MS })
  assertTimedOut(stalled, /being read/, PARTIAL_READ_MS)
})

test('the kept start of a response is at most 4 KB of text that every store can hold', async (t) => {
  const client = clientFor(t)
  const keptOf = async (body: Buffer): Promise<string> =>
    (await post(client, await rawReceiver(t, (socket) => socket.end(Buffer.concat([Buffer.from('HTTP/1.1 400 No\r\n\r\n'), body])))))
      .responseStart ?? ''
  assert.equal(await keptOf(Buffer.from('a\0b')), 'a\uFFFDb')
  const broken = await keptOf(Buffer.alloc(5_000, 0xff))
  assert.ok(Buffer.byteLength(broken) <= 4_096 && /^\uFFFD+$/.test(broken))
  const cut = await keptOf(Buffer.from(`a${'✓'.repeat(3_000)}`))
  assert.ok(Buffer.byteLength(cut) <= 4_096 && cut.startsWith('a✓✓'))
})

test('connections that are refused, reset or closed are temporary failures', async (t) => {
  const client = clientFor(t)
  const server = createServer()
  const port = await listening(t, server)
  server.close()
  await once(server, 'close')
  const refused = await post(client, `http://127.0.0.1:${port}/`)
  assertFailed(refused, 'temporary', 'connection_refused')
  assert.equal(refused.address, '127.0.0.1')
  assertFailed(await post(client, await rawReceiver(t, (socket) => socket.resetAndDestroy())), 'temporary', 'connection_reset')
  assertFailed(await post(client, await rawReceiver(t, (socket) => socket.end())), 'temporary', 'connection_closed')
  const short = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort'))
  const cut = await post(client, short)
  assertFailed(cut, 'temporary', 'connection_closed')
  assert.equal(cut.status, 200)
})

test('a response without a length is complete when the connection ends', async (t) => {
  const url = await rawReceiver(t, (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'))
  assert.equal((await post(clientFor(t), url)).verdict, 'success')
})

test('a response that is not valid HTTP/1.1 is a temporary failure', async (t) => {
  const garbage = [
    'SSH-2.0-OpenSSH_9.6\r\n',
    '<html>hello</html>',
    'HTTP/1.1 abc\r\n\r\n',
    'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`,
  ]
  const client = clientFor(t)
  for (const text of garbage) {
    const url = await rawReceiver(t, (socket) => socket.write(text))
    assertFailed(await post(client, url, { timeoutMs: 1_000 }), 'temporary', 'invalid_response')
  }
})

test('nothing is sent to a URL that is not http or https', async (t) => {
  const client = clientFor(t)
  for (const url of ['', 'nonsense', 'ftp://example.com/', 'file:///etc/passwd', 'http://', 'http://[::1', 'javascript:1']) {
    assertFailed(await post(client, url), 'permanent', 'invalid_request')
  }
})

test('a user name and password in the URL become Basic authorization, unless the headers contain Authorization', async (t) => {
  const seen: (string | undefined)[] = []
  const url = await httpReceiver(t, (request, response) => {
    seen.push(request.headers.authorization)
    statusAnswer(200)(request, response)
  })
  const client = clientFor(t)
  const withUser = url.replace('//', '//us%20er:p%40%C3%A9s@')
  await post(client, withUser)
  await post(client, withUser, { headers: ['Authorization', 'Bearer own'] })
  await post(client, url.replace('//', '//only@'))
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
  assert.equal((await post(clientFor(t), url)).verdict, 'success')
})

test('close lets an attempt in flight finish, rejects new ones, and leaves no connection open', async (t) => {
  const { promise: arrived, resolve: onArrival } = withResolvers()
  const { promise: left, resolve: onLeave } = withResolvers()
  let answer: (() => void) | undefined
  const url = await rawReceiver(t, (socket) => {
    answer = () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    socket.once('close', onLeave)
    onArrival()
  })
  const client = createHttpClient({ guard: anywhere })
  const sent = post(client, url)
  await arrived
  const closed = client.close()
  assertFailed(await post(client, url), 'temporary', 'aborted')
  answer?.()
  assert.equal((await sent).verdict, 'success')
  await closed
  await left
})

test('close aborts attempts that do not finish within the grace period', async (t) => {
  const { promise: arrived, resolve: onArrival } = withResolvers()
  const url = await rawReceiver(t, onArrival)
  const client = createHttpClient({ guard: anywhere, closeGraceMs: 20 })
  const sent = post(client, url)
  await arrived
  await client.close()
  assertFailed(await sent, 'temporary', 'aborted')
  await client.close()
})

test('a thousand attempts leave no timer, listener or connection behind', async (t) => {
  const url = await httpReceiver(t, statusAnswer(200))
  const warnings: Error[] = []
  const onWarning = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const client = createHttpClient({ guard: anywhere })
  const timersBefore = timers()
  for (let round = 0; round < 100; round += 1) {
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => post(client, url)))
    for (const { verdict } of outcomes) assert.equal(verdict, 'success')
  }
  await client.close()
  assert.equal(timers(), timersBefore)
  assert.deepEqual(warnings, [])
})

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}
