// Retries, timeouts and pauses, against a real server that misbehaves.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import test from 'node:test'
import { Analytics, type AnalyticsError, type AnalyticsSettings, FetchHTTPClient } from '@switchyard/node'
import { type PlannedAnswer, startTrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }

async function sendOne(answers: PlannedAnswer[], settings: object = {}) {
  await using server = await startTrackingServer((_request, number) => answers[Math.min(number, answers.length) - 1])
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, ...settings })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  let attempts = 0
  analytics.track(event, (_error, ctx) => {
    attempts = ctx?.attempts ?? 0
  })
  const result = await analytics.flush()
  await analytics.closeAndFlush()
  return { requests: server.requests, result, errors, attempts }
}

for (const failure of [{ status: 500 }, { status: 503 }, { status: 408 }, { status: 429 }, { reset: true }] satisfies PlannedAnswer[]) {
  test(`a batch is retried after ${JSON.stringify(failure)}, with the same messageIds`, async () => {
    const { requests, result, errors, attempts } = await sendOne([failure, failure, {}])
    assert.equal(requests.length, 3)
    assert.deepEqual(result, { stored: 1, failed: 0, pending: 0 })
    assert.deepEqual(errors, [])
    assert.equal(attempts, 3)
    assert.equal(new Set(requests.map((request) => request.body.batch[0]?.messageId)).size, 1)
    assert.deepEqual(
      requests.map((request) => request.headers['x-retry-count']),
      [undefined, '1', '2'],
    )
  })
}

test('maxRetries is 3 by default: after four requests the batch has failed', async () => {
  const { requests, result, errors } = await sendOne([{ status: 500 }])
  assert.equal(requests.length, 4)
  assert.deepEqual(result, { stored: 0, failed: 1, pending: 0 })
  assert.deepEqual(
    errors.map((error) => [error.code, error.status]),
    [['delivery_failure', 500]],
  )
})

test('with maxRetries 0 one request is made, and its error is reported', async () => {
  const { requests, errors } = await sendOne([{ status: 500 }], { maxRetries: 0 })
  assert.equal(requests.length, 1)
  assert.equal(errors.length, 1)
})

test('maxTotalBackoffDuration ends retries, whatever maxRetries says', async () => {
  // Long enough for the first request to be answered on a busy machine.
  const { requests, errors } = await sendOne([{ status: 500 }], { maxRetries: Number.POSITIVE_INFINITY, maxTotalBackoffDuration: 2 })
  assert.ok(requests.length >= 2 && requests.length <= 5, `${requests.length} requests`)
  assert.equal(errors.length, 1)
})

test('maxTotalBackoffDuration shortens the delay before the last retry', async (t) => {
  // 150, 450 and 1,350 ms; of the 4 s, 2 s are left for the requests and the last delay, even on a busy machine.
  t.mock.method(Math, 'random', () => 0)
  const waits: number[] = []
  await using server = await startTrackingServer(() => ({ status: 500 }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 20, maxTotalBackoffDuration: 4 })
  analytics.on('error', () => {}).on('retry', ({ waitMs }) => waits.push(waitMs))
  analytics.track(event)
  await analytics.closeAndFlush()
  // Each delay is three times as long as the one before it: only a shortened one is below that.
  const last = waits.at(-1) ?? Infinity
  assert.ok(last < 150 * 3 ** (waits.length - 1), `${waits.join()} ms`)
  assert.ok(waits.reduce((sum, wait) => sum + wait, 0) <= 4_000, `${waits.join()} ms`)
})

test('no retry follows at once, not even at the end of maxTotalBackoffDuration', async (t) => {
  // The first delay is 150 ms. Of the 200 ms, at most 50 ms are left then.
  t.mock.method(Math, 'random', () => 0)
  const waits: number[] = []
  await using server = await startTrackingServer(() => ({ status: 500 }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 20, maxTotalBackoffDuration: 0.2 })
  analytics.on('error', () => {}).on('retry', ({ waitMs }) => waits.push(waitMs))
  analytics.track(event)
  await analytics.closeAndFlush()
  assert.ok(waits.every((wait) => wait >= 150) && waits.length <= 1, `${waits.join()} ms`)
})

for (const status of [400, 401, 403, 404, 413, 302, 501]) {
  test(`a batch is not retried after ${status}`, async () => {
    const { requests, errors } = await sendOne([{ status, headers: { Location: 'http://127.0.0.1:1/' } }])
    assert.equal(requests.length, 1)
    assert.deepEqual(
      errors.map((error) => [error.code, error.status]),
      [['delivery_failure', status]],
    )
  })
}

