// The client library's lifecycle table, flushAt and flushInterval, flush and close, disable, callbacks.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Analytics, type AnalyticsError, type AnalyticsEvent, type Context } from '@switchyard/node'
import { gate, startTrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }

test('a method call queues the message, emits the matching event, and calls back when the message is flushed', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const order: string[] = []
  analytics.on('track', (ctx) => order.push(`track ${ctx.event.event}`))
  analytics.track(event, (error, ctx) => order.push(`callback ${String(error)} ${ctx?.event.messageId}`))
  assert.deepEqual(order, ['track e'])
  assert.equal(server.requests.length, 0)
  await analytics.flush()
  assert.deepEqual(order, ['track e', `callback undefined ${server.messages()[0]?.messageId}`])
  await analytics.closeAndFlush()
})

test('a queue that reaches flushAt messages is flushed in the background and emits flush', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 3, flushInterval: 60_000 })
  const flushed = new Promise((resolve) => analytics.on('flush', resolve))
  for (let i = 0; i < 7; i++) analytics.track(event)
  assert.deepEqual(await flushed, { messages: 3, stored: 3, failed: 0, attempts: 1 })
  await server.received(6)
  assert.deepEqual(
    server.requests.map((request) => request.body.batch.length),
    [3, 3],
  )
  await analytics.closeAndFlush()
  assert.equal(server.messages().length, 7)
})

test('flushAt is 15 by default', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  for (let i = 0; i < 31; i++) analytics.track(event)
  await analytics.closeAndFlush()
  assert.deepEqual(
    server.requests.map((request) => request.body.batch.length).sort((a, b) => a - b),
    [1, 15, 15],
  )
})

test('flushAt 1 turns batching off: every message is flushed at once, alone', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, flushInterval: 60_000 })
  for (let i = 0; i < 4; i++) analytics.track(event)
  await server.received(4)
  assert.deepEqual(
    server.requests.map((request) => request.body.batch.length),
    [1, 1, 1, 1],
  )
  await analytics.closeAndFlush()
})

test('flushInterval after the first message the queue is flushed', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushInterval: 150 })
  for (const round of [1, 2]) {
    const called = performance.now()
    analytics.track(event)
    await server.arrived(round)
    const waited = (server.requests[round - 1]?.at ?? 0) - called
    // Much less than the default of ten seconds.
    assert.ok(waited >= 140 && waited < 8_000, `flushed after ${waited} ms`)
  }
  await analytics.closeAndFlush()
})

test('flush({ close: true }) accepts no further calls, flushes the queue and waits for callbacks', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  let done = false
  analytics.track(event, async () => {
    await delay(30)
    done = true
  })
  assert.deepEqual(await analytics.flush({ close: true }), { stored: 1, failed: 0, pending: 0 })
  assert.equal(done, true)
  assert.equal(server.messages().length, 1)
})

test('a call after close is not sent: call_after_close is emitted with the event, and its callback gets an error', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const late: AnalyticsEvent[] = []
  analytics.on('call_after_close', (event) => late.push(event))
  const closing = analytics.closeAndFlush()
  const error = await new Promise<AnalyticsError | undefined>((resolve) => analytics.track({ userId: 'u', event: 'late' }, resolve))
  await closing
  analytics.identify({ userId: 'later' })
  assert.deepEqual(
    late.map((event) => [event.type, event.userId, event.event]),
    [
      ['track', 'u', 'late'],
      ['identify', 'later', undefined],
    ],
  )
  assert.equal(error?.code, 'call_after_close')
  assert.equal(server.requests.length, 0)
})

test('overlapping flushes each wait for the messages queued before them', async () => {
  const { open: answer, opened: answered } = gate()
  await using server = await startTrackingServer(() => ({ after: answered }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  analytics.track(event)
  const resolved: string[] = []
  const first = analytics.flush().then((result) => {
    resolved.push('first')
    return result
  })
  await server.arrived(1)
  const second = analytics.flush().then((result) => {
    resolved.push('second')
    return result
  })
  analytics.track(event)
  const third = analytics.flush()
  await server.arrived(2)
  assert.deepEqual(resolved, [])
  answer()
  assert.deepEqual(await first, { stored: 1, failed: 0, pending: 0 })
  assert.deepEqual(await second, { stored: 1, failed: 0, pending: 0 })
  assert.equal((await third).pending, 0)
  assert.equal(server.messages().length, 2)
  await analytics.closeAndFlush()
})

test('a flush with nothing queued resolves at once', async () => {
  const analytics = new Analytics({ writeKey: 'wk' })
  assert.deepEqual(await analytics.flush(), { stored: 0, failed: 0, pending: 0 })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 0, pending: 0 })
})

