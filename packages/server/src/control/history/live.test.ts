import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { attempted, accepted as heard } from '../../observe/fixtures/events.ts'
import { LiveFeed } from '../../observe/live.ts'
import { controlRoutes } from '../control.ts'
import { startControl, TOKEN } from '../fixtures/start-control.ts'

async function setUp(t: TestContext, maxListeners = 5) {
  const live = new LiveFeed({ wallMs: () => Date.now(), maxListeners })
  const readers: ClientRequest[] = []
  // Must be first, because closing the server waits for its streams.
  t.after(() => {
    for (const reader of readers) reader.destroy()
  })
  const fixture = await startControl(t, { live })
  const [source] = [(await fixture.call('POST', '/api/sources', { name: 'web' })).body]
  const listen = async (query = '', token = TOKEN) => {
    const reader = request(`${fixture.url}/api/live${query}`, { agent: false, headers: { authorization: `Bearer ${token}` } }).end()
    reader.on('error', () => {})
    readers.push(reader)
    const [response] = (await once(reader, 'response')) as [IncomingMessage]
    return { response, events: eventsOf(response), reader }
  }
  return { ...fixture, live, listen, sourceId: source.id as string }
}

async function* eventsOf(response: IncomingMessage): AsyncGenerator<{ event: string; data: Record<string, unknown> }> {
  let text = ''
  for await (const chunk of response) {
    text += (chunk as Buffer).toString()
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
      text = text.slice(end + 2)
      if (event !== undefined) yield { event, data: JSON.parse(data as string) as Record<string, unknown> }
    }
  }
}

test('events are streamed in the form that the route declares', async (t) => {
  const { deps, live, listen, sourceId } = await setUp(t)
  const { response, events } = await listen(`?sourceId=${sourceId}`)
  assert.deepEqual([response.statusCode, response.headers['cache-control']], [200, 'no-store'])
  const of = { sourceId, messageId: 'm', type: 'track', json: null, receivedAtMs: 0 }
  live.accepted(heard(sourceId, [{ type: 'track', event: 'e', userId: 'u', messageId: 'm' }]))
  live.accepted(heard('another', [{ type: 'track', event: 'e', userId: 'u', messageId: 'not told' }]))
  live.rejected({ sourceId, code: 'event_required', messages: 1, sample: '{}' })
  live.attempted(attempted('d', 'permanent', { messages: [of], sourceId }))
  const declared = controlRoutes(deps).find(({ path }) => path === '/live')?.answer ?? assert.fail()
  for (const name of ['accepted', 'rejected', 'attempt']) {
    const { event, data } = (await events.next()).value ?? assert.fail()
    assert.equal(event, name)
    declared.parse(data, 'data')
  }
})

test('the end of the feed ends the streams, so that the service can stop', async (t) => {
  const { live, listen } = await setUp(t)
  const { events } = await listen()
  const next = events.next()
  live.close()
  assert.equal((await next).done, true)
  assert.equal(live.listeners, 0)
})

test('invalid parameters of the live stream are rejected like on other routes', async (t) => {
  const { call, live, url } = await setUp(t)
  for (const [query, status, code] of [
    ['?sourceId=nobody', 404, 'source_not_found'],
    ['?destinationId=nobody', 404, 'destination_not_found'],
    ['?type=nonsense', 400, 'invalid_field'],
    ['?messageId=a&messageId=b', 400, 'invalid_field'],
    ['?other=1', 400, 'unknown_field'],
  ] as const) {
    const answer = await call('GET', `/api/live${query}`)
    assert.deepEqual([answer.status, answer.body.code], [status, code])
  }
  assert.equal((await fetch(`${url}/api/live`)).status, 401)
  assert.equal((await call('HEAD', '/api/live')).headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(live.listeners, 0)
})

test('a viewer can listen until the token is revoked', async (t) => {
  const { call, listen } = await setUp(t)
  const { body: created } = await call('POST', '/api/tokens', { name: 'watcher', role: 'viewer' })
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { response, events } = await listen('', created.token)
  assert.equal(response.statusCode, 200)
  const next = events.next()
  t.mock.timers.tick(20_000)
  assert.equal((await call('DELETE', `/api/tokens/${created.id}`)).status, 204)
  t.mock.timers.tick(20_000)
  assert.equal((await next).done, true)
})

test('a listener above the limit is rejected, and accepted after another has disconnected', async (t) => {
  const { call, live, listen } = await setUp(t, 1)
  const { reader } = await listen()
  const { status, body } = await call('GET', '/api/live')
  assert.deepEqual([status, body.code], [429, 'too_many_listeners'])
  reader.destroy()
  // The service notices the closed socket a little later, so the test retries until then.
  while (live.listeners > 0) await call('HEAD', '/api/sources')
  assert.equal((await listen()).response.statusCode, 200)
})
