import assert from 'node:assert/strict'
import test from 'node:test'
import type { PastAttempt } from '../../delivery/delivery.ts'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { until } from '../../store/conformance/fixtures.ts'
import { DELIVERED, FAILED, setUp, track } from '../fixtures/history.ts'
import { type Fixture, STILL, settleAll } from '../fixtures/start-control.ts'
import type { ControlDelivery } from '../routes/route.ts'

async function all({ call }: Fixture, path: string) {
  const found: Record<string, unknown>[] = []
  let cursor = ''
  for (;;) {
    const { body } = await call('GET', `${path}${cursor}`)
    found.push(...body.data)
    if (body.next === null) return found
    cursor = `&cursor=${body.next}`
  }
}

test('a message is listed as it was accepted and as it is delivered', async (t) => {
  const { call, send, sourceId, one } = await setUp(t)
  const { receivedAtMs } = await send([track('m-1', { anonymousId: 'a-1', properties: { total: 7 } })])
  const { body } = await call('GET', '/api/messages')
  const [{ id, deliveries, message, ...rest }] = body.data
  assert.deepEqual(rest, {
    messageId: 'm-1',
    sourceId,
    type: 'track',
    userId: 'u-1',
    anonymousId: 'a-1',
    event: 'Order Completed',
    receivedAt: new Date(receivedAtMs).toISOString(),
    timestamp: '2026-11-14T09:00:00.000Z',
    ip: '192.0.2.7',
    browser: false,
    traceId: null,
    quarantine: null,
    violations: [],
    skips: [],
  })
  assert.deepEqual([message.version, message.event, message.properties], [1, 'Order Completed', { total: 7 }])
  assert.deepEqual(
    deliveries.map(({ destinationId }: { destinationId: string }) => destinationId),
    [one],
  )
  for (const name of [id, 'm-1']) assert.equal((await call('GET', `/api/messages/${name}`)).body.id, id)
})

test('a message includes the current state of its deliveries', async (t) => {
  const { call, fixture, send, one, two } = await setUp(t)
  await send([track('m-1')], [one, two])
  await settleAll(fixture, two, 'failed', FAILED)
  const { body } = await call('GET', '/api/messages/m-1')
  const states = body.deliveries.map(({ destinationId, state, reason, attemptCount }: Record<string, unknown>) => {
    return { destinationId, state, reason, attemptCount }
  })
  assert.deepEqual(states, [
    { destinationId: one, state: 'pending', reason: null, attemptCount: 0 },
    { destinationId: two, state: 'failed', reason: 'http_500', attemptCount: 1 },
  ])
})

test('messages are found by source, type, user, messageId and time, in pages', async (t) => {
  const { call, fixture, send, sourceId } = await setUp(t)
  for (let index = 0; index < 7; index += 1) await send([track(`m-${index}`, index === 3 ? { userId: 'u-2' } : {})])
  await send([{ type: 'identify', userId: 'u-1', messageId: 'i-1' }])
  const found = await all(fixture, '/api/messages?limit=3')
  assert.equal(new Set(found.map(({ id }) => id)).size, 8)
  const ids = async (query: string) => (await all(fixture, `/api/messages?limit=100&${query}`)).map(({ messageId }) => messageId)
  assert.deepEqual(await ids('type=identify'), ['i-1'])
  assert.deepEqual(await ids('userId=u-2'), ['m-3'])
  assert.deepEqual(await ids('messageId=m-5'), ['m-5'])
  assert.equal((await ids(`sourceId=${sourceId}`)).length, 8)
  assert.deepEqual(await ids('sourceId=nobody'), [])
  assert.deepEqual(await ids('search=U-2'), ['m-3'])
  assert.deepEqual(await ids('property=userId%3Du-2'), ['m-3'])
  assert.equal((await call('GET', '/api/messages?property=a..b')).body.field, 'property')
  assert.deepEqual(await ids('from=2099-01-01'), [])
  assert.equal((await ids('from=2020-01-01&to=2099-01-01')).length, 8)
  const { body } = await call('GET', '/api/messages?limit=3')
  const foreign = await call('GET', `/api/deliveries?cursor=${body.next}`)
  assert.deepEqual([foreign.status, foreign.body.code], [400, 'invalid_cursor'])
})

