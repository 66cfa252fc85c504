// Custom HTTP clients in every form, the fetch client, and compression.

import assert from 'node:assert/strict'
import test from 'node:test'
import {
  Analytics,
  type AnalyticsSettings,
  FetchHTTPClient,
  type HTTPClient,
  type HTTPClientRequest,
  type HTTPFetchFn,
  type HTTPResponse,
} from '@switchyard/node'
import { startTrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }

async function send(settings: Omit<AnalyticsSettings, 'writeKey'>) {
  const analytics = new Analytics({ writeKey: 'wk', maxRetries: 0, ...settings })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  analytics.track(event)
  const { stored, failed, pending } = await analytics.closeAndFlush()
  return { stored, failed, pending, codes }
}

test('a function like fetch is called with url and options', async () => {
  const calls: Parameters<HTTPFetchFn>[] = []
  const httpClient: HTTPFetchFn = async (...args) => {
    calls.push(args)
    return { status: 200, statusText: 'OK' }
  }
  assert.equal((await send({ host: 'http://api.invalid', httpClient })).stored, 1)
  const [url, options] = calls[0] ?? assert.fail('not called')
  assert.equal(url, 'http://api.invalid/v1/batch')
  assert.equal(options.method, 'POST')
  assert.equal(options.headers['Content-Type'], 'application/json')
  assert.ok(options.signal instanceof AbortSignal)
  assert.equal((JSON.parse(options.body) as { batch: unknown[] }).batch.length, 1)
})

test('an object with makeRequest receives url, method, headers, body and data', async () => {
  const calls: HTTPClientRequest[] = []
  class Mine implements HTTPClient {
    async makeRequest(options: HTTPClientRequest): Promise<HTTPResponse> {
      calls.push(options)
      return { status: 200, statusText: 'OK' }
    }
  }
  assert.equal((await send({ host: 'http://api.invalid', httpClient: new Mine(), httpRequestTimeout: 1234 })).stored, 1)
  const options = calls[0] ?? assert.fail('not called')
  assert.equal(options.url, 'http://api.invalid/v1/batch')
  assert.equal(options.method, 'POST')
  assert.equal(options.httpRequestTimeout, 1234)
  assert.deepEqual(options.data, JSON.parse(options.body))
})

test('FetchHTTPClient uses global fetch, also one that was replaced after construction', async () => {
  await using server = await startTrackingServer()
  const client = new FetchHTTPClient()
  assert.equal((await send({ host: server.url, httpClient: client })).stored, 1)
  assert.equal(server.requests.length, 1)
  const real = globalThis.fetch
  let replaced = 0
  globalThis.fetch = (...args: Parameters<typeof fetch>) => {
    replaced++
    return real(...args)
  }
  try {
    await send({ host: server.url, httpClient: client })
  } finally {
    globalThis.fetch = real
  }
  assert.equal(replaced, 1)
})

test('FetchHTTPClient can be subclassed, and global fetch can be passed itself', async () => {
  await using server = await startTrackingServer()
  class Signed extends FetchHTTPClient {
    override makeRequest(options: HTTPClientRequest): Promise<HTTPResponse> {
      return super.makeRequest({ ...options, headers: { ...options.headers, 'X-Mine': '1' } })
    }
  }
  assert.equal((await send({ host: server.url, httpClient: new Signed() })).stored, 1)
  assert.equal(server.requests[0]?.headers['x-mine'], '1')
  assert.equal((await send({ host: server.url, httpClient: fetch })).stored, 1)
  assert.equal(server.requests.length, 2)
})

test('responses of other libraries are understood: header maps, no text(), data already read', async () => {
  const rejected = { success: true, accepted: 0, rejected: [{ index: 0, code: 'event_required', message: 'no' }] }
  const result = await send({
    httpClient: { makeRequest: async () => ({ status: 200, statusText: 'OK', headers: { 'X-A': ['b'] }, data: rejected }) },
  })
  assert.deepEqual(result.codes, ['event_required'])
})

test('a client that throws, returns an invalid response or never responds causes delivery_failure', async () => {
  const broken: HTTPClient['makeRequest'][] = [
    () => Promise.reject(new Error('no route')),
    () => {
      throw new Error('at once')
    },
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what third-party code may do
    () => Promise.reject('a string'),
    async () => ({}) as HTTPResponse,
    () => new Promise<HTTPResponse>(() => {}),
  ]
  for (const makeRequest of broken) {
    const result = await send({ httpClient: { makeRequest }, httpRequestTimeout: 50 })
    assert.deepEqual(result, { stored: 0, failed: 1, pending: 0, codes: ['delivery_failure'] })
  }
})

test('fetch is aborted at httpRequestTimeout, from the start of the request to the last byte', async () => {
  await using server = await startTrackingServer(() => ({ after: new Promise(() => {}) }))
  const started = performance.now()
  const result = await send({ host: server.url, httpClient: new FetchHTTPClient(), httpRequestTimeout: 100 })
  assert.deepEqual(result.codes, ['delivery_failure'])
  // Without the timeout it would wait for ever.
  assert.ok(performance.now() - started < 30_000)
})

test('gzip with a custom client, which receives text, is rejected instead of ignored', () => {
  assert.throws(() => new Analytics({ writeKey: 'wk', gzip: true, httpClient: new FetchHTTPClient() }), {
    code: 'invalid_settings',
    field: 'gzip',
  })
})

test('gzip compresses the request', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, gzip: true })
  for (let i = 0; i < 10; i++) analytics.track({ ...event, properties: { text: 'again and again '.repeat(50) } })
  assert.equal((await analytics.closeAndFlush()).delivered, 10)
  const [request] = server.requests
  assert.equal(request?.headers['content-encoding'], 'gzip')
  assert.equal(request?.body.batch.length, 10)
  assert.ok(Number(request?.headers['content-length']) * 10 < (request?.text.length ?? 0))
})
