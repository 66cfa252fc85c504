import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { ShownRequests } from '../../delivery/previews/shown-requests.ts'
import { ThreadTransformer } from '../../delivery/sender/transforming/thread-transformer.ts'
import { kindOf } from '../../destinations/kinds.ts'
import { routeMessages } from '../../routing/route-messages.ts'
import type { Destination } from '../../store/store.ts'
import { accept, type Fixture, STILL, settleAll, startControl } from '../fixtures/start-control.ts'

const codeOf = (code: string) => ({ transformation: { code, timeoutMs: 50, memoryMb: 8 } })
const MASK = `export default (message) => {
  console.log('saw', message.event)
  if (message.event === 'Dropped') return null
  if (message.event === 'Failing') message.missing.field = 1
  return { event: message.event, user: message.userId }
}`

interface Preview extends Fixture {
  sourceId: string
  id: string
  preview: (body?: object, token?: string) => ReturnType<Fixture['call']>
}

async function start(t: TestContext, settings: object = {}, stored: Partial<Destination> = {}): Promise<Preview> {
  const shown = new ShownRequests(() => new ThreadTransformer())
  t.after(() => shown.close())
  const preview = (destination: Destination, messages: Parameters<typeof shown.preview>[2]) =>
    shown.preview(destination, kindOf(destination).requests ?? assert.fail(), messages, Date.now())
  const fixture = await startControl(t, { route: routeMessages, delivery: { ...STILL, preview } })
  const sourceId = (await fixture.call('POST', '/api/sources', { name: 'Shop' })).body.id as string
  const { id } = (
    await fixture.call('POST', '/api/destinations', {
      name: 'Hook',
      sourceIds: [sourceId],
      urls: ['https://example.com/hook?key=in-the-url'],
      ...settings,
    })
  ).body as { id: string }
  await fixture.store.resources.updateDestination(id, stored)
  const items = ['Sent', 'Dropped', 'Failing'].map((event, at) => ({ type: 'track', event, userId: 'u-1', messageId: `m-${at}` }))
  for (const [at, item] of items.entries()) await accept(fixture.store, sourceId, [item], {}, { receivedAtMs: Date.now() - 1_000 + at })
  return {
    ...fixture,
    sourceId,
    id,
    preview: (body = {}, token) => fixture.call('POST', `/api/destinations/${id}/preview`, body, token === undefined ? {} : { token }),
  }
}

test('the newest messages are shown with their requests, and what is dropped or fails with its line and its log', async (t) => {
  const { preview } = await start(t, {}, codeOf(MASK))
  const { status, body } = await preview()
  assert.equal(status, 200)
  const [failing, dropped, sent] = body.data
  assert.deepEqual(
    [failing.messageId, failing.request, failing.error.reason, failing.error.line],
    ['m-2', null, 'transformation_failed', 4],
  )
  assert.match(failing.error.sentence, /cannot set property 'field' of undefined/)
  assert.deepEqual([dropped.messageId, dropped.request, dropped.dropped, dropped.logs], ['m-1', null, true, 'saw Dropped'])
  assert.deepEqual([sent.messageId, sent.request.method, sent.logs, sent.message.userId], ['m-0', 'POST', 'saw Sent', 'u-1'])
  assert.equal(sent.request.url, 'https://example.com/hook?key=in-the-url')
  assert.equal(sent.request.body, '{"event":"Sent","user":"u-1"}')
  assert.deepEqual(body.summary, { messages: 3, sent: 1, skipped: 0, dropped: 1, failed: 1, notRun: 0 })
  assert.equal(body.before, null)
  assert.equal((await preview({ limit: 1 })).body.data.length, 1)
})

