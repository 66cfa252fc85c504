// The questions of somebody whose event did not arrive, answered by the control API: where a message went and where not
// and why (B5), what became of each delivery, how a destination does, whether the books balance; and the two remedies,
// a test message and a replay.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from './in-process.ts'
import { type Arrival, type Receiver, startReceiver } from './receiver.ts'
import type { LedgerRow } from './service.ts'
import { eventually, gate } from './signals.ts'
import { type AttemptView, type Delivery, type DeliveryRow, type Wiring, wire } from './wiring.ts'

const DAY_MS = 86_400_000

let service: InProcessService
let receiver: Receiver

before(async () => {
  service = await startInProcess()
  receiver = await startReceiver()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

/** The names of the destinations that a message went to, and why it did not go to the others. */
async function whereabouts(wiring: Wiring, names: readonly string[], messageId: string): Promise<Record<string, string>> {
  const { deliveries, skips } = await wiring.message(messageId)
  const nameOf = (id: string | null): string => names[wiring.destinationIds.indexOf(id ?? '')] ?? 'nowhere'
  return Object.fromEntries([
    ...deliveries.map(({ destinationId }) => [nameOf(destinationId), 'sent']),
    ...skips.map(({ destinationId, reason }) => [nameOf(destinationId), reason]),
  ])
}

describe('B5. Selecting destinations', () => {
  const names = ['Mine', 'Yours']
  let wiring: Wiring
  before(async () => {
    wiring = await wire(service, ...names.map((name) => ({ name, urls: [`${receiver.url}${name}`] })))
  })

  const OFF = 'integrations_disabled'
  const CASES: [title: string, integrations: object | undefined, where: Record<string, string>][] = [
    ['by default all destinations are enabled', undefined, { Mine: 'sent', Yours: 'sent' }],
    ['an empty integrations object changes nothing', {}, { Mine: 'sent', Yours: 'sent' }],
    ['All set to false disables every destination', { All: false }, { Mine: OFF, Yours: OFF }],
    ['unless another key sets it to true', { All: false, Mine: true }, { Mine: 'sent', Yours: OFF }],
    ['the name that all webhooks share works as well', { All: false, Webhooks: true }, { Mine: 'sent', Yours: 'sent' }],
    ['a destination is disabled by its own name', { Yours: false }, { Mine: 'sent', Yours: OFF }],
    ['Webhooks set to false disables every webhook', { Webhooks: false }, { Mine: OFF, Yours: OFF }],
    ['its own name counts more than the shared one', { Webhooks: false, Mine: true }, { Mine: 'sent', Yours: OFF }],
    ['keys are case sensitive', { All: false, mine: true, webhooks: true }, { Mine: OFF, Yours: OFF }],
    ['an object counts as true', { All: false, Mine: { option: 1 } }, { Mine: 'sent', Yours: OFF }],
    ['keys of other destinations say nothing', { 'Google Analytics': false, Amplitude: true }, { Mine: 'sent', Yours: 'sent' }],
  ]
  for (const [title, integrations, where] of CASES) {
    test(title, async () => {
      const id = await wiring.track(integrations === undefined ? {} : { integrations })
      assert.deepEqual(await whereabouts(wiring, names, id), where)
      const sent = Object.entries(where).filter(([, what]) => what === 'sent')
      // Whatever else was sent would have been sent by now: to both, after it.
      const sentinel = await wiring.track()
      await receiver.until(() => receiver.byMessageId.get(sentinel)?.length === 2)
      await receiver.until(() => (receiver.byMessageId.get(id)?.length ?? 0) === sent.length)
      assert.deepEqual(
        receiver.byMessageId
          .get(id)
          ?.map(({ path }) => path)
          .sort() ?? [],
        sent.map(([name]) => `/${name}`).sort(),
      )
    })
  }

  test('one batch may say something else for each message', async () => {
    const [both, mine, none] = [randomUUID(), randomUUID(), randomUUID()]
    const call = { type: 'track', userId: 'u-1', event: 'Tested' }
    await wiring.send([
      { ...call, messageId: both },
      { ...call, messageId: mine, integrations: { Yours: false } },
      { ...call, messageId: none, integrations: { All: false } },
    ])
    assert.deepEqual(await whereabouts(wiring, names, both), { Mine: 'sent', Yours: 'sent' })
    assert.deepEqual(await whereabouts(wiring, names, mine), { Mine: 'sent', Yours: OFF })
    assert.deepEqual(await whereabouts(wiring, names, none), { Mine: OFF, Yours: OFF })
  })

  test('historical import: a destination with historical: false is not sent what happened more than 24 h before it was received', async () => {
    const wiring = await wire(
      service,
      { name: 'Takes all', urls: [receiver.url] },
      { name: 'Takes news', urls: [receiver.url], historical: false },
    )
    const at = (ms: number): object => ({ timestamp: new Date(Date.now() - ms).toISOString() })
    const [old, recent, none] = [await wiring.track(at(2 * DAY_MS)), await wiring.track(at(DAY_MS - 3_600_000)), await wiring.track()]
    const names = ['all', 'news']
    assert.deepEqual(await whereabouts(wiring, names, old), { all: 'sent', news: 'historical' })
    assert.deepEqual(await whereabouts(wiring, names, recent), { all: 'sent', news: 'sent' })
    assert.deepEqual(await whereabouts(wiring, names, none), { all: 'sent', news: 'sent' })
    assert.equal((await wiring.message(old)).message?.['timestamp'], receiver.byMessageId.get(old)?.[0]?.messages[0]?.['timestamp'])
  })
})

describe('Why a message went nowhere', () => {
  test('the source has no destination', async () => {
    const wiring = await wire(service)
    const { deliveries, skips } = await wiring.message(await wiring.track())
    assert.deepEqual(
      [deliveries, skips],
      [[], [{ destinationId: null, reason: 'no_destination', message: 'The source has no destination.' }]],
    )
  })

  test('its destination was disabled when it came; what was owed before is held, and sent when it is enabled again', async () => {
    const own = await startReceiver(({ number }) => (number === 1 ? { status: 503 } : undefined))
    const wiring = await wire(service, { urls: [own.url] })
    const owed = await wiring.track()
    await wiring.attempted(owed, 1)
    await wiring.change({ enabled: false })
    const missed = await wiring.track()
    assert.deepEqual(await whereabouts(wiring, ['it'], missed), { it: 'destination_disabled' })
    await service.later(60_000)
    assert.equal((await wiring.delivery(owed, () => true)).state, 'pending')
    assert.equal(own.arrivals.length, 1)
    await wiring.change({ enabled: true })
    assert.equal((await wiring.settled(owed)).state, 'delivered')
    assert.ok(!own.byMessageId.has(missed))
    await own.close()
  })

  test('its destination was deleted while it was owed: cancelled, with the reason', async () => {
    const own = await startReceiver(() => ({ status: 503 }))
    const wiring = await wire(service, { urls: [own.url] })
    const id = await wiring.track()
    await wiring.attempted(id, 1)
    await service.api(`/destinations/${wiring.destinationId}`, { method: 'DELETE' })
    const { state, reason } = await wiring.settled(id)
    assert.deepEqual([state, reason], ['cancelled', 'destination_deleted'])
    await service.later(60_000)
    assert.equal(own.arrivals.length, 1)
    await own.close()
  })

  test('its destination was deleted while some were in flight: those count as what they came to, the others as cancelled', async () => {
    const { opened, open } = gate()
    const own = await startReceiver(() => ({ after: opened }))
    const wiring = await wire(service, { urls: [own.url], maxInFlight: 2 })
    const ids: string[] = []
    for (let number = 0; number < 5; number++) ids.push(await wiring.track())
    await own.until(() => own.arrivals.length === 2)
    await service.api(`/destinations/${wiring.destinationId}`, { method: 'DELETE' })
    open()
    const states: string[] = []
    for (const id of ids) states.push((await wiring.settled(id)).state)
    assert.deepEqual(states, ['delivered', 'delivered', 'cancelled', 'cancelled', 'cancelled'])
    assert.equal(own.arrivals.length, 2)
    await own.close()
  })

  test('the destination refused it: the delivery says with what', async () => {
    const own = await startReceiver(() => ({ status: 422, headers: { 'content-type': 'text/plain' }, body: 'unknown event “Tested”' }))
    const wiring = await wire(service, { urls: [own.url] })
    const { state, reason, attempts, request, settledAt } = await wiring.settled(await wiring.track())
    assert.deepEqual([state, reason, attempts[0]?.responseStart], ['failed', 'http_422', 'unknown event “Tested”'])
    assert.equal(request?.body, own.arrivals[0]?.bytes.toString())
    assert.ok(settledAt !== null)
    await own.close()
  })

  test('messages are found by source, type, user, messageId and time', async () => {
    const wiring = await wire(service, { urls: [receiver.url] })
    const from = new Date(Date.now() - 1).toISOString()
    await wiring.post('/v1/identify', { userId: 'u-found', messageId: `${wiring.sourceId}-i`, traits: {} })
    await wiring.post('/v1/track', { userId: 'u-found', messageId: `${wiring.sourceId}-t`, event: 'Found' })
    await wiring.post('/v1/track', { userId: 'u-other', messageId: `${wiring.sourceId}-o`, event: 'Found' })
    const found = async (query: string): Promise<string> => {
      const { data } = await service.api<{ data: { messageId: string }[] }>(`/messages?sourceId=${wiring.sourceId}&${query}`)
      return data.map(({ messageId }) => messageId.at(-1)).join('')
    }
    assert.equal(await found(''), 'oti', 'newest first')
    assert.equal(await found('userId=u-found'), 'ti')
    assert.equal(await found('type=track'), 'ot')
    assert.equal(await found(`messageId=${wiring.sourceId}-t`), 't')
    assert.equal(await found(`from=${from}`), 'oti')
    assert.equal(await found(`to=${from}`), '')
  })
})

describe('Event filters', () => {
  test('a destination is sent what its filter lets through, and what is kept back says by which rule', async () => {
    const names = ['All', 'Sales', 'People', 'Quiet']
    const filters = [
      {},
      { types: { allow: ['track'] }, events: { allow: ['Order Completed', 'Refunded'], deny: ['Refunded'] } },
      { types: { deny: ['track'] } },
      { events: { deny: ['Order Completed'] } },
    ]
    const wiring = await wire(
      service,
      ...names.map((name, at) => ({ name: `${name} of them`, urls: [receiver.url + name], filter: filters[at] })),
    )
    const id = (name: string): string => `${wiring.sourceId}-${name}`
    const call = { userId: 'u-1' }
    await wiring.send([
      { ...call, type: 'track', event: 'Order Completed', messageId: id('order') },
      { ...call, type: 'track', event: 'Refunded', messageId: id('refund') },
      { ...call, type: 'track', event: 'Viewed', messageId: id('view') },
      { ...call, type: 'identify', messageId: id('identify') },
      { ...call, type: 'page', name: 'Order Completed', messageId: id('page') },
    ])
    const expected: Record<string, Record<string, string>> = {
      order: { All: 'sent', Sales: 'sent', People: 'filtered', Quiet: 'filtered' },
      refund: { All: 'sent', Sales: 'filtered', People: 'filtered', Quiet: 'sent' },
      view: { All: 'sent', Sales: 'filtered', People: 'filtered', Quiet: 'sent' },
      identify: { All: 'sent', Sales: 'filtered', People: 'sent', Quiet: 'sent' },
      page: { All: 'sent', Sales: 'filtered', People: 'sent', Quiet: 'sent' },
    }
    for (const [name, where] of Object.entries(expected)) {
      assert.deepEqual(await whereabouts(wiring, names, id(name)), where, name)
      const sent = Object.entries(where).filter(([, what]) => what === 'sent')
      for (const [to] of sent) await wiring.settled(id(name), { to: wiring.destinationIds[names.indexOf(to)] as string })
      const paths = receiver.byMessageId.get(id(name))?.map(({ path }) => path.slice(1))
      assert.deepEqual(paths?.sort(), sent.map(([to]) => to).sort(), name)
    }
    const why = async (name: string, to: string): Promise<string | undefined> =>
      (await wiring.message(id(name))).skips.find(({ destinationId }) => destinationId === wiring.destinationIds[names.indexOf(to)])
        ?.message
    assert.match((await why('order', 'People')) ?? '', /denies messages of type track/)
    assert.match((await why('refund', 'Sales')) ?? '', /denies the event "Refunded"/)
    assert.match((await why('view', 'Sales')) ?? '', /allows some events, and "Viewed" is not one of them/)
    assert.match((await why('identify', 'Sales')) ?? '', /allows some types, and identify is not one of them/)
  })

  test('a changed filter counts for what comes from then on; a request to delete a user passes it', async () => {
    const own = await startReceiver()
    const wiring = await wire(service, { urls: [own.url] })
    const before = await wiring.track()
    await wiring.settled(before)
    await wiring.change({ filter: { types: { allow: ['group'] }, events: { deny: ['Tested'] } } })
    const kept = await wiring.track({ userId: 'u-deleted' })
    assert.deepEqual(await whereabouts(wiring, ['it'], kept), { it: 'filtered' })
    await service.api('/deletions', { method: 'POST', body: { userIds: ['u-deleted'], sourceIds: [wiring.sourceId] } })
    await own.until(() => own.arrivals.length === 2)
    assert.deepEqual(
      own.messages().map(({ type }) => type),
      ['track', 'delete'],
    )
    await wiring.change({ filter: {} })
    assert.equal((await wiring.settled(await wiring.track())).state, 'delivered')
    await own.close()
  })
})

describe("The caller's trace", () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const tracestate = 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7'
  const headersOf = (arrival: Arrival | undefined): unknown => [arrival?.headers['traceparent'], arrival?.headers['tracestate']]

  test('is carried to the webhook at the first attempt, at a retry after a restart, and in a replay', async () => {
    await using own = await startInProcess()
    await using receiver = await startReceiver(({ number }) => (number === 1 ? { status: 500 } : undefined))
    const wiring = await wire(own, { urls: [receiver.url] })
    await wiring.post('/v1/track', { messageId: 'traced', userId: 'u', event: 'Tested' }, { traceparent, tracestate })
    await wiring.attempted('traced', 1)
    await own.restart({ laterMs: 60_000 })
    const { id, traceId, request } = await wiring.settled('traced')
    await own.api(`/deliveries/${id}/replay`, { method: 'POST' })
    await receiver.until(() => receiver.arrivals.length === 3)
    assert.deepEqual(
      receiver.arrivals.map(headersOf),
      Array.from({ length: 3 }, () => [traceparent, tracestate]),
    )
    assert.deepEqual(
      [traceId, request?.headers['traceparent'], request?.headers['tracestate']],
      [traceparent.slice(3, 35), traceparent, tracestate],
    )
    const { traceId: ofMessage, story } = await wiring.message('traced')
    assert.equal(ofMessage, traceparent.slice(3, 35))
    assert.match(story[0]?.sentence ?? '', /in trace 0af7651916cd43dd8448eb211c80319c/)
  })

  test('one that is not valid is ignored, and nothing of it reaches the webhook', async () => {
    const wiring = await wire(service, { urls: [receiver.url] })
    const invalid: Record<string, string>[] = [
      { traceparent: traceparent.toUpperCase() },
      { traceparent: `${traceparent}-x` },
      { tracestate },
    ]
    for (const headers of invalid) {
      const messageId = randomUUID()
      await wiring.post('/v1/track', { messageId, userId: 'u', event: 'Tested' }, headers)
      assert.equal((await wiring.settled(messageId)).traceId, null)
      assert.deepEqual(headersOf(receiver.byMessageId.get(messageId)?.[0]), [undefined, undefined])
    }
  })

  test('a batch carries the trace that all its messages have, and none when they differ', async () => {
    const own = await startReceiver()
    const wiring = await wire(service, { urls: [own.url], batch: { size: 2, lingerMs: 60_000 } })
    const send = (headers: Record<string, string>): Promise<void> =>
      wiring.post('/v1/track', { messageId: randomUUID(), userId: 'u', event: 'Tested' }, headers)
    const other = traceparent.replace('0af7', '1af7')
    for (const pair of [
      [traceparent, traceparent],
      [traceparent, other],
    ]) {
      for (const each of pair) await send({ traceparent: each })
    }
    await own.until(() => own.arrivals.length === 2)
    assert.deepEqual(
      own.arrivals.map(({ messages, headers }) => [messages.length, headers['traceparent']]),
      [
        [2, traceparent],
        [2, undefined],
      ],
    )
    await own.close()
  })
})

describe('The whole story of a message', () => {
  test('from its arrival over its duplicates and attempts to its end and its replay', async () => {
    await using own = await startInProcess()
    await using receiver = await startReceiver(({ number }) => (number === 1 ? { status: 503, body: 'busy' } : undefined))
    const wiring = await wire(
      own,
      { name: 'Taker', urls: [receiver.url] },
      { name: 'Filtered', urls: [receiver.url], filter: { events: { deny: ['Tested'] } } },
    )
    const id = await wiring.track()
    await wiring.attempted(id, 1)
    const waiting = (await wiring.message(id)).story.at(-1)
    assert.deepEqual([waiting?.what, waiting?.destinationId], ['waiting', wiring.destinationId])
    assert.match(waiting?.sentence ?? '', /^Waits for attempt 2 at "Taker", due at /)
    for (let times = 0; times < 2; times++) await wiring.post('/v1/track', { messageId: id, userId: 'u-1', event: 'Tested' })
    await own.later(60_000)
    const first = await wiring.settled(id)
    const replay = await own.api<{ id: string }>(`/deliveries/${first.id}/replay`, { method: 'POST' })
    await eventually(
      () => own.api<Delivery>(`/deliveries/${replay.id}`),
      ({ state }) => state === 'delivered',
    )
    const { story, duplicates, deliveries } = await wiring.message(id)
    assert.equal(duplicates?.count, 2)
    assert.deepEqual(
      deliveries.map(({ destinationName, attempts }) => [destinationName, attempts.length]),
      [
        ['Taker', 2],
        ['Taker', 1],
      ],
    )
    const what = story.map(({ what }) => what)
    assert.deepEqual(what.slice(0, 4).sort(), ['attempted', 'owed', 'received', 'skipped'])
    assert.deepEqual(what.slice(4), ['duplicate', 'attempted', 'delivered', 'owed', 'attempted', 'delivered'])
    const said = story.map(({ sentence }) => sentence).join('\n')
    assert.match(said, /^Received from 127\.0\.0\.1, for the source "of a test"/)
    assert.match(
      said,
      /Attempt 1 at "Taker": POST http:\/\/127\.0\.0\.1:\d+\/ \(127\.0\.0\.1\) failed after \d+ ms \(http_503\)\..* Its answer began with "busy"\./,
    )
    assert.match(said, /Delivered to "Taker" after 2 attempts\./)
    assert.match(said, new RegExp(`Owed to "Taker" once more: a replay of the delivery ${first.id}\\.`))
    assert.match(said, /Not sent to "Filtered"\. The destination's filter denies the event "Tested"\./)
  })

  test('an id that nobody knows is answered with what may have become of it', async () => {
    await assert.rejects(service.api('/messages/never-sent'), /: 404 .*No message with the id or messageId \\"never-sent\\" is stored/)
  })
})

describe('The request of a batch gathered from several calls', () => {
  test('is shown as it was sent, from each of its deliveries: body, signatures and id', async () => {
    const own = await startReceiver()
    const wiring = await wire(service, { urls: [own.url], batch: { size: 5, lingerMs: 60_000 }, sharedSecret: 'a secret' })
    const ids = Array.from({ length: 5 }, (_, at) => `${wiring.sourceId}-g-${at}`)
    const call = (messageId: string | undefined): object => ({ type: 'track', userId: `u-${messageId}`, event: 'Tested', messageId })
    await wiring.send([call(ids[0]), call(ids[1])])
    await wiring.send([call(ids[2])])
    await wiring.send([call(ids[3]), call(ids[4])])
    await own.until(() => own.arrivals.length === 1)
    const [arrival] = own.arrivals
    assert.equal(arrival?.messages.length, 5)
    for (const id of ids) {
      const { request } = await wiring.settled(id)
      assert.equal(request?.body, arrival?.bytes.toString(), id)
      assert.deepEqual([request?.headers['X-Signature'], request?.note], [arrival?.headers['x-signature'], null])
    }
    await service.api('/deletions', { method: 'POST', body: { userIds: [`u-${ids[4]}`], sourceIds: [wiring.sourceId] } })
    const { request } = await wiring.delivery(ids[0] as string, ({ request }) => request?.note !== null)
    assert.match(request?.note ?? '', /^Of the messages that it carried, 1 are left out: no longer stored/)
    assert.equal((JSON.parse(request?.body ?? '') as unknown[]).length, 4)
    await own.close()
  })
})

describe('Replay of one delivery', () => {
  test('sends it again with X-Replay: true, as a delivery with a record of its own', async () => {
    const wiring = await wire(service, { urls: [receiver.url] })
    const id = await wiring.track()
    const first = await wiring.settled(id)
    const replay = await service.api<{ id: string; replayOf: string }>(`/deliveries/${first.id}/replay`, { method: 'POST' })
    assert.equal(replay.replayOf, first.id)
    await receiver.until(() => receiver.byMessageId.get(id)?.length === 2)
    const [before, again] = receiver.byMessageId.get(id) as [Arrival, Arrival]
    assert.equal(again.bytes.toString(), before.bytes.toString())
    assert.deepEqual([before.headers['x-replay'], again.headers['x-replay'], again.headers['x-attempt']], [undefined, 'true', '1'])
    const { deliveries } = await wiring.message(id)
    assert.deepEqual(
      deliveries.map(({ id, replay }) => ({ id, replay })),
      [
        { id: first.id, replay: false },
        { id: replay.id, replay: true },
      ],
    )
    const own = await service.api<Delivery>(`/deliveries/${replay.id}`)
    assert.deepEqual([own.replay, own.attempts.length, own.request?.headers['X-Replay']], [true, 1, 'true'])
    assert.equal((await service.api<Delivery>(`/deliveries/${first.id}`)).attempts.length, 1)
  })

  test('what is pending is not replayed; it is attempted by itself', async () => {
    const own = await startReceiver(() => ({ status: 500 }))
    const wiring = await wire(service, { urls: [own.url] })
    const { id } = await wiring.attempted(await wiring.track(), 1)
    await assert.rejects(service.api(`/deliveries/${id}/replay`, { method: 'POST' }), /: 409 .*delivery_pending/)
    await own.close()
  })
})

describe('The test of a destination', () => {
  test('sends one sample message of each type now, and answers with its attempts', async () => {
    const wiring = await wire(service, { urls: [`${receiver.url}test`], sharedSecret: 'a secret' })
    for (const type of ['track', 'identify', 'page', 'screen', 'group', 'alias', 'delete']) {
      const before = receiver.arrivals.length
      const answer = await service.api<{ success: boolean; message: object; attempts: AttemptView[] }>(
        `/destinations/${wiring.destinationId}/test`,
        { method: 'POST', body: { type } },
      )
      const arrival = receiver.arrivals[before] as Arrival
      assert.deepEqual([answer.success, answer.attempts.length, answer.attempts[0]?.status], [true, 1, 200])
      assert.deepEqual([arrival.messages, arrival.path], [[answer.message], '/test'])
      assert.equal((answer.message as { type: string }).type, type)
      assert.ok(arrival.headers['x-signature'])
    }
    const { data } = await service.api<{ data: unknown[] }>(`/deliveries?destinationId=${wiring.destinationId}`)
    assert.deepEqual(data, [], 'nothing is owed or recorded')
  })

  test('of one that fails says how', async () => {
    const own = await startReceiver(() => ({ status: 500, body: 'oops' }))
    const wiring = await wire(service, { urls: [own.url, receiver.url] })
    type Answer = { success: boolean; attempts: AttemptView[] }
    const path = `/destinations/${wiring.destinationId}/test`
    const one = await service.api<Answer>(path, { method: 'POST' })
    assert.equal(one.success, true, 'one URL is enough')
    assert.deepEqual(
      one.attempts.map(({ url, status }) => [url, status]),
      [
        [own.url, 500],
        [receiver.url, 200],
      ],
    )
    await wiring.change({ urls: [own.url] })
    const none = await service.api<Answer>(path, { method: 'POST' })
    assert.deepEqual([none.success, none.attempts[0]?.reason, none.attempts[0]?.responseStart], [false, 'http_500', 'oops'])
    await own.close()
  })
})

describe('Health and ledger', () => {
  test('health: breaker, what is in flight and owed, recent success and latency, per URL as well', async () => {
    const own = await startReceiver(({ path }) => (path === '/bad' ? { status: 500 } : undefined))
    const wiring = await wire(service, { urls: [`${own.url}good`, `${own.url}bad`] })
    const path = `/destinations/${wiring.destinationId}/health`
    const none = { inFlight: 0, success: null, latencyMs: null }
    const ledger = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
    assert.deepEqual(await service.api(path), {
      breaker: 'closed',
      ...none,
      pending: 0,
      oldestPendingAt: null,
      nextAttemptAt: null,
      ledger,
      urls: [
        { url: `${own.url}good`, ...none },
        { url: `${own.url}bad`, ...none },
      ],
    })
    for (let number = 0; number < 4; number++) await wiring.settled(await wiring.track())
    type Health = { success: number; latencyMs: { p50: number; p95: number; p99: number }; ledger: object; urls: { success: number }[] }
    const health = await service.api<Health>(path)
    assert.equal(health.success, 0.5)
    assert.deepEqual(
      health.urls.map(({ success }) => success),
      [1, 0],
    )
    const { p50, p95, p99 } = health.latencyMs
    assert.ok(p50 > 0 && p50 <= p95 && p95 <= p99)
    assert.deepEqual(health.ledger, { ...ledger, owed: 4, delivered: 4 })
    await own.close()
  })

  test('owed = delivered + pending + failed + expired + cancelled for each destination, also when the rows are counted', async () => {
    await using own = await startInProcess()
    const answers: Record<string, number> = { Taken: 200, Refused: 400, Later: 500 }
    await using receiver = await startReceiver(({ messages }) => ({ status: answers[String(messages[0]?.['event'])] ?? 200 }))
    const wiring = await wire(own, { urls: [receiver.url] }, { urls: [receiver.url], retryWindowMs: 1_000 })
    const [patient, hasty] = wiring.destinationIds as [string, string]
    const ids: string[] = []
    for (const event of ['Taken', 'Taken', 'Taken', 'Refused', 'Refused', 'Later']) ids.push(await wiring.track({ event, userId: event }))
    for (const id of ids) {
      await wiring.attempted(id, 1)
      await wiring.settled(id, { to: hasty })
    }
    const replayed = await wiring.settled(ids[3] as string)
    await own.api(`/deliveries/${replayed.id}/replay`, { method: 'POST' })
    await wiring.send([{ type: 'track', messageId: 'later-2', userId: 'u-2', event: 'Later' }])
    await wiring.attempted('later-2', 1)
    await wiring.settled('later-2', { to: hasty })
    await own.api('/deletions', { method: 'POST', body: { userIds: ['Later'] } })
    type Ledger = { data: LedgerRow[]; consistent: boolean }
    const expected: Record<string, Omit<LedgerRow, 'destinationId'>> = {
      [patient]: { owed: 9, delivered: 4, pending: 1, failed: 3, expired: 0, cancelled: 1 },
      [hasty]: { owed: 8, delivered: 4, pending: 0, failed: 2, expired: 2, cancelled: 0 },
    }
    // What is deleted while it waits for a retry is cancelled when that comes due.
    await own.later(5_000)
    for (const query of ['', '?recount=true']) {
      const { data, consistent } = await eventually(
        () => own.api<Ledger>(`/ledger${query}`),
        ({ data }) => data.every(({ destinationId, pending }) => pending === expected[destinationId]?.pending),
        { what: 'nothing but one is pending' },
      )
      assert.deepEqual(Object.fromEntries(data.map(({ destinationId, ...row }) => [destinationId, row])), expected)
      assert.equal(consistent, true)
    }
  })

  test('deliveries are listed by destination and state, page by page', async () => {
    const wiring = await wire(service, { urls: [receiver.url] })
    const ids = Array.from({ length: 25 }, (_, at) => `${wiring.sourceId}-${at}`)
    await wiring.send(ids.map((messageId) => ({ type: 'track', messageId, userId: 'u-1', event: 'Tested' })))
    for (const id of ids) await wiring.settled(id)
    const found: (string | null)[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: { data: DeliveryRow[]; next: string | null } = await service.api(
        `/deliveries?destinationId=${wiring.destinationId}&state=delivered&limit=10${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      assert.ok(page.data.length <= 10)
      found.push(...page.data.map(({ messageId }) => messageId))
      cursor = page.next
    }
    assert.deepEqual([found.length, new Set(found)], [ids.length, new Set(ids)])
  })
})
