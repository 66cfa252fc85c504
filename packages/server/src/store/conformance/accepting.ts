// Conformance: the guarantees of accept().

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { StoreUnavailable } from '../store.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  counts,
  ledgerOf,
  messageIdsOf,
  newDestination,
  newSource,
  newSourceAndDestination,
  RecordingConsumer,
  type StoreFixture,
  settle,
  track,
  tracks,
} from './fixtures.ts'

export function accepting({ store, reopen, open }: StoreFixture): void {
  const stored = async (sourceId: string): Promise<unknown[]> => {
    const messages = await allPages((page) => store().history.messages({ sourceId }, page), 1_000)
    return messages.map(({ content, index }) => content.items[index]?.['messageId'])
  }

  test('accepted messages and their shipments are still stored after the store is reopened', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const items = [track('a', { context: { page: 'x' } }), track('b')]
    const about = { receivedAtMs: 1_700_000_000_123, ip: '198.51.100.1', browser: true, sentAt: '2026-01-01T00:00:00.000Z' }
    const batch = { ...about, context: { locale: 'de' }, integrations: { All: true } }
    const { segment, duplicates } = await accept(store(), sourceId, items, [destinationId], batch)
    assert.deepEqual(duplicates, [])
    await reopen()
    const { shipment, bodies } = await claimOne(store(), destinationId)
    assert.deepEqual(bodies.get(segment as number)?.content, { sourceId, ...batch, trace: null, items })
    assert.deepEqual(
      shipment.parts.map(({ segment: of, indexes }) => [of, indexes]),
      [[segment, [0, 1]]],
    )
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 2, pending: 2 }))
  })

  test('a message without destinations is stored', async () => {
    const { id } = await newSource(store())
    await accept(store(), id, [track('alone')])
    assert.deepEqual(await stored(id), ['alone'])
  })

  test('a message that is twice in a batch is stored and sent once', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { duplicates } = await accept(store(), sourceId, [track('a'), track('b'), track('a'), track('a')], [destinationId])
    assert.deepEqual(duplicates, [2, 3])
    assert.deepEqual(await stored(sourceId), ['b', 'a'])
    assert.deepEqual(messageIdsOf(await claimOne(store(), destinationId)), ['a', 'b'])
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 2, pending: 2 }))
  })

  test('a message of an earlier batch is a duplicate, also after the store is reopened', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('a'), track('b')], [destinationId])
    const partly = await accept(store(), sourceId, [track('c'), track('b'), track('d')], [destinationId])
    assert.deepEqual(partly.duplicates, [1])
    await reopen()
    const again = await accept(store(), sourceId, [track('d'), track('e'), track('a')], [destinationId])
    assert.deepEqual(again.duplicates, [0, 2])
    const { shipments } = await claim(store(), destinationId)
    assert.deepEqual(shipments.map(messageIdsOf), [['a', 'b'], ['c', 'd'], ['e']])
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, pending: 5 }))
  })

  test('duplicates are left out of shipments, and a shipment with only duplicates is not created', async () => {
    const { id: sourceId } = await newSource(store())
    const [{ id: some }, { id: none }] = [await newDestination(store(), sourceId), await newDestination(store(), sourceId)]
    await accept(store(), sourceId, [track('a'), track('b')])
    const shipments = [
      { destinationId: some, indexes: [0, 2] },
      { destinationId: none, indexes: [0, 1] },
    ]
    await accept(store(), sourceId, [track('a'), track('b'), track('c')], { shipments })
    assert.deepEqual(messageIdsOf(await claimOne(store(), some)), ['c'])
    assert.deepEqual((await claim(store(), none)).shipments, [])
    assert.deepEqual(await ledgerOf(store(), none), counts())
  })

  test('a batch with only duplicates stores nothing', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(3, 'same'), [destinationId])
    const again = await accept(store(), sourceId, tracks(3, 'same'), [destinationId])
    assert.deepEqual(again, { segment: null, duplicates: [0, 1, 2] })
    assert.equal((await stored(sourceId)).length, 3)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, pending: 3 }))
  })

  test('the same messageId from another source is another message', async () => {
    const [one, other] = [await newSource(store()), await newSource(store())]
    for (const { id } of [one, other]) assert.deepEqual((await accept(store(), id, [track('same')])).duplicates, [])
    for (const { id } of [one, other]) assert.deepEqual((await accept(store(), id, [track('same')])).duplicates, [0])
  })

  test('if the same message is accepted many times concurrently, it is stored once', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, at) => accept(store(), sourceId, [track('raced'), track(`own-${at}`)], [destinationId])),
    )
    assert.equal(results.filter(({ duplicates }) => duplicates.length === 0).length, 1)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 41, pending: 41 }))
  })

  test('a message shows its deliveries, and the destinations that it is not sent to, with the reason', async () => {
    const { id: sourceId } = await newSource(store())
    const [{ id: one }, { id: two }] = [await newDestination(store(), sourceId), await newDestination(store(), sourceId)]
    await accept(store(), sourceId, tracks(3, 'planned'), {
      shipments: [
        { destinationId: one, indexes: null },
        { destinationId: two, indexes: [1] },
      ],
      skips: [
        { destinationId: two, reason: 'integrations_disabled', indexes: [0] },
        { destinationId: two, reason: 'historical', indexes: [2] },
      ],
    })
    await accept(store(), sourceId, [track('nowhere')], { skips: [{ destinationId: null, reason: 'no_destination', indexes: null }] })
    const about = async (id: string): Promise<unknown> => {
      const message = await store().history.message(id)
      return [message?.deliveries.map(({ destinationId }) => destinationId), message?.skips]
    }
    assert.deepEqual(await about('planned-0'), [[one], [{ destinationId: two, reason: 'integrations_disabled' }]])
    assert.deepEqual(await about('planned-1'), [[one, two], []])
    assert.deepEqual(await about('planned-2'), [[one], [{ destinationId: two, reason: 'historical' }]])
    assert.deepEqual(await about('nowhere'), [[], [{ destinationId: null, reason: 'no_destination' }]])
    const { deliveries } = (await store().history.message('planned-1')) ?? { deliveries: [] }
    for (const { id, destinationId } of deliveries) assert.equal((await store().history.delivery(id))?.destinationId, destinationId)
  })

  test('a shipment planned for a destination that was deleted meanwhile is skipped with that reason', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await store().resources.deleteDestination(destinationId)
    await accept(store(), sourceId, [track('late')], [destinationId])
    const message = await store().history.message('late')
    assert.deepEqual(message?.deliveries, [])
    assert.deepEqual(message?.skips, [{ destinationId, reason: 'destination_deleted' }])
  })

  test('a new shipment for which memory is reserved is handed over at once, and cannot be claimed again', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    const { segment } = await accept(store(), sourceId, [track('a'), track('b'), track('a')], [destinationId])
    const [taken] = consumer.received
    assert.ok(taken !== undefined && consumer.received.length === 1)
    assert.deepEqual(messageIdsOf(taken), ['a', 'b'])
    assert.equal(taken.bodies.get(segment as number)?.content.items[2], null, 'the duplicate is left out')
    assert.deepEqual(consumer.reservations, [[destinationId, taken.bytes]])
    assert.deepEqual([taken.shipment.attempt, taken.shipment.firstAttemptAtMs, taken.shipment.replay], [0, null, false])
    assert.deepEqual((await claim(store(), destinationId)).shipments, [])
    await settle(store(), taken, 'delivered')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 2, delivered: 2 }))
  })

  test('the consumer is woken for a new shipment that it has not reserved memory for', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const consumer = new RecordingConsumer()
    consumer.reserves = false
    store().delivery.attach(consumer)
    await accept(store(), sourceId, [track('a')], [destinationId])
    assert.deepEqual(consumer.received, [])
    assert.ok(consumer.woken.includes(destinationId))
    assert.deepEqual(messageIdsOf(await claimOne(store(), destinationId)), ['a'])
  })

  test('a reservation is cancelled if the shipment was not stored', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('a')])
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    await accept(store(), sourceId, [track('a')], [destinationId])
    assert.deepEqual(consumer.cancelled, consumer.reservations, 'all duplicates')
    await accept(store(), sourceId, [track('a'), track('b')], { shipments: [{ destinationId, indexes: [0] }] })
    assert.deepEqual(consumer.cancelled, consumer.reservations, 'only duplicates in its shipment')
    await assert.rejects(accept(store(), 'src_unknown', [track('c')], [destinationId]))
    assert.equal(consumer.cancelled.length, 3, 'the commit failed')
    assert.deepEqual(consumer.cancelled, consumer.reservations)
    assert.deepEqual(consumer.received, [])
  })

  test('a batch that cannot be stored does not make the other batches of its commit fail', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, at) => accept(store(), at % 5 === 3 ? 'src_unknown' : sourceId, [track(`g-${at}`)], [destinationId])),
    )
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 16)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 16, pending: 16 }))
    assert.deepEqual((await accept(store(), sourceId, [track('g-3'), track('g-4')])).duplicates, [1])
  })

  test('a duplicate is also found in a batch that is committed again because another batch failed', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('known')], [destinationId])
    const batches = Array.from({ length: 12 }, (_, at) => {
      const items = [track('known'), track(`own-${at}`), track(`own-${at}`), track('known')]
      return accept(store(), at % 3 === 1 ? 'src_unknown' : sourceId, items, [destinationId])
    })
    const results = await Promise.allSettled(batches)
    const kept = results.filter((result) => result.status === 'fulfilled')
    assert.deepEqual(
      kept.map(({ value }) => value.duplicates),
      Array.from({ length: 8 }, () => [0, 2, 3]),
    )
    await reopen()
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 9, pending: 9 }))
    assert.deepEqual((await accept(store(), sourceId, [track('known'), track('own-0')])).duplicates, [0, 1])
  })

  const odd: [what: string, item: JsonObject][] = [
    ['lone surrogates', { event: '\ud800 and \udfff', userId: 'u' }],
    ['NUL', { event: 'a\0b', userId: 'u\0' }],
    [
      'a __proto__ of its own',
      JSON.parse('{"event":"e","userId":"u","properties":{"__proto__":{"polluted":true},"constructor":1}}') as JsonObject,
    ],
    ['numbers at the edge', { event: 'e', userId: 'u', properties: { a: 1e308, b: 5e-324, c: 9007199254740991, d: -0.1 } }],
    ['10,000 keys', { event: 'e', userId: 'u', properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`k${at}`, at])) }],
    ['deep nesting', { event: 'e', userId: 'u', properties: JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`) as JsonObject }],
    ['empty strings', { event: '', userId: '' }],
  ]
  for (const [what, item] of odd) {
    test(`a message with ${what} passes unchanged`, async () => {
      const { sourceId, destinationId } = await newSourceAndDestination(store())
      const messageId = `odd-${what}-${randomUUID()}`
      await accept(store(), sourceId, [{ type: 'track', messageId, ...item }], [destinationId])
      const expected = JSON.stringify({ type: 'track', messageId, ...item })
      const claimed = await claimOne(store(), destinationId)
      const [body] = [...claimed.bodies.values()]
      assert.equal(JSON.stringify(body?.content.items[0]), expected)
      const message = await store().history.message(messageId)
      assert.equal(JSON.stringify(message?.content.items[0]), expected)
    })
  }

  test('messageIds of any text are distinguished and found again', async () => {
    const { id } = await newSource(store())
    const ids = [
      '',
      ' ',
      '\0',
      '\0\0',
      '\ud800',
      '\udbff',
      '\ufffd',
      '__proto__',
      "'; DROP TABLE segments; --",
      'ä',
      'a\u0308',
      'x'.repeat(100),
      '1-0',
      '%',
    ]
    const { duplicates } = await accept(
      store(),
      id,
      ids.map((messageId) => track(messageId)),
    )
    assert.deepEqual(duplicates, [])
    for (const [index, messageId] of ids.entries()) {
      assert.deepEqual((await accept(store(), id, [track(messageId)])).duplicates, [0], JSON.stringify(messageId))
      const { data } = await store().history.messages({ messageId, sourceId: id }, { limit: 10, cursor: null })
      assert.deepEqual(
        data.map((message) => message.index),
        [index],
        JSON.stringify(messageId),
      )
    }
  })

  test('2,500 messages of 500 KB are one batch, also if half of them are duplicates', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const items = Array.from({ length: 2_500 }, (_, index) => track(`many-${index}`, { properties: { filler: 'x'.repeat(110) } }))
    assert.ok(JSON.stringify(items).length > 490_000)
    const half = items.filter((_, index) => index % 2 === 0)
    await accept(store(), sourceId, half, [destinationId])
    const { duplicates } = await accept(store(), sourceId, items, [destinationId])
    assert.equal(duplicates.length, 1_250)
    const { shipments } = await claim(store(), destinationId)
    assert.deepEqual(
      shipments.map(({ shipment }) => shipment.parts[0]?.indexes.length),
      [1_250, 1_250],
    )
    for (const claimed of shipments) await settle(store(), claimed, 'failed')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 2_500, failed: 2_500 }))
  })

  test('accepting after the store was closed is rejected with StoreUnavailable', async () => {
    const other = await open({ retentionDays: 7 })
    const { id } = await newSource(other.store)
    await other.store.close()
    await other.store.close()
    await assert.rejects(accept(other.store, id, [track('a')]), StoreUnavailable)
    await other.dispose()
  })

  test('messages that were passed to the store before it is closed are committed', async () => {
    const other = await open({ retentionDays: 7 })
    const { sourceId, destinationId } = await newSourceAndDestination(other.store)
    const accepted = Array.from({ length: 50 }, (_, at) => accept(other.store, sourceId, [track(`m-${at}`)], [destinationId]))
    other.store.ingest.reject({ sourceId, code: 'invalid_json', count: 3, sample: '{', atMs: 5 })
    const reopened = await other.reopen()
    await Promise.all(accepted)
    assert.deepEqual(await ledgerOf(reopened, destinationId), counts({ owed: 50, pending: 50 }))
    assert.equal((await reopened.books.rejections())[0]?.count, 3)
    await other.dispose()
  })
}