test('changes are applied and not saved, and the answer counts the messages before and after', async (t) => {
  const { preview, call, store, id } = await start(t, {}, codeOf(MASK))
  const before = store.configuration()
  const changes = {
    subscribe: 'event != "Failing"',
    request: { method: 'PUT', path: '/u/{{user}}', headers: { 'X-Event': '{{event}}' }, body: { e: { '@path': '$.event' } } },
  }
  const { body } = await preview({ changes })
  const [failing, , sent] = body.data
  const { reason, rule, sentence } = failing.skipped
  assert.deepEqual([failing.request, reason, rule], [null, 'filtered', 'subscribe'])
  assert.match(sentence, /event != "Failing"/)
  assert.deepEqual([sent.request.method, sent.request.url], ['PUT', 'https://example.com/hook/u/u-1?key=in-the-url'])
  assert.deepEqual([sent.request.body, sent.request.headers['X-Event']], ['{"e":"Sent"}', 'Sent'])
  assert.deepEqual(body.summary, { messages: 3, sent: 1, skipped: 1, dropped: 1, failed: 0, notRun: 0 })
  assert.deepEqual(body.before, { messages: 3, sent: 1, skipped: 0, dropped: 1, failed: 1, notRun: 0 })
  assert.equal(store.configuration(), before)
  assert.equal((await preview({ changes: { version: 1 } })).body.data[0].request.body.includes('"Failing"'), true)
  for (const [wrong, field] of [
    [{ subscribe: 'type =' }, 'subscribe'],
    [{ urls: ['nowhere'] }, 'urls[0]'],
    [{ sourceIds: ['src_none'] }, 'sourceIds[0]'],
    [{ version: 9 }, 'version'],
    [{ version: 1, request: null }, 'version'],
    [{ surprise: 1 }, 'surprise'],
  ] as const) {
    const refused = await preview({ changes: wrong })
    const saved = await call('PATCH', `/api/destinations/${id}`, wrong)
    assert.deepEqual([refused.status, refused.body.field], [400, field], JSON.stringify(wrong))
    assert.deepEqual(refused.body, saved.body)
  }
  assert.equal(store.configuration().destinations.get(id)?.version, 2)
})

test('one stored or given message is shown, also of a disabled destination', async (t) => {
  const { preview } = await start(t, { enabled: false })
  const { body: stored } = await preview({ messageId: 'm-1' })
  assert.deepEqual([stored.data.length, stored.data[0].messageId, JSON.parse(stored.data[0].request.body).event], [1, 'm-1', 'Dropped'])
  const { body: given } = await preview({ message: { type: 'identify', userId: 'u-2', traits: { plan: 'a' } } })
  assert.deepEqual([given.data[0].type, JSON.parse(given.data[0].request.body).traits], ['identify', { plan: 'a' }])
  const deep = JSON.parse(`${'['.repeat(600)}${']'.repeat(600)}`) as unknown
  for (const [body, field] of [
    [{ message: { type: 'track', userId: 'u' } }, 'message'],
    [{ message: { type: 'nothing', userId: 'u' } }, 'message'],
    [{ message: 'text' }, 'message'],
    [{ message: { type: 'track', event: 'e', userId: 'u', properties: { text: 'a'.repeat(40_000) } } }, 'message'],
    // The whole request is rejected before its fields are read.
    [{ message: { type: 'track', event: 'e', userId: 'u', properties: { deep } } }, undefined],
    [{ message: {}, messageId: 'm-1' }, 'message'],
    [{ limit: 51 }, 'limit'],
    [{ limit: 0 }, 'limit'],
    [{ changes: [] }, 'changes'],
  ] as const) {
    const answer = await preview(body)
    assert.deepEqual([answer.status, answer.body.field], [400, field], JSON.stringify(body).slice(0, 100))
  }
  assert.equal((await preview({ messageId: 'none' })).status, 404)
})

test('secrets are hidden, and a viewer sees no header value and cannot preview changes', async (t) => {
  const settings = {
    headers: { 'X-Key': 'SECRET-1' },
    sharedSecret: 'SECRET-2',
    signingSecrets: ['whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0'],
    auth: { type: 'bearer', token: 'SECRET-3' },
    request: { headers: { 'X-Event': '{{event}}' } },
  }
  const { preview, call } = await start(t, settings)
  const admin = await preview({ messageId: 'm-0' })
  const { headers } = admin.body.data[0].request
  assert.ok(!admin.text.includes('SECRET-'))
  const hidden = ['X-Key', 'Authorization', 'X-Signature', 'webhook-signature']
  assert.deepEqual(
    hidden.map((name) => headers[name]),
    hidden.map(() => '(hidden)'),
  )
  assert.equal(headers['X-Event'], 'Sent')
  const { token } = (await call('POST', '/api/tokens', { name: 'looks', role: 'viewer' })).body
  const viewer = await preview({ messageId: 'm-0' }, token)
  assert.ok(!viewer.text.includes('SECRET-'))
  assert.deepEqual(
    [viewer.status, viewer.body.data[0].request.url, viewer.body.data[0].request.headers['X-Event']],
    [200, 'https://example.com/hook?key=(hidden)', '(hidden)'],
  )
  assert.equal((await preview({ messageId: 'm-0', changes: {} }, token)).status, 403)
  assert.equal((await preview({ limit: 'x', changes: { surprise: 1 } }, token)).status, 403, 'before what is wrong with the request')
})

