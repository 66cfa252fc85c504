// Conformance: dead letters are stored and owed by the settlement that ends the original deliveries, or not at all.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedShipment, DeadLetters, Settlement, Store } from '../../store.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  counts,
  DAY_MS,
  deliveriesOf,
  type Fate,
  ledgerOf,
  messageIdsOf,
  newDestination,
  newSourceAndDestination,
  RecordingConsumer,
  type StoreFixture,
  settle,
  settlementOf,
  track,
  tracks,
  until,
} from '../fixtures.ts'

/** The settlement with a dead letter to `to` for each delivery that failed or expired. */
export function withLetters(settlement: Settlement, claimed: readonly ClaimedShipment[], to: string): Settlement {
  const letters: DeadLetters[] = []
  const records = settlement.records.map((record) => {
    const body = claimed.flatMap(({ bodies }) => bodies.get(record.segment) ?? [])[0]
    const ended = record.finals.filter(({ state }) => state === 'failed' || state === 'expired')
    const indexes = ended.flatMap((final) => final.indexes)
    if (indexes.length === 0 || body === undefined) return record
    const { sourceId, trace } = body.about
    const prefix = `dead-letter-${record.origin}-`
    const items = indexes.map((index) => {
      const { userId, ...message } = body.content.items[index] ?? {}
      return { type: 'dead_letter', ...(userId !== undefined && { userId }), messageId: `${prefix}${index}`, message: { ...message } }
    })
    letters.push({ destinationId: to, sourceId, trace, atMs: record.atMs, bytes: 100, items })
    return { ...record, deadLetter: { destinationId: to, prefix, indexes } }
  })
  return { ...settlement, records, letters }
}

async function settleWithLetters(store: Store, claimed: ClaimedShipment, fate: Parameters<typeof settlementOf>[1], to: string) {
  await store.delivery.settle(withLetters(settlementOf([claimed.shipment], fate), [claimed], to))
}