test('messages that the service rejects out of a batch fail with its codes; the others are delivered', async () => {
  const body = JSON.stringify({
    success: true,
    accepted: 2,
    rejected: [{ index: 1, messageId: 'm-1', code: 'event_required', message: 'No event.' }],
  })
  await using server = await startTrackingServer(() => ({ body }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const failed: unknown[] = []
  analytics.on('error', (error) => failed.push([error.code, error.message, error.ctx?.event.messageId]))
  const outcomes: unknown[] = []
  for (const [number, messageId] of ['m-0', 'm-1', 'm-2'].entries()) {
    analytics.track({ ...event, messageId }, (error) => outcomes.push([number, error?.code]))
  }
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 2, failed: 1, pending: 0 })
  assert.deepEqual(failed, [['event_required', 'No event.', 'm-1']])
  assert.deepEqual(outcomes, [
    [0, undefined],
    [1, 'event_required'],
    [2, undefined],
  ])
})

test('a request without a response within httpRequestTimeout is aborted and retried', async () => {
  const started = performance.now()
  // Long enough for the second request to be answered in time on a busy machine.
  const { requests, result } = await sendOne([{ after: new Promise(() => {}) }, {}], { httpRequestTimeout: 2_000 })
  assert.equal(requests.length, 2)
  assert.deepEqual(result, { stored: 1, failed: 0, pending: 0 })
  assert.ok(performance.now() - started >= 2_000)
})

test('a response that arrives byte by byte is aborted at the same timeout', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
    const drip = setInterval(() => socket.write('x'), 20)
    socket.on('close', () => clearInterval(drip))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const analytics = new Analytics({
      writeKey: 'wk',
      host: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
      httpRequestTimeout: 150,
      maxRetries: 0,
    })
    const error = await new Promise<AnalyticsError | undefined>((resolve) => {
      analytics.track(event, resolve)
      void analytics.flush()
    })
    assert.match(error?.message ?? '', /no response within 150 ms/)
    await analytics.closeAndFlush()
  } finally {
    server.close()
  }
})

test('an endless response is not read to its end', async () => {
  const { errors } = await sendOne([{ body: 'x'.repeat(2_000_000) }], { maxRetries: 0 })
  assert.match(errors[0]?.message ?? '', /response is larger than/)
})

test('a service that cannot be reached is a delivery_failure with its reason', async () => {
  const closed = await startTrackingServer()
  await closed.close()
  const analytics = new Analytics({ writeKey: 'wk', host: closed.url, maxRetries: 0 })
  const error = await new Promise<AnalyticsError | undefined>((resolve) => {
    analytics.track(event, resolve)
    void analytics.flush()
  })
  assert.equal(error?.code, 'delivery_failure')
  assert.equal((error?.reason as NodeJS.ErrnoException | undefined)?.code, 'ECONNREFUSED')
  await analytics.closeAndFlush()
})

for (const [status, form] of [
  [429, 'seconds'],
  [503, 'seconds'],
  [503, 'date'],
] as const) {
  test(`Retry-After in ${form} on ${status} pauses the whole client, and does not count as a retry`, async () => {
    const value = (): string => (form === 'seconds' ? '1' : new Date(Date.now() + 3_000).toUTCString())
    await using server = await startTrackingServer((_request, number) =>
      number === 1 ? { status, headers: { 'Retry-After': value() } } : undefined,
    )
    const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, maxRetries: 0 })
    analytics.track({ ...event, messageId: 'first' })
    const asked = new Promise((resolve) => analytics.once('http_response', resolve))
    await asked
    const from = performance.now()
    for (let i = 0; i < 20; i++) analytics.track(event)
    assert.deepEqual(await analytics.flush(), { stored: 21, failed: 0, pending: 0 })
    const later = server.requests.slice(1)
    assert.equal(later.length, 21)
    for (const request of later) assert.ok(request.at - from > 900, `sent ${request.at - from} ms after the pause began`)
    await analytics.closeAndFlush()
  })
}

test('while closing, a batch waits out one pause that the service asks for, and more of them count as retries, so that closing ends', async () => {
  await using server = await startTrackingServer(() => ({ status: 503, headers: { 'Retry-After': '1' } }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 1 })
  analytics.on('error', () => {})
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 1, pending: 0 })
  assert.equal(server.requests.length, 3)
})

test('a batch fails when it has waited for maxRateLimitDuration, however long a pause the service asks for', async () => {
  const started = performance.now()
  const { requests, errors } = await sendOne([{ status: 429, headers: { 'Retry-After': '300' } }], { maxRateLimitDuration: 0.5 })
  const tookMs = performance.now() - started
  assert.deepEqual(
    errors.map((error) => error.status),
    [429],
  )
  assert.equal(requests.length, 1)
  assert.ok(tookMs >= 490 && tookMs < 60_000, `${tookMs} ms`)
})

test('maxRateLimitDuration is the sum of a batch’s pauses, not the length of each', async () => {
  const { requests, errors } = await sendOne([{ status: 503, headers: { 'Retry-After': '1' } }], { maxRateLimitDuration: 1.9 })
  assert.equal(requests.length, 2)
  assert.equal(errors.length, 1)
})