test('an unknown message is 404', async (t) => {
  const { call } = await setUp(t)
  for (const id of ['nothing', '1-1', '1-', '-', '%00', encodeURIComponent('…'.repeat(100)), '9'.repeat(40)]) {
    const { status, body } = await call('GET', `/api/messages/${id}`)
    assert.deepEqual([status, body.code], [404, 'message_not_found'], id)
  }
})

test('a pending delivery shows why its last attempt failed, in lists, alone and with its message', async (t) => {
  const { call, fixture, send, one } = await setUp(t)
  await send([track('m-1')])
  await settleAll(fixture, one, 'retry', FAILED)
  const { body: list } = await call('GET', `/api/deliveries?destinationId=${one}&state=pending`)
  const [row] = list.data
  assert.deepEqual([row.state, row.reason, row.lastReason, row.attemptCount], ['pending', null, 'http_500', 1])
  assert.equal((await call('GET', `/api/deliveries/${row.id}`)).body.lastReason, 'http_500')
  assert.equal((await call('GET', `/api/messages/${row.storedMessageId}`)).body.deliveries[0].lastReason, 'http_500')
})

test('one delivery shows its attempts and its request', async (t) => {
  const described: { url: string; indexes: readonly number[]; about: PastAttempt }[] = []
  const delivery: ControlDelivery = {
    ...STILL,
    async describeRequest(destination, parts, about) {
      described.push({ url: asWebhook(destination).urls[0] as string, indexes: parts.flatMap(({ indexes }) => indexes), about })
      return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(parts[0]?.content.items[0]) }
    },
  }
  const { call, fixture, send, one } = await setUp(t, delivery)
  await send([track('m-1'), track('m-2')])
  await settleAll(fixture, one, 'failed', FAILED)
  const { body: list } = await call('GET', `/api/deliveries?destinationId=${one}&state=failed`)
  const row = list.data.find(({ messageId }: { messageId: string }) => messageId === 'm-2')
  const { status, body } = await call('GET', `/api/deliveries/${row.id}`)
  assert.equal(status, 200)
  const { attempts, request, traceId, deadLetter, deadLetterWithheld, ...rest } = body
  assert.deepEqual([rest, traceId, deadLetter, deadLetterWithheld], [row, null, null, null])
  assert.deepEqual(
    [row.state, row.reason, row.attemptCount, row.replay, row.nextAttemptAt, row.messageId],
    ['failed', 'http_500', 1, false, null, 'm-2'],
  )
  assert.ok(Math.abs(Date.parse(row.settledAt) - Date.now()) < 60_000)
  assert.equal((await call('GET', `/api/messages/${row.storedMessageId}`)).body.messageId, 'm-2')
  assert.equal(attempts.length, 1)
  const { startedAt, ...attempt } = attempts[0]
  assert.ok(Math.abs(Date.parse(startedAt) - Date.now()) < 60_000)
  assert.deepEqual(attempt, {
    attempt: 1,
    url: 'https://example.com/hook',
    address: '192.0.2.1',
    status: 500,
    reason: 'http_500',
    error: 'The receiver answered 500.',
    timings: { dnsMs: 1, connectMs: null, tlsMs: null, firstByteMs: 4, totalMs: 5 },
    responseStart: 'oops',
    version: 1,
    logs: null,
    subscription: null,
    method: null,
    load: null,
  })
  assert.deepEqual([request.headers, request.note], [{ 'content-type': 'application/json' }, null])
  // Both were sent in one request, which has the id of the first delivery.
  assert.deepEqual(described[0]?.indexes, [0, 1])
  const { deliveryId, attempt: number, replay } = described[0]?.about ?? {}
  assert.deepEqual([deliveryId, number, replay], [row.id.replace(/-1$/, '-0'), 1, false])
})

test('the delivery of a deleted destination is shown without its request', async (t) => {
  const { call, fixture, send, one } = await setUp(t)
  await send([track('m-1')])
  await settleAll(fixture, one, 'failed', FAILED)
  const { body: list } = await call('GET', `/api/deliveries?destinationId=${one}`)
  await call('DELETE', `/api/destinations/${one}`)
  const { status, body } = await call('GET', `/api/deliveries/${list.data[0].id}`)
  assert.deepEqual([status, body.state, body.request], [200, 'failed', null])
})