export function deadLetters({ open, store: opened, reopen }: StoreFixture): void {
  const start = async (store: Store) => {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    // It is not attached to the source.
    const { id: target } = await newDestination(store, sourceId, { sourceIds: [], name: 'dead letters' })
    return { sourceId, destinationId, target }
  }

  test('the messages that failed or expired are owed to the other destination, and count as accepted only once', async () => {
    const store = opened()
    const consumer = new RecordingConsumer()
    consumer.reserves = false
    store.delivery.attach(consumer)
    const { sourceId, destinationId, target } = await start(store)
    await accept(store, sourceId, tracks(4, 'm'), [destinationId])
    const claimed = await claimOne(store, destinationId)
    const deliveries = deliveriesOf(claimed.shipment)
    const fates: Fate[] = ['failed', 'delivered', 'expired', 'cancelled']
    await settleWithLetters(store, claimed, (id) => fates[deliveries.indexOf(id)] as Fate, target)
    assert.ok(consumer.woken.includes(target), 'its lane is woken')
    assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: 4, delivered: 1, failed: 1, expired: 1, cancelled: 1 }))
    assert.deepEqual(await ledgerOf(store, target), counts({ owed: 2, pending: 2 }))
    const { accepted, duplicates } = (await store.books.sourceCounts()).find((row) => row.sourceId === sourceId) ?? {}
    assert.deepEqual([accepted, duplicates], [4, 0])
    const ids = [deliveries[0], deliveries[2]].map((id) => `dead-letter-${id}`)
    assert.deepEqual(messageIdsOf(await claimOne(store, target)), ids)
    assert.deepEqual(await Promise.all(deliveries.map(async (id) => (await store.history.delivery(id))?.deadLetter)), [
      { destinationId: target, messageId: ids[0] },
      null,
      { destinationId: target, messageId: ids[1] },
      null,
    ])
    for (const id of ids) {
      const message = await store.history.message(id)
      assert.deepEqual(
        message?.deliveries.map((delivery) => delivery.destinationId),
        [target],
      )
    }
    const listed = await allPages((page) => store.history.messages({ sourceId, type: 'dead_letter' }, page), 1)
    assert.deepEqual(new Set(listed.map(({ content, index }) => content.items[index]?.['messageId'])), new Set(ids))
    assert.equal(listed.length, 2)
    await reopen()
    const again = await claimOne(opened(), target)
    assert.deepEqual(messageIdsOf(again), ids)
    await settle(opened(), again, 'delivered')
    assert.deepEqual(await ledgerOf(opened(), target), counts({ owed: 2, delivered: 2 }))
  })

  test('a settlement that is rejected stores no dead letters', async () => {
    const store = opened()
    const { sourceId, destinationId, target } = await start(store)
    await accept(store, sourceId, tracks(2), [destinationId])
    const claimed = await claimOne(store, destinationId)
    const right = withLetters(settlementOf([claimed.shipment], 'failed'), [claimed], target)
    await assert.rejects(store.delivery.settle({ ...right, records: [] }))
    const stale = { ...claimed.shipment, claim: claimed.shipment.claim + 7 }
    await assert.rejects(store.delivery.settle({ ...right, done: [stale] }))
    assert.deepEqual(await ledgerOf(store, target), counts())
    await settleWithLetters(store, claimed, 'failed', target)
    await assert.rejects(settleWithLetters(store, claimed, 'failed', target))
    assert.deepEqual(await ledgerOf(store, target), counts({ owed: 2, pending: 2 }))
  })

  test('if the destination was deleted meanwhile, the delivery ends and nothing else is stored', async () => {
    const store = opened()
    const { sourceId, destinationId, target } = await start(store)
    await accept(store, sourceId, tracks(1), [destinationId])
    const claimed = await claimOne(store, destinationId)
    await store.resources.deleteDestination(target)
    await settleWithLetters(store, claimed, 'failed', target)
    assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: 1, failed: 1 }))
    assert.deepEqual((await allPages((page) => store.history.messages({ sourceId, type: 'dead_letter' }, page), 10)).length, 0)
  })

  test('the dead letters of a deleted user are purged', async () => {
    const store = opened()
    const { sourceId, destinationId, target } = await start(store)
    await accept(store, sourceId, [track('theirs', { userId: 'gone' }), track('other', { userId: 'stays' })], [destinationId])
    const claimed = await claimOne(store, destinationId)
    const [theirs, other] = deliveriesOf(claimed.shipment)
    const settlement = withLetters(settlementOf([claimed.shipment], 'failed'), [claimed], target)
    // What their batch shared is stored beside the letters, and is not purged with one of them.
    const shared = { context: { app: 'a' }, integrations: { All: true } }
    for (const letters of settlement.letters ?? []) Object.assign(letters, shared)
    await store.delivery.settle(settlement)
    const { id } = await store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await until(
      () => store.deletions.one(id),
      (deletion) => deletion?.state === 'pending',
      'purged',
    )
    assert.equal(await store.history.message(`dead-letter-${theirs}`), undefined)
    const letters = await claimOne(store, target)
    assert.deepEqual(messageIdsOf(letters), [null, `dead-letter-${other}`])
    for (const { content } of letters.bodies.values()) {
      assert.deepEqual({ context: content.context, integrations: content.integrations }, shared)
    }
  })

  test('a dead letter is replayed like any other message', async () => {
    const store = opened()
    const { sourceId, destinationId, target } = await start(store)
    await accept(store, sourceId, tracks(1), [destinationId])
    await settleWithLetters(store, await claimOne(store, destinationId), 'failed', target)
    const letter = await claimOne(store, target)
    await settle(store, letter, 'failed')
    const replayed = await store.replays.replay(deliveriesOf(letter.shipment)[0] as string)
    assert.ok(replayed.ok)
    const again = await claimOne(store, target)
    assert.deepEqual(messageIdsOf(again), messageIdsOf(letter))
    await settle(store, again, 'delivered')
    assert.deepEqual(await ledgerOf(store, target), counts({ owed: 2, failed: 1, delivered: 1 }))
  })

  test('a replay that fails again owes another dead letter, and the same after a restart', async () => {
    const { sourceId, destinationId, target } = await start(opened())
    await accept(opened(), sourceId, tracks(2), [destinationId])
    const first = await claimOne(opened(), destinationId)
    await settleWithLetters(opened(), first, 'failed', target)
    for (let nth = 2; nth <= 3; nth++) {
      assert.ok((await opened().replays.replay(deliveriesOf(first.shipment)[0] as string)).ok)
      await settleWithLetters(opened(), await claimOne(opened(), destinationId), 'failed', target)
      assert.deepEqual(await ledgerOf(opened(), target), counts({ owed: nth + 1, pending: nth + 1 }))
      await reopen()
    }
    const { shipments } = await claim(opened(), target)
    assert.equal(shipments.flatMap(messageIdsOf).length, 4)
    for (const each of shipments) await settle(opened(), each, 'delivered')
    assert.deepEqual(await ledgerOf(opened(), target), counts({ owed: 4, delivered: 4 }))
    assert.deepEqual(await ledgerOf(opened(), destinationId), counts({ owed: 4, failed: 4 }))
  })

  test('retention keeps what is still owed after 14 days: retries and dead letters', async () => {
    const own = await open({ retentionDays: 1 })
    try {
      const { store } = own
      const { sourceId, destinationId, target } = await start(store)
      await accept(store, sourceId, tracks(2, 'm'), [destinationId])
      const claimed = await claimOne(store, destinationId)
      const [first, second] = deliveriesOf(claimed.shipment)
      await settleWithLetters(store, claimed, (id) => (id === first ? 'failed' : 'retry'), target)
      await store.dropExpired(Date.now() + 15 * DAY_MS)
      assert.equal((await store.history.delivery(second as string))?.state, 'pending')
      assert.deepEqual(messageIdsOf(await claimOne(store, target)), [`dead-letter-${first}`])
      const retried = await claim(store, destinationId, { nowMs: Date.now() * 2 })
      assert.deepEqual(retried.shipments.flatMap(messageIdsOf), ['m-1'])
      await own.reopen()
      for (const id of [target, destinationId]) {
        for (const each of (await claim(own.store, id, { nowMs: Date.now() * 2 })).shipments) await settle(own.store, each, 'delivered')
      }
      await own.store.dropExpired(Date.now() + 15 * DAY_MS)
      assert.deepEqual((await own.store.history.messages({}, { limit: 10, cursor: null })).data, [])
      assert.deepEqual(await ledgerOf(own.store, target), counts({ owed: 1, delivered: 1 }))
      assert.deepEqual(await ledgerOf(own.store, destinationId), counts({ owed: 2, failed: 1, delivered: 1 }))
    } finally {
      await own.dispose()
    }
  })
}
