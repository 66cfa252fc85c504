// What the API tells about one message: its timeline, and why it was not sent or is not known.

import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../store/conformance/fixtures.ts'
import { FAILED, setUp, track } from '../fixtures/history.ts'
import { accept, settleAll } from '../fixtures/start-control.ts'

test('a message without deliveries has the reason', async (t) => {
  const { call, store, sourceId, one, two } = await setUp(t)
  await accept(store, sourceId, [track('m-1')], { skips: [{ destinationId: null, reason: 'no_destination', indexes: null }] })
  await accept(store, sourceId, [track('m-2')], {
    skips: [
      { destinationId: one, reason: 'destination_disabled', indexes: null },
      { destinationId: two, reason: 'historical', indexes: null },
    ],
  })
  const first = await call('GET', '/api/messages/m-1')
  assert.deepEqual([first.body.deliveries, first.body.skips.length], [[], 1])
  assert.deepEqual(first.body.skips[0].reason, 'no_destination')
  assert.match(first.body.skips[0].message, /no destination/)
  const second = await call('GET', '/api/messages/m-2')
  assert.deepEqual(
    second.body.skips.map(({ destinationId, reason }: Record<string, unknown>) => [destinationId, reason]),
    [
      [one, 'destination_disabled'],
      [two, 'historical'],
    ],
  )
})

test('a message has its timeline, with names, attempts, duplicates and reasons why it was not sent', async (t) => {
  const { call, fixture, store, sourceId, one, two } = await setUp(t)
  const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: null }
  const plan = {
    shipments: [{ destinationId: one, indexes: null }],
    skips: [{ destinationId: two, reason: 'filtered', rule: 'event_denied', indexes: null } as const],
  }
  for (let times = 0; times < 3; times++) await accept(store, sourceId, [track('m-1')], plan, { trace })
  await settleAll(fixture, one, 'failed', FAILED)
  const { body } = await call('GET', '/api/messages/m-1')
  assert.deepEqual([body.sourceName, body.browser, body.purged, body.others], ['Shop', false, false, []])
  assert.equal(body.traceId, '0af7651916cd43dd8448eb211c80319c')
  assert.equal(body.duplicates.count, 2)
  assert.ok(Math.abs(Date.parse(body.duplicates.lastAt) - Date.now()) < 60_000)
  assert.equal(body.skips[0].rule, 'event_denied')
  assert.equal(body.skips[0].message, 'The destination\'s filter denies the event "Order Completed".')
  const [{ destinationName, attempts, state }] = body.deliveries
  assert.deepEqual([destinationName, attempts.length, attempts[0].url, state], ['One', 1, FAILED.url, 'failed'])
  const kinds = body.story.map(({ what }: { what: string }) => what)
  assert.deepEqual(kinds.sort(), ['attempted', 'duplicate', 'failed', 'owed', 'received', 'skipped'])
  const times = body.story.map(({ at }: { at: string }) => Date.parse(at))
  assert.deepEqual(
    times,
    [...times].sort((a, b) => a - b),
    'in order',
  )
  const delivery = await call('GET', `/api/deliveries/${body.deliveries[0].id}`)
  assert.equal(delivery.body.traceId, body.traceId)
})

test('all messages with the same messageId are returned, newest first', async (t) => {
  const { call, fixture, send, sourceId } = await setUp(t)
  const { body: source } = await fixture.call('POST', '/api/sources', { name: 'App' })
  await send([track('shared')])
  await accept(fixture.store, source.id, [track('shared')])
  const { body } = await call('GET', '/api/messages/shared')
  assert.deepEqual([body.sourceName, body.others.length], ['App', 1])
  const [other] = body.others
  assert.deepEqual([other.sourceId, other.sourceName, other.duplicates, other.story.length], [sourceId, 'Shop', null, 3])
  assert.deepEqual((await call('GET', `/api/messages/${other.id}`)).body.story, other.story)
})