test('a viewer sees no credential of the mapping and the path, in whatever form the request has it', async (t) => {
  const request = {
    path: '/bot1:SECRET6789abcdef/{{userId}}',
    body: {
      token: { '@template': 'SECRET-1-{{userId}}' },
      hook: 'https://example.com/SECRET-2',
      password: { '@case': { operator: 'lower', value: 'SECRET "3" äöü' } },
      key: 'SECRET',
      event: { '@path': '$.event' },
    },
  }
  const { preview, call, id } = await start(t, { request })
  const { token } = (await call('POST', '/api/tokens', { name: 'looks', role: 'viewer' })).body
  for (const format of ['json', 'form']) {
    assert.equal((await call('PATCH', `/api/destinations/${id}`, { request: { ...request, format } })).status, 200)
    const viewer = await preview({ messageId: 'm-0' }, token)
    assert.doesNotMatch(viewer.text, /SECRET/i)
    const shown = viewer.body.data[0].request
    assert.equal(shown.url, 'https://example.com/hook/(hidden)/u-1?key=(hidden)')
    assert.match(shown.body, /event[^S]*Sent/)
    assert.match((await preview({ messageId: 'm-0' })).body.data[0].request.body, /SECRET-1-u-1/)
  }
})

test('the health says that the code fails, and since which version', async (t) => {
  const fixture = await start(t)
  const { call, store, sourceId, id } = fixture
  const content = async (): Promise<unknown> => (await call('GET', `/api/destinations/${id}/health`)).body.content
  assert.deepEqual(await content(), { version: 1, failing: null })
  const fail = async (version: number): Promise<void> => {
    await accept(store, sourceId, [{ type: 'track', event: 'e', userId: 'u', messageId: `f-${version}` }], {
      shipments: [{ destinationId: id, indexes: null }],
    })
    const none = {
      address: null,
      status: null,
      dnsMs: null,
      connectMs: null,
      tlsMs: null,
      firstByteMs: null,
      responseStart: null,
      logs: null,
    }
    const request = {
      url: 'https://example.com/',
      reason: 'transformation_failed',
      error: `line 1: ${version}`,
      totalMs: 0,
      version,
      ...none,
    }
    await settleAll(fixture, id, 'failed', request)
  }
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))
  for (const version of [2, 3, 4]) {
    await pause()
    await store.resources.updateDestination(id, codeOf(`version ${version}`))
    await pause()
    assert.deepEqual(await content(), { version, failing: null })
    if (version > 2) await fail(version)
  }
  const { failing } = (await content()) as { failing: { lastAt: string } }
  assert.ok(Date.parse(failing.lastAt) > 0)
  assert.deepEqual(failing, { reason: 'transformation_failed', error: 'line 1: 4', sinceVersion: 3, lastAt: failing.lastAt })
  await call('PATCH', `/api/destinations/${id}`, { version: 2 })
  assert.deepEqual(await content(), { version: 5, failing: null })
})

test('too many previews at the same time are rejected', async (t) => {
  const { preview } = await start(t, {}, codeOf('export default (message) => message'))
  const answers = await Promise.all(Array.from({ length: 12 }, () => preview()))
  const refused = answers.filter(({ status }) => status !== 200)
  assert.ok(refused.length > 0 && refused.length < answers.length, `${refused.length} of ${answers.length}`)
  for (const { status, body } of refused) assert.deepEqual([status, body.code], [429, 'too_many_previews'])
})