test('a batch that waits because the service answered another with Retry-After fails at maxRateLimitDuration, too', async () => {
  await using server = await startTrackingServer(() => ({ status: 429, headers: { 'Retry-After': '300' } }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, maxRateLimitDuration: 0.5 })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  const answered = new Promise((resolve) => analytics.once('http_response', resolve))
  analytics.track(event)
  await answered
  analytics.track(event)
  assert.deepEqual(await analytics.flush(), { stored: 0, failed: 2, pending: 0 })
  assert.equal(server.requests.length, 1)
  // Both fail at the same moment, in either order.
  assert.equal(
    errors.filter(({ message }) => /longer pause \(Retry-After\) than maxRateLimitDuration allows \(0\.5 s\)/.test(message)).length,
    1,
    String(errors),
  )
  await analytics.closeAndFlush()
})

test('a connection that the server closed while idle costs neither a retry nor an error', async () => {
  await using server = await startTrackingServer((_request, number) =>
    number === 1 ? { headers: { Connection: 'keep-alive' } } : undefined,
  )
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 0, flushAt: 1 })
  for (let i = 0; i < 20; i++) {
    analytics.track(event)
    assert.deepEqual(await analytics.flush(), { stored: 1, failed: 0, pending: 0 })
    server.dropIdle()
  }
  await analytics.closeAndFlush()
})

for (const value of ['0', 'Sun, 15 Nov 2020 12:00:00 GMT']) {
  for (const close of [false, true]) {
    test(`Retry-After ${value} is a pause of a second, also with maxRetries 0${close ? ' while closing' : ''}`, async () => {
      await using server = await startTrackingServer((_request, number) =>
        number === 1 ? { status: 429, headers: { 'Retry-After': value } } : undefined,
      )
      const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 0 })
      analytics.track(event)
      assert.deepEqual(await analytics.flush({ close }), { stored: 1, failed: 0, pending: 0 })
      const [first, second] = server.requests
      assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 990)
      await analytics.closeAndFlush()
    })
  }
}

test('a request that is sent again because its connection was stale has only the remaining time', async () => {
  // The second request reuses the connection of the first, which is closed late; the third repeats the second and gets no response.
  await using server = await startTrackingServer((_request, number) =>
    number === 1 ? undefined : number === 2 ? { delayMs: 3_000, reset: true } : { after: new Promise(() => {}) },
  )
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 0, httpRequestTimeout: 5_000 })
  analytics.track(event)
  await analytics.flush()
  const error = await new Promise<AnalyticsError | undefined>((resolve) => {
    analytics.track(event, resolve)
    void analytics.closeAndFlush()
  })
  const resentMsAgo = performance.now() - (server.requests[2]?.at ?? Number.NaN)
  assert.match(error?.message ?? '', /no response within 5000 ms/)
  assert.ok(resentMsAgo < 4_000, `given up ${resentMsAgo} ms after it was sent once more`)
})

test('retries free their resources: after hundreds of them nothing is left', async () => {
  await using server = await startTrackingServer((request, number) => (number <= 40 ? { status: 500 } : undefined))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, maxInFlight: 20 })
  for (let i = 0; i < 40; i++) analytics.track(event)
  assert.equal((await analytics.flush()).delivered, 40)
  assert.equal(server.requests.length, 80)
  const timers = process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout')
  assert.deepEqual(timers, [])
  await analytics.closeAndFlush()
})

/** A server that responds to each connection with these bytes, whatever the request. */
async function answering(bytes: string, settings: Partial<AnalyticsSettings> = {}): Promise<AnalyticsError | undefined> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(bytes))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const host = `http://127.0.0.1:${(server.address() as { port: number }).port}`
    const { httpRequestTimeout = 500 } = settings
    const analytics = new Analytics({ writeKey: 'wk', host, maxRetries: 0, ...settings, httpRequestTimeout })
    let told: AnalyticsError | undefined
    analytics.track(event, (error) => {
      told = error
    })
    const { failed } = await analytics.closeAndFlush({ timeout: 6 * httpRequestTimeout })
    assert.equal(failed, 1)
    return told
  } finally {
    server.close()
  }
}

for (const [what, bytes] of [
  ['upgrades unasked', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ['says nothing', ''],
  ['answers garbage', 'garbage\r\n\r\n'],
  ['breaks off', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'],
  ['sends a broken chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ['sends headers without end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
  ['only announces an answer', 'HTTP/1.1 100 Continue\r\n\r\n'],
] as const) {
  test(`a server that ${what} causes delivery_failure within the timeout`, async () => {
    assert.equal((await answering(bytes))?.code, 'delivery_failure')
  })
}

test('a redirect is not followed, not even with fetch: the 200 of another page is not a delivery', async () => {
  for (const httpClient of [undefined, new FetchHTTPClient()]) {
    await using elsewhere = await startTrackingServer()
    const redirect = `HTTP/1.1 302 Found\r\nLocation: ${elsewhere.url}/login\r\nContent-Length: 0\r\n\r\n`
    const error = await answering(redirect, { httpClient, httpRequestTimeout: 5_000 })
    assert.equal(error?.status, 302)
    assert.equal(elsewhere.requests.length, 0)
  }
})