test('a purged message is shown without its content, and its pending deliveries are still listed', async (t) => {
  const { call, send, store, one } = await setUp(t)
  await send([track('m-1', { userId: 'leaves' })])
  const { body: before } = await call('GET', '/api/messages/m-1')
  await call('POST', '/api/deletions', { userIds: ['leaves'] })
  const { body } = await until(
    () => call('GET', '/api/messages/m-1'),
    (message) => message.body.purged,
    'the message is purged',
  )
  assert.deepEqual([body.id, body.message, body.ip, body.userId, body.type], [before.id, null, null, null, null])
  const { what, sentence, destinationId } = body.story.at(-1)
  assert.deepEqual([what, destinationId], ['waiting', one])
  assert.match(sentence, /still pending/i)
  assert.doesNotMatch(JSON.stringify(body), /leaves|192\.0\.2\.7/)
  assert.equal((await store.books.ledger()).find(({ destinationId }) => destinationId === one)?.pending, 2, 'and the delete message')
})

test('the error for a rejected message says so, and the error for an unknown one lists possible reasons', async (t) => {
  const { call, store, sourceId } = await setUp(t)
  const sample = '{"type":"track","messageId" : "no-event","userId":"u"}'
  store.ingest.reject({ sourceId, code: 'event_required', count: 1, sample, atMs: 1_700_000_000_000 })
  // Rejections are recorded in the background.
  await until(
    () => call('GET', '/api/rejections'),
    ({ body }) => body.data.length === 1,
    'the rejection is listed',
  )
  const { status, body } = await call('GET', '/api/messages/no-event')
  const expected = `A message with this messageId, from the source ${sourceId}, was rejected at 2023-11-14T22:13:20.000Z with the code event_required, so it was not stored.`
  const rejection = { code: 'event_required', sourceId, at: '2023-11-14T22:13:20.000Z' }
  assert.deepEqual([status, body.code, body.message, body.rejection], [404, 'message_not_found', expected, rejection])
  for (const id of ['track', 'u', 'no-even']) {
    assert.match(
      (await call('GET', `/api/messages/${id}`)).body.message,
      /^No message with the id or messageId ".*" is stored\. Possible reasons: it never arrived;/,
    )
  }
  const hostile = (await call('GET', `/api/messages/${encodeURIComponent('\u001b[31m<script>')}`)).body.message
  assert.match(hostile, /"\\u001b\[31m<script>"/)
})

test('the timeline shows the subscribe expression that applied, also after it was changed and after the destination was deleted', async (t) => {
  const { call, store, sourceId, one } = await setUp(t)
  const path = `/api/destinations/${one}`
  const skips = [{ destinationId: one, reason: 'filtered', rule: 'subscribe', indexes: null } as const]
  await call('PATCH', path, { subscribe: 'type = "page"' })
  // Times in the audit log and of messages are in milliseconds.
  const pause = () =>
    until(
      async () => Date.now(),
      (now) => now > pausedMs,
      'a later millisecond',
    )
  let pausedMs = Date.now()
  await pause()
  await accept(store, sourceId, [track('m-1')], { skips }, { receivedAtMs: Date.now() })
  pausedMs = Date.now()
  await pause()
  const seen = async () => {
    const { body } = await call('GET', '/api/messages/m-1')
    assert.deepEqual([body.skips[0].reason, body.skips[0].rule], ['filtered', 'subscribe'])
    assert.ok(body.story.some(({ sentence }: { sentence: string }) => sentence.endsWith(body.skips[0].message)))
    return body.skips[0].message as string
  }
  const expected = 'The message does not match the destination\'s subscribe expression: type = "page"'
  assert.equal(await seen(), expected)
  for (const change of [{ subscribe: 'type = "group"' }, { name: 'Renamed' }, { subscribe: null }]) await call('PATCH', path, change)
  assert.equal(await seen(), expected)
  await call('DELETE', path)
  assert.equal(await seen(), expected)
})