test('deliveries are found by user and event, and failures grouped by their cause', async (t) => {
  const { call, fixture, send, one, two } = await setUp(t)
  await send([track('m-1'), track('m-2', { userId: 'u-2', event: 'Seen' })], [one, two])
  await settleAll(fixture, one, 'failed', FAILED)
  await settleAll(fixture, two, 'expired', { ...FAILED, status: null, reason: 'timeout', error: 'The receiver did not answer in time.' })
  const ids = async (query: string) => (await all(fixture, `/api/deliveries?${query}`)).map(({ messageId }) => messageId)
  assert.deepEqual(await ids('userId=u-2'), ['m-2', 'm-2'])
  assert.deepEqual(await ids(`event=Order%20Completed&destinationId=${one}`), ['m-1'])
  assert.deepEqual(await ids('userId=u-2&event=Order%20Completed'), [])
  const { body: list } = await call('GET', `/api/deliveries?userId=u-2&destinationId=${one}`)
  const [{ type, event, userId, anonymousId }] = list.data
  assert.deepEqual([type, event, userId, anonymousId], ['track', 'Seen', 'u-2', null])

  const { status, body } = await call('GET', '/api/deliveries/causes')
  assert.deepEqual([status, body.counted], [200, 4])
  const shown = body.data.map(({ firstAt, lastAt, deliveryId, ...rest }: Record<string, unknown>) => {
    assert.ok(typeof deliveryId === 'string' && Date.parse(firstAt as string) <= Date.parse(lastAt as string))
    return rest
  })
  const timeout = { reason: 'timeout', status: null, sentence: 'The receiver did not answer in time.' }
  const answered = { reason: 'http_500', status: 500, sentence: 'The receiver answered 500 Internal Server Error.' }
  assert.deepEqual(shown, [
    { destinationId: two, state: 'expired', ...timeout, count: 2, partial: false },
    { destinationId: one, state: 'failed', ...answered, count: 2, partial: false },
  ])
  assert.equal((await call('GET', `/api/deliveries/causes?state=failed&destinationId=${two}`)).body.data.length, 0)
  assert.equal((await call('GET', '/api/deliveries/causes?state=pending')).status, 400)
  assert.equal((await call('GET', '/api/deliveries/causes?to=2020-01-01')).body.data.length, 0)

  const answers = await call('GET', `/api/deliveries/answers?destinationId=${one}&state=failed`)
  assert.equal(answers.body.examined, 2)
  const [answer] = answers.body.data
  assert.deepEqual([answer.reason, answer.status, answer.sentence, answer.count], ['http_500', 500, answered.sentence, 2])
  assert.equal((await call('GET', '/api/deliveries/answers?state=failed')).status, 400)
  assert.deepEqual((await call('GET', '/api/deliveries/answers?destinationId=dst_x&state=failed')).body, { data: [], examined: 0 })
})

test('a settled delivery is replayed as a new delivery', async (t) => {
  const { call, fixture, send, one } = await setUp(t)
  await send([track('m-1')])
  const { body: message } = await call('GET', '/api/messages/m-1')
  const [{ id }] = message.deliveries
  const early = await call('POST', `/api/deliveries/${id}/replay`)
  assert.deepEqual([early.status, early.body.code], [409, 'delivery_pending'])

  await settleAll(fixture, one, 'failed', FAILED)
  const { status, body } = await call('POST', `/api/deliveries/${id}/replay`)
  assert.equal(status, 202)
  assert.equal(body.replayOf, id)
  assert.notEqual(body.id, id)
  const pending = await call('GET', `/api/deliveries/${body.id}`)
  assert.deepEqual([pending.body.state, pending.body.replay, pending.body.settledAt], ['pending', true, null])
  await settleAll(fixture, one, 'delivered', DELIVERED)
  assert.equal((await call('GET', `/api/deliveries/${body.id}`)).body.state, 'delivered')
  const { body: ledger } = await call('GET', '/api/ledger')
  const counts = ledger.data.find(({ destinationId }: { destinationId: string }) => destinationId === one)
  assert.deepEqual([counts.owed, counts.failed, counts.delivered], [2, 1, 1])

  await call('DELETE', `/api/destinations/${one}`)
  const gone = await call('POST', `/api/deliveries/${id}/replay`)
  assert.deepEqual([gone.status, gone.body.code], [409, 'destination_gone'])
})

test('a delivery whose message was purged by a deletion request cannot be replayed', async (t) => {
  const { call, fixture, send, one } = await setUp(t)
  await send([track('m-1')])
  await settleAll(fixture, one, 'failed', FAILED)
  const { body: message } = await call('GET', '/api/messages/m-1')
  const [{ id }] = message.deliveries
  await call('POST', '/api/deletions', { userIds: [message.userId] })
  const { status, body } = await call('POST', `/api/deliveries/${id}/replay`)
  assert.deepEqual([status, body.code], [409, 'message_gone'])
})

