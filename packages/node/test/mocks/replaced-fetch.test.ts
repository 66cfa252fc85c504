// Global fetch is replaced as test suites do it: before the client is imported, afterwards, and restored.

import assert from 'node:assert/strict'
import test, { mock } from 'node:test'
import { startTrackingServer } from '../tracking-server.ts'

const ownFetch = globalThis.fetch
const calls: [url: string, options: RequestInit][] = []
async function replaced(url: string, options: RequestInit): Promise<unknown> {
  calls.push([url, options])
  return { ok: true, status: 200, json: async () => ({ success: true }) }
}
replace(replaced)
// Imported only now, so that the client never sees the runtime's own fetch.
const { Analytics } = await import('@switchyard/node')

function replace(fetch: unknown): void {
  globalThis.fetch = fetch as typeof globalThis.fetch
}

async function sendOne(host: string, settings: object = {}): Promise<string[]> {
  const analytics = new Analytics({ writeKey: 'wk', host, maxRetries: 0, ...settings })
  const errors: string[] = []
  analytics.on('error', (error) => errors.push(error.message))
  analytics.track({ userId: 'u', event: 'e' })
  await analytics.closeAndFlush()
  return errors
}

test('a fetch that was replaced before the client was imported is called, with the body as text', async () => {
  replace(replaced)
  assert.deepEqual(await sendOne('http://127.0.0.1:9'), [])
  const [url, options] = calls.at(-1) ?? assert.fail('not called')
  assert.equal(url, 'http://127.0.0.1:9/v1/batch')
  assert.equal(options.method, 'POST')
  assert.equal((JSON.parse(options.body as string) as { batch: unknown[] }).batch.length, 1)
})

test('a restored runtime fetch is recognised: the client sends with node:http', async () => {
  replace(ownFetch)
  await using server = await startTrackingServer()
  const before = calls.length
  assert.deepEqual(await sendOne(server.url), [])
  assert.equal(calls.length, before)
  assert.equal(server.requests.length, 1)
  // Only fetch sends this header.
  assert.equal(server.requests[0]?.headers['sec-fetch-mode'], undefined)
})

for (const [form, wrap] of [
  ['a function', () => (url: string, options: RequestInit) => replaced(url, options)],
  ['a bound function', () => replaced.bind(undefined)],
  ['a mock of node:test, which is a Proxy', () => mock.fn(ownFetch, replaced as unknown as typeof fetch)],
  ['a function of the same name and parameters', () => fetchLike()],
] as const) {
  test(`fetch can be replaced by ${form}`, async () => {
    replace(wrap())
    const before = calls.length
    assert.deepEqual(await sendOne('http://127.0.0.1:9'), [])
    assert.equal(calls.length, before + 1)
  })
}

test('an existing client uses a fetch that is replaced later: it checks before each request', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const before = calls.length
  for (const fetch of [ownFetch, replaced, ownFetch]) {
    replace(fetch)
    analytics.track({ userId: 'u', event: 'e' })
    assert.equal((await analytics.flush()).delivered, 1)
  }
  assert.equal(calls.length, before + 1)
  assert.equal(server.requests.length, 2)
  await analytics.closeAndFlush()
})

test('a wrapped fetch supports gzip, endless responses, the timeout and close', async () => {
  const wrapped: typeof fetch = (...args) => ownFetch(...args)
  replace(wrapped)
  await using server = await startTrackingServer((_request, number) =>
    number === 1 ? undefined : number === 2 ? { body: 'x'.repeat(2_000_000) } : { after: new Promise(() => {}) },
  )
  assert.deepEqual(await sendOne(server.url, { gzip: true }), [])
  assert.equal(server.requests[0]?.headers['content-encoding'], 'gzip')
  assert.equal(server.messages().length, 1)
  assert.match((await sendOne(server.url))[0] ?? '', /response is larger than/)
  assert.match((await sendOne(server.url, { httpRequestTimeout: 50 }))[0] ?? '', /no response within 50 ms/)
  const analytics = new Analytics({ writeKey: 'wk', host: server.url }).on('error', () => {})
  analytics.track({ userId: 'u', event: 'e' })
  void analytics.flush()
  await server.arrived(4)
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 10 }), { stored: 0, failed: 0, pending: 1 })
})

function fetchLike(): unknown {
  return function fetch(input: string, init: RequestInit) {
    return replaced(input, init)
  }
}
