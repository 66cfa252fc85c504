// Conformance: what retention drops, and what it keeps.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../store.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  counts,
  DAY_MS,
  deliveriesOf,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSourceAndDestination,
  type OpenStore,
  type StoreFixture,
  settle,
  settleAll,
  settlementOf,
  track,
  tracks,
  until,
} from './fixtures.ts'

const FAR = (): number => Date.now() + 100 * DAY_MS

export function retention({ open }: StoreFixture): void {
  const withStore = (title: string, run: (opened: OpenStore) => Promise<void>): void => {
    test(title, async () => {
      const opened = await open({ retentionDays: 7 })
      try {
        await run(opened)
      } finally {
        await opened.dispose()
      }
    })
  }
  const stored = async (store: Store): Promise<unknown[]> =>
    (await allPages((page) => store.history.messages({}, page), 500)).map(({ content, index }) => content.items[index]?.['messageId'])

  withStore('messages newer than the retention time are kept', async ({ store }) => {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, tracks(3, 'm'), [destinationId])
    await settleAll(store, destinationId, 'failed')
    await store.dropExpired(Date.now() + 6 * DAY_MS)
    assert.equal((await stored(store)).length, 3)
    assert.equal((await store.history.deliveries({ state: 'failed' }, { limit: 10, cursor: null })).data.length, 3)
  })

  withStore('older messages are dropped with their deliveries and attempts, and the ledger still adds up', async (opened) => {
    const { store } = opened
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    for (let at = 0; at < 700; at += 2) {
      await Promise.all([accept(store, sourceId, tracks(2), [destinationId]), accept(store, sourceId, tracks(1), [destinationId])])
    }
    const { shipments } = await claim(store, destinationId)
    await Promise.all(shipments.map((claimed, at) => settle(store, claimed, at % 3 === 0 ? 'failed' : 'delivered')))
    const delivery = deliveriesOf((shipments[0] as (typeof shipments)[number]).shipment)[0] as string
    await store.replays.replay(delivery)
    await settleAll(store, destinationId, 'delivered')
    const before = await ledgerOf(store, destinationId)
    await store.dropExpired(FAR())
    assert.deepEqual(await ledgerOf(store, destinationId), before)
    assert.deepEqual(await stored(store), [])
    assert.deepEqual((await store.history.deliveries({}, { limit: 10, cursor: null })).data, [])
    assert.equal(await store.history.delivery(delivery), undefined)
    assert.deepEqual(await store.replays.replay(delivery), { ok: false, reason: 'not_found' })
    const reopened = await opened.reopen()
    assert.deepEqual(await ledgerOf(reopened, destinationId), before)
    await reopened.dropExpired(FAR())
    assert.deepEqual(await ledgerOf(reopened, destinationId), before)
  })

  withStore('messages with pending deliveries are kept however old, can be delivered, and are then dropped', async (opened) => {
    let { store } = opened
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    const { id: other } = await newDestination(store, sourceId)
    await accept(store, sourceId, tracks(3, 'kept'), [destinationId, other])
    await settleAll(store, other, 'delivered')
    const partly = await claimOne(store, destinationId)
    const [ended, waiting] = deliveriesOf(partly.shipment) as [string, string]
    await settle(store, partly, (delivery) => (delivery === ended ? 'failed' : 'retry'), { reason: 'http_404' })
    await accept(store, sourceId, tracks(2, 'fresh'), [destinationId])
    await accept(store, sourceId, tracks(2, 'replayed'), [other])
    const old = await claimOne(store, other)
    await settle(store, old, 'failed')
    const replayed = await store.replays.replay(deliveriesOf(old.shipment)[0] as string)
    assert.ok(replayed.ok)
    await accept(store, sourceId, tracks(4, 'gone'))
    const before = [await ledgerOf(store, destinationId), await ledgerOf(store, other)]
    for (let times = 0; times < 2; times++) {
      await store.dropExpired(FAR())
      assert.deepEqual([await ledgerOf(store, destinationId), await ledgerOf(store, other)], before)
      assert.deepEqual(new Set((await stored(store)).map((id) => String(id).split('-')[0])), new Set(['kept', 'fresh', 'replayed']))
      assert.equal(
        (await store.history.delivery(ended))?.state,
        'failed',
        'the final states of the other messages of its batch are still known',
      )
      assert.equal((await store.history.delivery(waiting))?.state, 'pending')
      assert.equal((await store.history.delivery(replayed.deliveryId))?.replay, true)
      store = await opened.reopen()
    }
    const { shipments } = await claim(store, destinationId, { nowMs: NOW_MS * 2 })
    assert.deepEqual(shipments.flatMap(messageIdsOf), ['kept-1', 'kept-2', 'fresh-0', 'fresh-1'])
    for (const claimed of shipments) await settle(store, claimed, 'delivered')
    assert.deepEqual(messageIdsOf(await claimOne(store, other)), ['replayed-0'])
    store = await opened.reopen()
    await settleAll(store, other, 'expired')
    await store.dropExpired(FAR())
    assert.deepEqual(await stored(store), [])
    assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: 5, delivered: 4, failed: 1 }))
    assert.deepEqual(await ledgerOf(store, other), counts({ owed: 6, delivered: 3, failed: 2, expired: 1 }))
  })

  withStore('more pinned replays than fit in one step do not block the others from being dropped', async ({ store }) => {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, tracks(400, 'm'), [destinationId])
    const claimed = await claimOne(store, destinationId)
    await settle(store, claimed, 'failed')
    await Promise.all(deliveriesOf(claimed.shipment).map((delivery) => store.replays.replay(delivery)))
    await accept(store, sourceId, [track('after')], [destinationId])
    const { shipments } = await claim(store, destinationId)
    const after = shipments.find((each) => messageIdsOf(each)[0] === 'after')
    assert.ok(after !== undefined)
    await settle(store, after, 'failed')
    const replayed = await store.replays.replay(deliveriesOf(after.shipment)[0] as string)
    assert.ok(replayed.ok)
    await settleAll(store, destinationId, 'delivered')
    await store.dropExpired(FAR())
    assert.equal(await store.history.delivery(replayed.deliveryId), undefined)
    assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: 802, failed: 401, pending: 400, delivered: 1 }))
  })

  withStore('messages accepted while old ones are dropped are kept, whatever the clock says', async ({ store }) => {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await Promise.all(Array.from({ length: 700 }, () => accept(store, sourceId, tracks(1))))
    const dropping = store.dropExpired(FAR())
    const together = store.dropExpired(FAR())
    for (let at = 0; at < 20; at++) await accept(store, sourceId, [track(`new-${at}`)], [destinationId])
    await Promise.all([dropping, together])
    await accept(store, sourceId, [track('new-20')], [destinationId])
    const { shipments } = await claim(store, destinationId)
    assert.deepEqual(
      shipments.flatMap(messageIdsOf),
      Array.from({ length: 21 }, (_, at) => `new-${at}`),
    )
    await store.delivery.settle(
      settlementOf(
        shipments.map(({ shipment }) => shipment),
        'delivered',
      ),
    )
    assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: 21, delivered: 21 }))
  })

  withStore('the state of a deletion is still known when its attempts were dropped', async ({ store }) => {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    const { id } = await store.deletions.create({ userIds: ['a', 'b'], sourceIds: [sourceId], suppress: false })
    await until(
      () => store.deletions.one(id),
      (deletion) => deletion?.state === 'pending',
      'purged',
    )
    const { shipments } = await claim(store, destinationId)
    for (const [at, claimed] of shipments.entries()) await settle(store, claimed, at === 0 ? 'delivered' : 'failed')
    const before = await store.deletions.one(id)
    await store.dropExpired(FAR())
    const after = await store.deletions.one(id)
    assert.deepEqual({ ...after, firstTargets: null }, { ...before, firstTargets: null })
    assert.deepEqual(
      (await store.deletions.targets(id, {}, { limit: 10, cursor: null })).data.map(({ state }) => state),
      ['finished', 'failed'],
    )
  })

  withStore('a message is a duplicate for at least a day', async ({ store }) => {
    const { sourceId } = await newSourceAndDestination(store)
    await accept(store, sourceId, [track('again')])
    await store.dropExpired(Date.now() + DAY_MS - 60_000)
    assert.deepEqual((await accept(store, sourceId, [track('again')])).duplicates, [0])
  })

  withStore('a message is still a duplicate when a wrong clock has dropped it, also after restarts', async (opened) => {
    const { sourceId, destinationId } = await newSourceAndDestination(opened.store)
    await accept(opened.store, sourceId, [track('first')], [destinationId])
    await settleAll(opened.store, destinationId, 'delivered')
    await opened.store.dropExpired(FAR())
    assert.deepEqual(await stored(opened.store), [])
    await accept(opened.store, sourceId, [track('second')])
    for (let restarts = 1; restarts <= 2; restarts++) {
      const store = await opened.reopen()
      for (const id of ['first', 'second'])
        assert.deepEqual((await accept(store, sourceId, [track(id)])).duplicates, [0], `${id} after ${restarts} restarts`)
      await store.dropExpired(FAR())
    }
  })
}