test('flush reports the outcome of every message since the previous flush, however it was sent', async () => {
  await using server = await startTrackingServer((request) =>
    request.body.batch[0]?.['event'] === 'bad'
      ? { status: 400, body: '{"success":false,"code":"invalid_request","message":"no"}' }
      : undefined,
  )
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1 })
  analytics.on('error', () => {})
  analytics.track(event)
  analytics.track({ userId: 'u', event: 'bad' })
  analytics.track({ userId: '', event: 'refused at the call' })
  await server.received(2)
  analytics.track(event)
  assert.deepEqual(await analytics.flush(), { stored: 2, failed: 2, pending: 0 })
  assert.deepEqual(await analytics.flush(), { stored: 0, failed: 0, pending: 0 })
  await analytics.closeAndFlush()
})

test('a flush resolves at its timeout with the number of pending messages; a later flush reports their outcome', async () => {
  const { open: answer, opened: answered } = gate()
  await using server = await startTrackingServer(() => ({ after: answered }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  analytics.track(event)
  assert.deepEqual(await analytics.flush({ timeout: 50 }), { stored: 0, failed: 0, pending: 1 })
  const rest = analytics.flush()
  answer()
  assert.deepEqual(await rest, { stored: 1, failed: 0, pending: 0 })
  await analytics.closeAndFlush()
})

test('close gives up at its timeout: callbacks get close_timeout, and nothing keeps the process alive', async () => {
  await using server = await startTrackingServer(() => ({ after: new Promise(() => {}) }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, maxInFlight: 1 })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  const called = Promise.all([1, 2].map(() => new Promise<AnalyticsError | undefined>((resolve) => analytics.track(event, resolve))))
  await server.arrived(1)
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 50 }), { stored: 0, failed: 0, pending: 2 })
  assert.deepEqual(
    (await called).map((error) => error?.code),
    ['close_timeout', 'close_timeout'],
  )
  assert.equal(errors.length, 2)
  assert.equal(server.requests.length, 1)
})

test('times longer than a timer supports do not expire immediately', async () => {
  const { open: answer, opened: answered } = gate()
  await using server = await startTrackingServer(() => ({ after: answered }))
  const forever = { flushInterval: Number.POSITIVE_INFINITY, httpRequestTimeout: Number.POSITIVE_INFINITY }
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, ...forever })
  analytics.track(event)
  const flushed = Promise.all([Number.POSITIVE_INFINITY, 3e9, Number.NaN].map((timeout) => analytics.flush({ timeout })))
  await server.arrived(1)
  setTimeout(() => answer(), 50)
  for (const result of await flushed) assert.deepEqual(result, { stored: 1, failed: 0, pending: 0 })
  await analytics.closeAndFlush({ timeout: Number.POSITIVE_INFINITY })
})

test('closing twice is not an error', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  analytics.track(event)
  const results = await Promise.all([analytics.closeAndFlush(), analytics.closeAndFlush()])
  for (const result of results) assert.deepEqual(result, { stored: 1, failed: 0, pending: 0 })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 0, pending: 0 })
})

test('a disabled client accepts calls, emits events and calls back, but sends nothing', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, disable: true })
  const seen: string[] = []
  analytics.on('track', (ctx: Context) => seen.push(ctx.event.type))
  const error = await new Promise((resolve) => analytics.track(event, resolve))
  assert.equal(error, undefined)
  await analytics.closeAndFlush()
  assert.deepEqual(seen, ['track'])
  assert.equal(server.requests.length, 0)
})

test('a callback never runs during its own call, not even if the call is rejected', async () => {
  const analytics = new Analytics({ writeKey: 'wk' })
  analytics.on('error', () => {})
  const order: string[] = []
  analytics.track({ userId: 'u', event: '' }, () => order.push('callback'))
  order.push('behind the call')
  await analytics.closeAndFlush()
  assert.deepEqual(order, ['behind the call', 'callback'])
})

test('a callback that throws or rejects is reported as listener_failed and blocks nothing', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  analytics.track(event, () => {
    throw new Error('mine')
  })
  analytics.track(event, () => Promise.reject(new Error('mine')))
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 2, failed: 0, pending: 0 })
  assert.deepEqual(codes, ['listener_failed', 'listener_failed'])
})

test('the constructor rejects invalid settings and names them', () => {
  const rejected: [settings: unknown, field: string][] = [
    [undefined, 'settings'],
    [{}, 'writeKey'],
    [{ writeKey: '' }, 'writeKey'],
    [{ writeKey: 'a\r\nX-Evil: 1' }, 'writeKey'],
    [{ writeKey: 'wk', host: 'not a url' }, 'host'],
    [{ writeKey: 'wk', host: 'ftp://example.com' }, 'host'],
    [{ writeKey: 'wk', flushAt: 'many' }, 'flushAt'],
    [{ writeKey: 'wk', flushInterval: Number.NaN }, 'flushInterval'],
    [{ writeKey: 'wk', maxRetries: '' }, 'maxRetries'],
    [{ writeKey: 'wk', maxInFlight: {} }, 'maxInFlight'],
    [{ writeKey: 'wk', httpRequestTimeout: true }, 'httpRequestTimeout'],
    [{ writeKey: 'wk', httpClient: {} }, 'httpClient'],
    [{ writeKey: 'wk', spool: {} }, 'spool.dir'],
    [{ writeKey: 'wk', oauthSettings: { clientId: 'c', keyId: 'k' } }, 'oauthSettings.clientKey'],
  ]
  for (const [settings, field] of rejected) {
    assert.throws(
      () => new Analytics(settings as { writeKey: string }),
      (error: AnalyticsError) => error.code === 'invalid_settings' && error.field === field && error.message.startsWith(field),
      `${field}: ${JSON.stringify(settings)}`,
    )
  }
})

