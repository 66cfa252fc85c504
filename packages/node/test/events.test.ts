// Every event of the emitter (the table in packages/node/README.md, “Events”), and how the emitter itself behaves.

import assert from 'node:assert/strict'
import test from 'node:test'
import {
  Analytics,
  type AnalyticsError,
  type Context,
  ContextCancelation,
  type HttpRequestEvent,
  type HttpResponseEvent,
  type Plugin,
  type RetryEvent,
} from '@switchyard/node'
import { startTrackingServer } from './tracking-server.ts'

const plugin: Plugin = { name: 'p', type: 'utility', isLoaded: () => true, load: async () => {} }

test('identify, track, page, screen, group and alias are emitted with the context of the call', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const seen: unknown[] = []
  for (const type of ['identify', 'track', 'page', 'screen', 'group', 'alias'] as const) {
    analytics.on(type, (ctx) => seen.push([type, ctx.event.type, ctx.event.userId]))
  }
  analytics.identify({ userId: 'u' })
  analytics.track({ userId: 'u', event: 'e' })
  analytics.page({ userId: 'u' })
  analytics.screen({ userId: 'u' })
  analytics.group({ userId: 'u', groupId: 'g' })
  analytics.alias({ userId: 'u', previousId: 'p' })
  assert.deepEqual(
    seen,
    ['identify', 'track', 'page', 'screen', 'group', 'alias'].map((type) => [type, type, 'u']),
  )
  await analytics.closeAndFlush()
})

test('reason is always an Error, for every kind of failure', async () => {
  const body = JSON.stringify({ rejected: [{ index: 0, code: 'rejected_by_service', message: 'No.' }] })
  await using server = await startTrackingServer((request) => (request.text.includes('reject me') ? { body } : { status: 400 }))
  const errors = new Map<string, AnalyticsError>()
  const listen = (analytics: Analytics): Analytics => analytics.on('error', (error) => errors.set(error.code, error))
  const analytics = listen(new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1 }))
  const callbackReasons: unknown[] = []
  const callback = (error?: AnalyticsError, ctx?: Context): unknown => callbackReasons.push(error?.reason, ctx?.failedDelivery()?.reason)
  await analytics.register({
    name: 'p',
    type: 'before',
    isLoaded: () => true,
    load: async () => {},
    page: (ctx) => ctx.cancel(new ContextCancelation({ reason: 'mine' })),
    screen: () => {
      // oxlint-disable-next-line typescript/only-throw-error -- what third-party code may do
      throw 'a string'
    },
  })
  analytics.track({ userId: 'u', event: '' }, callback)
  analytics.enqueue(null as never, callback)
  analytics.identify({ userId: 'u', traits: { big: 1n } }, callback)
  analytics.page({ userId: 'u' }, callback)
  analytics.screen({ userId: 'u' }, callback)
  analytics.track({ userId: 'u', event: 'reject me', timestamp: 'never' }, callback)
  analytics.track({ userId: 'u', event: 'e' }, callback)
  await analytics.closeAndFlush()
  analytics.track({ userId: 'u', event: 'late' }, callback)
  const small = listen(new Analytics({ writeKey: 'wk', host: server.url, maxQueueBytes: 1 }))
  small.track({ userId: 'u', event: 'e' }, callback)
  await small.closeAndFlush({ timeout: 1_000 })
  // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what third-party code may do
  const rejecting = new Analytics({ writeKey: 'wk', maxRetries: 0, httpClient: () => Promise.reject('no route') })
  const told = await new Promise<AnalyticsError | undefined>((resolve) => {
    rejecting.track({ userId: 'u', event: 'e' }, resolve)
    void rejecting.closeAndFlush()
  })
  assert.equal(told?.reason.message, 'no route')
  assert.deepEqual([...errors.keys()].sort(), [
    'delivery_failure',
    'event_required',
    'invalid_request',
    'not_serializable',
    'plugin_cancelled',
    'plugin_failed',
    'queue_full',
    'rejected_by_service',
    'timestamp_invalid',
  ])
  for (const [code, { reason }] of errors) assert.ok(reason instanceof Error && reason.message !== '', code)
  assert.equal(errors.get('plugin_failed')?.reason.message, 'a string')
  assert.equal(callbackReasons.length, 18)
  for (const reason of callbackReasons) assert.ok(reason === undefined || reason instanceof Error, String(reason))
  assert.ok(callbackReasons.filter((reason) => reason === undefined).length <= 2)
})

