// The control API answers why an event did not arrive: which destinations a message was sent to and why not to others, how each delivery
// ended, and which request was sent. A replay sends it again.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import { eventually, gate } from '../system/signals.ts'
import { type Delivery, type Wiring, wire } from '../system/wiring.ts'

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

describe('Selecting destinations', () => {
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
      // Any other message would have been sent by now, because this one was sent later, to both.
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

  test('each message of a batch can select other destinations', async () => {
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

  test('historical import: a destination with historical: false gets no message that happened more than 24 h before it was received', async () => {
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
      [[], [{ destinationId: null, reason: 'no_destination', rule: null, message: 'The source has no destination.' }]],
    )
  })

  test('its destination was disabled when it arrived; deliveries that were pending before are kept, and sent when it is enabled again', async () => {
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

  test('its destination was deleted while the delivery was pending: cancelled, with the reason', async () => {
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

  test('its destination was deleted while some deliveries were in flight: these keep their result, and the others are cancelled', async () => {
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

  test('the destination refused it: the delivery shows the response', async () => {
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
  test('a destination gets the messages that pass its filter, and others show which rule excluded them', async () => {
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
    assert.match((await why('view', 'Sales')) ?? '', /allows only some events, and "Viewed" is not one of them/)
    assert.match((await why('identify', 'Sales')) ?? '', /allows only some types, and identify is not one of them/)
  })

  test('a changed filter applies to later messages; a request to delete a user always passes', async () => {
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

describe('Subscribe expressions', () => {
  test('a destination gets the messages that match its expression, and the timeline shows the expression at that time', async () => {
    await using service = await startInProcess()
    await using own = await startReceiver()
    const subscribe = 'type = "track" and (event = "Order Completed" and properties.total > 100 or context.test = true)'
    const wiring = await wire(service, { urls: [own.url], subscribe })
    const id = (name: string): string => `${wiring.sourceId}-${name}`
    const order = { type: 'track', userId: 'u-1', event: 'Order Completed' }
    await wiring.send([
      { ...order, properties: { total: 120 }, messageId: id('large') },
      { ...order, properties: { total: 20 }, messageId: id('small') },
      { ...order, context: { test: true }, messageId: id('trial') },
      { type: 'identify', userId: 'u-1', messageId: id('identify') },
    ])
    await wiring.settled(id('large'))
    await wiring.settled(id('trial'))
    const skip = (await wiring.message(id('small'))).skips[0]
    assert.deepEqual([skip?.reason, skip?.rule], ['filtered', 'subscribe'])
    assert.deepEqual(await whereabouts(wiring, ['it'], id('identify')), { it: 'filtered' })
    await wiring.change({ subscribe: 'type = "identify"' })
    const { story } = await wiring.message(id('small'))
    const skipped = story.find(({ what }) => what === 'skipped')
    assert.ok(skipped?.sentence.endsWith(`does not match the destination's subscribe expression: ${subscribe}`), skipped?.sentence)
    assert.deepEqual(new Set(own.messages().map(({ messageId }) => messageId)), new Set([id('large'), id('trial')]))
  })
})

describe('The timeline of a message', () => {
  test('has its arrival, its duplicates, its attempts, its outcome and its replay', async () => {
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
    assert.match(waiting?.sentence ?? '', /^Waiting for attempt 2 to "Taker", due at /)
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
      /Attempt 1 to "Taker": http:\/\/127\.0\.0\.1:\d+\/ \(127\.0\.0\.1\) failed after \d+ ms \(http_503\)\..* The response began with "busy"\./,
    )
    assert.match(said, /Delivered to "Taker" after 2 attempts\./)
    assert.match(said, new RegExp(`Queued for "Taker" again, as a replay of the delivery ${first.id}\\.`))
    assert.match(said, /Not sent to "Filtered"\. The destination's filter denies the event "Tested"\./)
  })

  test('the answer for an unknown id lists possible reasons', async () => {
    await assert.rejects(service.api('/messages/never-sent'), /: 404 .*No message with the id or messageId \\"never-sent\\" is stored/)
  })
})

describe('The request of a batch with messages of several calls', () => {
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
    assert.match(request?.note ?? '', /^1 of the messages in the request is not shown, because the stored messages were deleted/)
    assert.equal((JSON.parse(request?.body ?? '') as unknown[]).length, 4)
    await own.close()
  })
})

describe('Replay of one delivery', () => {
  test('sends it again with X-Replay: true, as a new delivery', async () => {
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

  test('a pending delivery is not replayed, because it will be attempted anyway', async () => {
    const own = await startReceiver(() => ({ status: 500 }))
    const wiring = await wire(service, { urls: [own.url] })
    const { id } = await wiring.attempted(await wiring.track(), 1)
    await assert.rejects(service.api(`/deliveries/${id}/replay`, { method: 'POST' }), /: 409 .*delivery_pending/)
    await own.close()
  })
})
