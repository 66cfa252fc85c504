// Conformance: messages in quarantine are sent nowhere, and leave it once. conservation.ts has the random sequences.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QuarantineChange, Routing, RowId, Store } from '../store.ts'
import { untilPurged } from './deletion-fixtures.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  counts,
  DAY_MS,
  ledgerOf,
  messageIdsOf,
  newDestination,
  newSource,
  newSourceAndDestination,
  PLAN_ID,
  quarantining,
  RecordingConsumer,
  routingTo,
  type StoreFixture,
  settle,
  settleAll,
  track,
  tracks,
  until,
} from './fixtures.ts'

const ALL = { limit: 100, cursor: null }

interface Books {
  accepted: number
  quarantined: number
  released: number
  deleted: number
}

async function booksOf(store: Store, sourceId: string): Promise<Books> {
  const row = (await store.books.sourceCounts()).find((each) => each.sourceId === sourceId)
  const recount = (await store.books.recountQuarantined()).find((each) => each.sourceId === sourceId)
  const { accepted = 0, quarantined = 0, released = 0, deleted = 0 } = row ?? {}
  assert.equal(recount?.quarantined ?? 0, quarantined, 'the recount')
  return { accepted, quarantined, released, deleted }
}

export function quarantine({ store, open }: StoreFixture): void {
  test('a quarantined message is stored and counted, but owed to nobody, and a duplicate of it is dropped as usual', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    const items = tracks(4)
    const { segment } = await accept(store(), sourceId, items, [destinationId], quarantining([1, 3]))
    const [handed] = consumer.received
    assert.deepEqual(
      handed?.shipment.parts.map(({ indexes }) => indexes),
      [[0, 2]],
    )
    assert.deepEqual(Object.keys(handed.bodies.get(segment as RowId)?.content.violations ?? {}), ['1', '3'])
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 2, pending: 2 }))
    assert.deepEqual(await booksOf(store(), sourceId), { accepted: 4, quarantined: 2, released: 0, deleted: 0 })
    const [held, sent] = [await store().history.message(`${segment}-1`), await store().history.message(`${segment}-0`)]
    assert.deepEqual([held?.deliveries, held?.skips], [[], [{ destinationId: null, reason: 'quarantined' }]])
    assert.deepEqual([held?.quarantine, sent?.quarantine], [{ state: 'held', atMs: null }, undefined])
    assert.deepEqual([held?.content.violations?.[1]?.[0]?.code, sent?.content.violations], ['missing_property', undefined])
    const again = await accept(store(), sourceId, [...items, track('new')], [destinationId], quarantining([1, 2, 4]))
    assert.deepEqual(again.duplicates, [0, 1, 2, 3])
    assert.deepEqual(await booksOf(store(), sourceId), { accepted: 5, quarantined: 3, released: 0, deleted: 0 })
    const nothing = await accept(store(), sourceId, items, [destinationId], quarantining([1]))
    assert.deepEqual([nothing.segment, (await booksOf(store(), sourceId)).quarantined], [null, 3])
  })

  test('a batch of which all messages are quarantined has no shipment', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    await accept(store(), sourceId, tracks(2), [destinationId], quarantining([0, 1]))
    assert.deepEqual([consumer.received, consumer.reservations], [[], []])
    assert.ok(!consumer.woken.includes(destinationId))
    assert.deepEqual(await ledgerOf(store(), destinationId), counts())
  })

  test('lists are in order, in pages, and filtered by source, plan and rule, whatever characters a rule has', async () => {
    const [{ id: sourceId }, { id: other }] = [await newSource(store()), await newSource(store())]
    const odd = 'track a\0b "\\'
    for (let nth = 0; nth < 3; nth++)
      await accept(store(), sourceId, tracks(3, `l${nth}`), [], quarantining([0, 2], nth === 1 ? odd : 'page'))
    await accept(store(), other, tracks(1), [], quarantining([0]))
    const idsOf = async (filter: object, more: object = {}): Promise<unknown[]> => {
      const found = await allPages((page) => store().quarantine.list({ sourceId, ...filter }, { ...page, ...more }), 2)
      return found.map(({ content, index }) => content.items[index]?.['messageId'])
    }
    const newestFirst = ['l2-2', 'l2-0', 'l1-2', 'l1-0', 'l0-2', 'l0-0']
    assert.deepEqual(await idsOf({}), newestFirst)
    assert.deepEqual(await idsOf({}, { oldestFirst: true }), ['l0-0', 'l0-2', 'l1-0', 'l1-2', 'l2-0', 'l2-2'])
    assert.deepEqual(await idsOf({ rule: odd }), ['l1-2', 'l1-0'])
    assert.deepEqual(await idsOf({ planId: 'pln_other' }), [])
    assert.deepEqual(await idsOf({ sourceId: 'src_none' }), [])
    const [first] = (await store().quarantine.list({ sourceId, rule: odd }, ALL)).data
    assert.deepEqual([first?.planId, first?.rule, first?.content.violations?.[2]?.length], [PLAN_ID, odd, 1])
    const found = await store().quarantine.find([first?.id ?? '', 'nonsense', '1-1', first?.id ?? ''])
    assert.deepEqual(
      found.map(({ id }) => id),
      [first?.id],
    )
    await assert.rejects(store().quarantine.list({}, { limit: 1, cursor: '["q","x",0]' }), { name: 'InvalidCursor' })
  })

  test('releasing creates the deliveries of the routing once, as first deliveries, and says where the message is not sent', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: other } = await newDestination(store(), sourceId)
    const { id: gone } = await newDestination(store(), sourceId)
    await store().resources.deleteDestination(gone)
    const { segment } = await accept(store(), sourceId, tracks(3), [destinationId], quarantining([0, 1]))
    await settleAll(store(), destinationId, 'delivered')
    const consumer = new RecordingConsumer()
    consumer.reserves = false
    store().delivery.attach(consumer)
    const routing: Routing = {
      shipments: [
        { destinationId, indexes: null },
        { destinationId: gone, indexes: [0] },
      ],
      skips: [{ destinationId: other, reason: 'filtered', rule: 'event_denied', indexes: [0] }],
    }
    const audit = (after: QuarantineChange | null) => ({
      actor: { id: 'tok_1', name: 'an operator' },
      action: 'quarantine.release',
      subject: sourceId,
      before: null,
      after: { messages: after?.ids.length ?? 0 },
    })
    const id = `${segment}-0`
    assert.deepEqual(await store().quarantine.release([{ id, routing }], audit), [id])
    assert.ok(consumer.woken.includes(destinationId))
    assert.deepEqual(await store().quarantine.release([{ id, routing }], audit), [], 'a second time')
    assert.deepEqual(await store().quarantine.delete([id]), [], 'nor can it be deleted now')
    assert.equal((await store().history.audit({ subject: sourceId, action: 'quarantine.release' }, ALL)).data.length, 1)
    assert.deepEqual(await booksOf(store(), sourceId), { accepted: 3, quarantined: 1, released: 1, deleted: 0 })
    const message = await store().history.message(id)
    assert.equal(message?.quarantine?.state, 'released')
    assert.ok(Math.abs((message?.quarantine?.atMs ?? 0) - Date.now()) < 60_000)
    assert.deepEqual(message?.skips, [
      { destinationId: gone, reason: 'destination_deleted' },
      { destinationId: other, reason: 'filtered', rule: 'event_denied' },
    ])
    assert.deepEqual(
      message?.deliveries.map((each) => each.destinationId),
      [destinationId],
    )
    const claimed = await claimOne(store(), destinationId)
    const { shipment, bodies } = claimed
    assert.deepEqual([shipment.attempt, shipment.replay, messageIdsOf(claimed)], [0, false, [message?.content.items[0]?.['messageId']]])
    assert.equal(bodies.get(segment as RowId)?.content.violations?.[0]?.length, 1)
    const deliveryId = message?.deliveries[0]?.id ?? ''
    const pending = await store().history.deliveries({ destinationId, state: 'pending', fromMs: Date.now() - 60_000 }, ALL)
    assert.deepEqual(
      pending.data.map(({ id: each, replay, replayOf }) => [each, replay, replayOf]),
      [[deliveryId, false, null]],
    )
    await settle(store(), claimed, 'failed')
    const detail = await store().history.delivery(deliveryId)
    assert.deepEqual([detail?.state, detail?.replay, detail?.replayOf, detail?.replayedBy], ['failed', false, null, null])
    assert.ok((detail?.owedAtMs ?? 0) >= (message?.content.receivedAtMs ?? 0))
    // It can be replayed like any other delivery, and a replay of it too.
    const replay = await store().replays.replay(deliveryId)
    assert.ok(replay.ok)
    await settleAll(store(), destinationId, 'failed')
    const selection = { destinationId, states: ['failed' as const], reason: null, fromMs: null, toMs: null }
    const job = await store().replays.create({ selection, ratePerSecond: null, createdBy: null })
    const step = await store().replays.step({ id: job.id, position: job.position, limit: 10, maxWaiting: 10 })
    assert.ok(step.ok && step.replayed === 1, 'the newest of the two is repeated')
    await settleAll(store(), destinationId, 'delivered')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 4, delivered: 2, failed: 2 }))
  })

  test('a deleted message is never sent, and stays in the history', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { segment } = await accept(store(), sourceId, tracks(3), [destinationId], quarantining([0, 1]))
    const id = `${segment}-1`
    assert.deepEqual(await store().quarantine.delete([id, id, 'x', `${segment}-2`]), [id])
    assert.deepEqual(await store().quarantine.release([{ id, routing: routingTo([destinationId]) }]), [])
    const message = await store().history.message(id)
    assert.deepEqual([message?.quarantine?.state, message?.deliveries], ['deleted', []])
    assert.deepEqual(await booksOf(store(), sourceId), { accepted: 3, quarantined: 1, released: 0, deleted: 1 })
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 1, pending: 1 }))
  })

  test('messages of a deleted source are not released, because nobody would get them, and can be deleted', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { segment } = await accept(store(), sourceId, tracks(2), [destinationId], quarantining([0, 1]))
    const ids = [0, 1].map((index) => `${segment}-${index}`)
    await store().resources.deleteSource(sourceId)
    assert.deepEqual(await store().quarantine.release(ids.map((id) => ({ id, routing: routingTo([destinationId]) }))), [])
    assert.equal((await booksOf(store(), sourceId)).quarantined, 2)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({}))
    assert.deepEqual(new Set(await store().quarantine.delete(ids)), new Set(ids))
  })

  test('releases and deletions of the same messages at the same time, while a destination is deleted, end each quarantine once', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: deleted } = await newDestination(store(), sourceId)
    const segments = await Promise.all(
      [250, 3, 20].map((count) => accept(store(), sourceId, tracks(count), [], quarantining(Array.from({ length: count }, (_, at) => at)))),
    )
    const ids = segments.flatMap(({ segment }, at) =>
      Array.from({ length: [250, 3, 20][at] as number }, (_, index) => `${segment}-${index}`),
    )
    const routing = routingTo([destinationId, deleted])
    const released: (readonly string[])[] = []
    const removed: (readonly string[])[] = []
    const work = Array.from({ length: 8 }, async (_, nth) => {
      const own = ids.filter((_id, at) => (at + nth) % 3 > 0)
      if (nth === 3) await store().resources.deleteDestination(deleted)
      else if (nth % 2 === 0) released.push(await store().quarantine.release(own.map((id) => ({ id, routing }))))
      else removed.push(await store().quarantine.delete(own))
    })
    await Promise.all(work)
    const left = (await booksOf(store(), sourceId)).quarantined
    const ended = [...released.flat(), ...removed.flat()]
    assert.deepEqual([new Set(ended).size, ended.length + left], [ended.length, ids.length])
    assert.deepEqual(await booksOf(store(), sourceId), {
      accepted: 273,
      quarantined: left,
      released: released.flat().length,
      deleted: removed.flat().length,
    })
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: released.flat().length, pending: released.flat().length }))
    const { shipments } = await claim(store(), destinationId)
    assert.ok(shipments.every(({ shipment }) => shipment.parts.every(({ indexes }) => indexes.length <= 100)))
    assert.equal(new Set(shipments.flatMap(messageIdsOf)).size, released.flat().length)
    const gone = await until(
      async () => (await store().books.ledger()).find((row) => row.destinationId === deleted),
      (row) => (row?.pending ?? 0) === 0,
      'the deliveries to the deleted destination are cancelled',
    )
    assert.equal(gone?.cancelled ?? 0, gone?.owed ?? 0)
  })

  test('the deletion of a user ends the quarantine of their messages, also while they are released', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const items = Array.from({ length: 12 }, (_, at) => track(`u${at}`, { userId: at % 2 === 0 ? 'gone' : 'stays' }))
    const { segment } = await accept(store(), sourceId, items, [], quarantining([0, 1, 2, 3, 4, 5]))
    const { segment: later } = await accept(store(), sourceId, [track('u-l', { userId: 'gone' })], [], quarantining([0]))
    const routing = routingTo([destinationId])
    const [{ id }, released] = await Promise.all([
      store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false }),
      store().quarantine.release([0, 1].map((index) => ({ id: `${segment}-${index}`, routing }))),
    ])
    await untilPurged(store(), id, 7)
    assert.deepEqual(await store().quarantine.release([{ id: `${later}-0`, routing }]), [])
    const { quarantined, released: counted, deleted } = await booksOf(store(), sourceId)
    assert.deepEqual([quarantined, counted, quarantined + counted + deleted], [2, released.length, 7])
    const left = await store().quarantine.list({ sourceId }, ALL)
    assert.deepEqual(
      left.data.map(({ index, content }) => [index, content.items[index]?.['userId'], Object.keys(content.violations ?? {})]),
      [
        [5, 'stays', ['5']],
        [3, 'stays', ['3']],
      ],
    )
    const { shipments } = await claim(store(), destinationId)
    assert.equal(shipments.flatMap(messageIdsOf).includes('u0'), false, 'the content of a purged message is not sent')
    const [trail] = await store().history.trails(`${later}-0`)
    assert.deepEqual([trail?.quarantine, trail?.content.violations], [{ state: 'deleted', atMs: null }, undefined])
  })

  test('after the retention time, only the messages in quarantine are left of a request', async () => {
    const opened = await open({ retentionDays: 7 })
    try {
      const { store: own } = opened
      const { sourceId, destinationId } = await newSourceAndDestination(own)
      const items = Array.from({ length: 5 }, (_, at) => track(`t${at}`, { userId: `secret-user-${at}` }))
      const { segment } = await accept(own, sourceId, items, [destinationId], quarantining([1, 3]))
      const { segment: pending } = await accept(own, sourceId, tracks(2, 'p'), [destinationId], quarantining([0]))
      const first = (await claim(own, destinationId)).shipments.find(({ shipment }) => shipment.parts[0]?.segment === segment)
      const request = { responseStart: 'stored for secret-user-0' }
      await settle(own, first as NonNullable<typeof first>, 'delivered', { request })
      const far = Date.now() + 20 * DAY_MS
      await own.dropExpired(far)
      // Also if it runs again, and if one message left the quarantine meanwhile.
      await own.quarantine.release([{ id: `${segment}-3`, routing: routingTo([destinationId]) }])
      await own.dropExpired(far)
      const left = (await own.history.messages({}, ALL)).data.map(({ content, index }) => content.items[index]?.['messageId'])
      assert.deepEqual(left, ['p-1', 'p-0', 't3', 't1'], 'a request with pending deliveries is kept as it is')
      assert.deepEqual(
        [
          (await own.history.trails('t0')).length,
          (await own.history.trails(`${segment}-0`)).length,
          (await own.history.trails('t1')).length,
        ],
        [0, 0, 1],
      )
      assert.equal((await own.quarantine.list({}, ALL)).data.find(({ id }) => id === `${segment}-1`)?.content.violations?.[1]?.length, 1)
      const { owed, delivered } = await ledgerOf(own, destinationId)
      assert.deepEqual([owed, delivered], [5, 3])
      assert.deepEqual(await own.books.recount(), await own.books.ledger())
      assert.notEqual(pending, segment)
      const { shipments } = await claim(own, destinationId)
      assert.equal(shipments.flatMap(messageIdsOf).includes('t3'), true, 'the released message is sent')
      const bytes = (await opened.closeAndRead()).toString('latin1')
      assert.deepEqual([bytes.includes('secret-user-1'), bytes.includes('secret-user-3')], [true, true])
      assert.equal(bytes.includes('stored for'), false, 'the answers of receivers may quote the messages')
    } finally {
      await opened.dispose()
    }
  })

  test('messages in quarantine expire after the days that were set, and the statistics and the message say so', async () => {
    const opened = await open({ retentionDays: 60, quarantineDays: 30 })
    try {
      const { store: own } = opened
      const { sourceId } = await newSourceAndDestination(own)
      const { segment } = await accept(own, sourceId, tracks(700), [], quarantining(Array.from({ length: 600 }, (_, at) => at)))
      await own.dropExpired(Date.now() + 29 * DAY_MS)
      assert.equal((await booksOf(own, sourceId)).quarantined, 600)
      await own.dropExpired(Date.now() + 31 * DAY_MS)
      assert.deepEqual(await booksOf(own, sourceId), { accepted: 700, quarantined: 0, released: 0, deleted: 600 })
      const [trail] = await own.history.trails(`${segment}-599`)
      assert.deepEqual([trail?.quarantine?.state, trail?.skips], ['expired', [{ destinationId: null, reason: 'quarantined' }]])
      assert.deepEqual(await own.quarantine.release([{ id: `${segment}-0`, routing: routingTo([]) }]), [])
    } finally {
      await opened.dispose()
    }
  })

  test('retention keeps messages in quarantine however old, and drops them after they have left it', async () => {
    const opened = await open({ retentionDays: 7 })
    try {
      const { sourceId, destinationId } = await newSourceAndDestination(opened.store)
      const { segment } = await accept(opened.store, sourceId, tracks(3), [destinationId], quarantining([0, 1]))
      await settleAll(opened.store, destinationId, 'delivered')
      const far = Date.now() + 100 * DAY_MS
      await opened.store.dropExpired(far)
      assert.equal((await opened.store.quarantine.list({}, ALL)).data.length, 2)
      const reopened = await opened.reopen()
      assert.equal((await reopened.quarantine.release([{ id: `${segment}-0`, routing: routingTo([destinationId]) }])).length, 1)
      assert.equal((await reopened.quarantine.delete([`${segment}-1`])).length, 1)
      await reopened.dropExpired(far)
      await settleAll(reopened, destinationId, 'delivered')
      const before = await ledgerOf(reopened, destinationId)
      assert.deepEqual(before, counts({ owed: 2, delivered: 2 }))
      await reopened.dropExpired(far)
      assert.deepEqual((await reopened.history.messages({}, ALL)).data, [])
      assert.deepEqual(await ledgerOf(reopened, destinationId), before)
      assert.deepEqual(await booksOf(reopened, sourceId), { accepted: 3, quarantined: 0, released: 1, deleted: 1 })
    } finally {
      await opened.dispose()
    }
  })
}