test('error is emitted with code, reason and context when a delivery fails, and the callback gets the same', async () => {
  await using server = await startTrackingServer(() => ({
    status: 400,
    body: '{"success":false,"error":"batch_too_large","code":"batch_too_large","message":"Too large."}',
  }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  const called = new Promise<AnalyticsError | undefined>((resolve) => analytics.track({ userId: 'u', event: 'a' }, resolve))
  analytics.track({ userId: 'u', event: 'b' })
  await analytics.closeAndFlush()
  assert.deepEqual(
    errors.map((error) => [error.code, error.status, error.ctx?.event.event]),
    [
      ['delivery_failure', 400, 'a'],
      ['delivery_failure', 400, 'b'],
    ],
  )
  assert.match(errors[0]?.message ?? '', /400.*batch_too_large.*Too large/)
  assert.ok(errors[0]?.reason instanceof Error)
  assert.ok(errors[0]?.ctx?.failedDelivery())
  assert.equal(await called, errors[0])
})

test('flush is emitted after a batch is flushed', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const flushes: unknown[] = []
  analytics.on('flush', (batch) => flushes.push(batch))
  analytics.track({ userId: 'u', event: 'e' })
  analytics.track({ userId: 'u', event: 'e' })
  await analytics.closeAndFlush()
  assert.deepEqual(flushes, [{ messages: 2, stored: 2, failed: 0, attempts: 1 }])
})

test('http_request has url, method, headers and body; http_response has the response', async () => {
  await using server = await startTrackingServer(() => ({ headers: { 'X-Request-Id': 'r-1' } }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const requests: HttpRequestEvent[] = []
  const responses: HttpResponseEvent[] = []
  analytics.on('http_request', (request) => requests.push(request)).on('http_response', (response) => responses.push(response))
  analytics.track({ userId: 'u', event: 'e' })
  await analytics.closeAndFlush()
  assert.equal(requests.length, 1)
  assert.equal(requests[0]?.url, `${server.url}/v1/batch`)
  assert.equal(requests[0]?.method, 'POST')
  assert.equal(requests[0]?.headers['Content-Type'], 'application/json')
  assert.equal(requests[0]?.body, server.requests[0]?.text)
  assert.equal(responses.length, 1)
  assert.equal(responses[0]?.status, 200)
  assert.equal(responses[0]?.url, `${server.url}/v1/batch`)
  assert.equal(responses[0]?.headers['x-request-id'], 'r-1')
  assert.equal(responses[0]?.body, '{"success":true}')
})

test('retry is emitted for each failure but the last, with the reason and the delay', async () => {
  const answers = [
    { reset: true },
    { status: 503, body: '{"code":"store_unavailable","message":"Later."}' },
    { status: 429, headers: { 'Retry-After': '1' } },
  ]
  await using server = await startTrackingServer((_request, number) => answers[number - 1])
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const retries: RetryEvent[] = []
  analytics.on('retry', (retry) => retries.push(retry))
  analytics.track({ userId: 'u', event: 'e' })
  assert.deepEqual(await analytics.flush(), { stored: 1, failed: 0, pending: 0 })
  await analytics.closeAndFlush()
  assert.deepEqual(
    retries.map(({ error, attempts }) => [error.code, error.status, attempts]),
    [
      ['delivery_failure', undefined, 1],
      ['delivery_failure', 503, 2],
      ['delivery_failure', 429, 3],
    ],
  )
  assert.match(retries[1]?.error.message ?? '', /store_unavailable: Later\./)
  assert.ok(retries.slice(0, 2).every(({ waitMs }) => waitMs >= 150 && waitMs <= 900))
  assert.equal(retries[2]?.waitMs, 1_000)
})

test('retry is not emitted after the last failure', async () => {
  await using server = await startTrackingServer(() => ({ status: 500 }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 1 })
  let retries = 0
  analytics.on('retry', () => retries++).on('error', () => {})
  analytics.track({ userId: 'u', event: 'e' })
  await analytics.closeAndFlush()
  assert.deepEqual([retries, server.requests.length], [1, 2])
})

test('register and deregister are emitted with the names of plugins', async () => {
  const analytics = new Analytics({ writeKey: 'wk' })
  const seen: unknown[] = []
  analytics.on('register', (names) => seen.push(['register', names]))
  analytics.on('deregister', (names) => seen.push(['deregister', names]))
  await analytics.register(plugin, { ...plugin, name: 'q' })
  await analytics.deregister('p', 'nobody')
  assert.deepEqual(seen, [
    ['register', ['p', 'q']],
    ['deregister', ['p']],
  ])
})

test('drained is emitted when no message is pending', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1 })
  const drained = new Promise<void>((resolve) => analytics.once('drained', resolve))
  analytics.track({ userId: 'u', event: 'e' })
  await drained
  assert.equal(server.messages().length, 1)
  await analytics.closeAndFlush()
})

test('on, once and off return the instance, so that calls can be chained', () => {
  const analytics = new Analytics({ writeKey: 'wk', disable: true })
  let calls = 0
  const count = (): void => void calls++
  assert.equal(analytics.on('track', count).once('track', count).off('error', count), analytics)
  analytics.track({ userId: 'u', event: 'e' })
  assert.equal(calls, 2)
  analytics.off('track', count)
  analytics.track({ userId: 'u', event: 'e' })
  assert.equal(calls, 2)
})

test('a listener added with once can be removed with off', () => {
  const analytics = new Analytics({ writeKey: 'wk', disable: true })
  const fail = (): void => assert.fail('taken back')
  analytics.once('track', fail).off('track', fail)
  analytics.track({ userId: 'u', event: 'e' })
})

test('a listener that throws affects neither the caller nor other listeners, and is reported as listener_failed', () => {
  const analytics = new Analytics({ writeKey: 'wk', disable: true })
  const seen: string[] = []
  analytics.on('error', (error) => seen.push(error.code))
  analytics.on('track', () => {
    throw new Error('mine')
  })
  analytics.on('track', () => seen.push('second'))
  analytics.track({ userId: 'u', event: 'e' })
  assert.deepEqual(seen, ['listener_failed', 'second'])
})

test('an error without a listener is printed as a warning, once for each code', async () => {
  const warnings: Error[] = []
  const collect = (warning: Error): void => void warnings.push(warning)
  process.on('warning', collect)
  try {
    const analytics = new Analytics({ writeKey: 'wk' })
    for (let i = 0; i < 3; i++) analytics.track({ userId: '', event: 'e' })
    for (let i = 0; i < 3; i++) analytics.track({ userId: 'u', event: '' })
    analytics.track({ userId: 'u', event: '' }, () => {})
    await new Promise(setImmediate)
    const ours = warnings.filter((warning) => warning.name === 'SwitchyardWarning').map((warning) => warning.message.split(':')[0])
    assert.deepEqual(ours, ['no_user_anon_id', 'event_required'])
  } finally {
    process.off('warning', collect)
  }
})