test('the error about an invalid host does not contain its password', () => {
  for (const host of ['ftp://name:hunter2@example.com', 'name:hunter2@example.com', 'https//name:hunter2@example.com/path']) {
    assert.throws(
      () => new Analytics({ writeKey: 'wk', host }),
      ({ message }: Error) => message.includes('example.com') && !message.includes('hunter2'),
      host,
    )
  }
})

test('the result of a flush says what was stored; its former name can be read, but is not printed', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const batches: { stored: number; delivered: number }[] = []
  analytics.on('flush', (batch) => batches.push(batch))
  analytics.track(event)
  analytics.track(event)
  const result = await analytics.closeAndFlush()
  assert.deepEqual(Object.keys(result), ['stored', 'failed', 'pending'])
  assert.deepEqual([result.stored, result.delivered], [2, 2])
  assert.deepEqual(
    batches.map(({ stored, delivered }) => [stored, delivered]),
    [[2, 2]],
  )
})

test('a callback may await flush or close without waiting for itself', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1 })
  const flushed = await new Promise<unknown>((resolve) => {
    analytics.track(event, async () => {
      analytics.track(event)
      resolve(await analytics.flush())
    })
  })
  assert.deepEqual(flushed, { stored: 2, failed: 0, pending: 0 })
  const closed = await new Promise<unknown>((resolve) => analytics.track(event, async () => resolve(await analytics.closeAndFlush())))
  assert.deepEqual(closed, { stored: 1, failed: 0, pending: 0 })
})

test('a callback whose promise never settles delays a flush by at most httpRequestTimeout', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, httpRequestTimeout: 200 })
  const held = setInterval(() => {}, 1_000)
  analytics.track(event, () => new Promise(() => {}))
  const started = performance.now()
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
  assert.ok(performance.now() - started >= 190)
  clearInterval(held)
})

test('listeners and callbacks that throw, reject or make invalid calls affect nobody else', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const codes: string[] = []
  analytics.on('error', (error) => {
    codes.push(error.code)
    // Emitting an error inside an error listener would never end.
    analytics.track({ userId: '', event: 'e' })
  })
  analytics.on('track', async () => {
    throw new Error('async')
  })
  analytics.on('drained', () => void analytics.track({ userId: '', event: 'e' }))
  analytics.track(event, () => {
    // oxlint-disable-next-line typescript/only-throw-error -- what third-party code may throw
    throw Object.create(null)
  })
  await analytics.flush()
  await analytics.closeAndFlush()
  const late = new Analytics({ writeKey: 'wk', disable: true })
  late.on('error', (error) => codes.push(`late ${error.code}`))
  late.track(event, () => {
    throw new Error('disabled')
  })
  await late.closeAndFlush()
  late.track(event, () => {
    throw new Error('late')
  })
  await new Promise(setImmediate)
  assert.deepEqual(
    codes.filter((code) => code.startsWith('late')),
    ['late listener_failed', 'late listener_failed'],
  )
  assert.equal(codes.filter((code) => code === 'listener_failed').length, 2)
})

test('no call throws, whatever its arguments', async () => {
  const analytics = new Analytics({ writeKey: 'wk' }).on('error', () => {})
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const throwing = {
    toJSON() {
      // oxlint-disable-next-line typescript/only-throw-error -- what third-party code may throw
      throw Object.create(null)
    },
  }
  for (const params of [
    revoked.proxy,
    { userId: 'u', event: 'e', properties: revoked.proxy },
    { userId: 'u', event: 'e', properties: throwing },
  ]) {
    assert.equal(analytics.track(params as never), true)
  }
  await analytics.flush(null as never)
  await analytics.closeAndFlush(null as never)
})

test('a once listener runs once, even if it emits its own event', () => {
  const analytics = new Analytics({ writeKey: 'wk', disable: true })
  let calls = 0
  analytics.once('track', () => {
    calls++
    analytics.track(event)
  })
  analytics.track(event)
  assert.equal(calls, 1)
})

test('a closed client stops waiting for a custom HTTP client that does not respond', async () => {
  let signal: AbortSignal | undefined
  const httpClient = (_url: string, options: { signal: AbortSignal }): Promise<never> => {
    signal = options.signal
    return new Promise(() => {})
  }
  const analytics = new Analytics({ writeKey: 'wk', httpClient }).on('error', () => {})
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 50 }), { stored: 0, failed: 0, pending: 1 })
  assert.equal(signal?.aborted, true)
  await new Promise(setImmediate)
  assert.deepEqual(
    process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout'),
    [],
  )
})