test('an unknown delivery is 404, for reading and for replaying', async (t) => {
  const { call } = await setUp(t)
  for (const id of ['nothing', '1-1', '1-', '-1', '%00', '9'.repeat(40)]) {
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/replay'],
    ] as const) {
      const { status, body } = await call(method, `/api/deliveries/${id}${path}`)
      assert.deepEqual([status, body.code], [404, 'delivery_not_found'], `${method} ${id}${path}`)
    }
  }
})

test('the ledger is consistent, both as stored and recounted from the rows', async (t) => {
  const { call, fixture, send, one, two } = await setUp(t)
  await send([track('m-1'), track('m-2')], [one])
  await settleAll(fixture, one, 'delivered', DELIVERED)
  await send([track('m-3')], [one])
  const expected = [
    { destinationId: one, owed: 3, delivered: 2, pending: 1, failed: 0, expired: 0, cancelled: 0, quarantined: 0 },
    { destinationId: two, owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0, quarantined: 0 },
  ]
  const order = (rows: { destinationId: string }[]) => rows.sort((a, b) => (a.destinationId < b.destinationId ? -1 : 1))
  for (const path of ['/api/ledger', '/api/ledger?recount=true', '/api/ledger?recount=false']) {
    const { body } = await call('GET', path)
    assert.equal(body.consistent, true)
    assert.deepEqual(order(body.data), order(expected))
  }
})

test('stats and rejections count the messages of each source and the rejected ones', async (t) => {
  const { call, store, send, sourceId } = await setUp(t)
  await send([track('m-1'), track('m-2')])
  await send([track('m-2')])
  store.ingest.reject({ sourceId, code: 'event_required', count: 2, sample: '{"type":"track"}', atMs: 1_700_000_000_000 })
  store.ingest.reject({ sourceId: null, code: 'invalid_write_key', count: 1, sample: '', atMs: 1_700_000_000_000 })
  store.ingest.suppressed(sourceId, 3)
  // Rejections are counted in the background.
  const own = await until(
    async () => (await call('GET', '/api/stats/totals')).body.data.find((row: { sourceId: string }) => row.sourceId === sourceId),
    ({ rejected, suppressed }) => rejected > 0 && suppressed > 0,
    'both are counted',
  )
  assert.deepEqual(own, { sourceId, accepted: 2, duplicates: 1, rejected: 2, suppressed: 3, quarantined: 0, released: 0, deleted: 0 })
  const { body: rejections } = await until(
    () => call('GET', '/api/rejections'),
    ({ body }) => body.data.length === 2,
    'both are listed',
  )
  const lastAt = '2023-11-14T22:13:20.000Z'
  assert.deepEqual(
    rejections.data.sort((a: { code: string }, b: { code: string }) => (a.code < b.code ? -1 : 1)),
    [
      { sourceId, code: 'event_required', count: 2, lastAt, lastSample: '{"type":"track"}' },
      { sourceId: null, code: 'invalid_write_key', count: 1, lastAt, lastSample: '' },
    ],
  )
})

test('a source that sent nothing has counts of zero', async (t) => {
  const { call, sourceId } = await setUp(t)
  const { body } = await call('GET', '/api/stats/totals')
  assert.deepEqual(body.data, [
    { sourceId, accepted: 0, duplicates: 0, rejected: 0, suppressed: 0, quarantined: 0, released: 0, deleted: 0 },
  ])
})

test('the request of an attempt has a note if the destination was changed since', async (t) => {
  const { call, fixture, send, one } = await setUp(t)
  await send([track('m-1')])
  const { body: message } = await call('GET', '/api/messages/m-1')
  const path = `/api/deliveries/${message.deliveries[0].id}`
  assert.match((await call('GET', path)).body.request.note, /^Not sent yet\./)
  await settleAll(fixture, one, 'failed', FAILED)
  assert.equal((await call('GET', path)).body.request.note, null)
  await call('PATCH', `/api/destinations/${one}`, { headers: { 'X-New': '1' } })
  assert.match(
    (await call('GET', path)).body.request.note,
    /^The destination was changed at \d{4}-.*Z, after this request\. The reconstruction uses its current settings\.$/,
  )
})
