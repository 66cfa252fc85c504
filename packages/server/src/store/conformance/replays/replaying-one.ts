// Conformance: the replay of one delivery, which creates another delivery of its message.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  accept,
  claim,
  claimOne,
  counts,
  deliveriesOf,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSourceAndDestination,
  RecordingConsumer,
  type StoreFixture,
  settle,
  settlementOf,
  track,
  tracks,
} from '../fixtures.ts'

const FIRST = { limit: 1_000, cursor: null }

export function replayingOne({ store, reopen }: StoreFixture): void {
  test('replaying a delivery that ended creates a new delivery, marked as a replay', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(3, 'r'), [destinationId])
    const claimed = await claimOne(store(), destinationId)
    const delivery = deliveriesOf(claimed.shipment)[1] as string
    assert.deepEqual(await store().replays.replay(delivery), { ok: false, reason: 'still_pending' })
    await settle(store(), claimed, 'failed')
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    const replayed = await store().replays.replay(delivery)
    assert.ok(replayed.ok)
    assert.ok(consumer.woken.includes(destinationId))
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 4, failed: 3, pending: 1 }))
    await reopen()
    const again = await claimOne(store(), destinationId)
    assert.deepEqual([deliveriesOf(again.shipment), again.shipment.replay, messageIdsOf(again)], [[replayed.deliveryId], true, ['r-1']])
    await settle(store(), again, 'delivered')
    const shown = await store().history.delivery(replayed.deliveryId)
    assert.deepEqual([shown?.state, shown?.replay, shown?.messageId], ['delivered', true, 'r-1'])
    assert.equal((await store().history.delivery(delivery))?.state, 'failed', 'the first delivery does not change')
    const message = await store().history.message('r-1')
    assert.deepEqual(message?.deliveries, [
      { id: delivery, destinationId },
      { id: replayed.deliveryId, destinationId },
    ])
    const { data } = await store().history.deliveries({ destinationId, state: 'delivered' }, FIRST)
    assert.deepEqual(
      data.map(({ id, replay }) => [id, replay]),
      [[replayed.deliveryId, true]],
    )
    const third = await store().replays.replay(replayed.deliveryId)
    assert.ok(third.ok)
    await settle(store(), await claimOne(store(), destinationId), 'retry')
    await settle(store(), await claimOne(store(), destinationId, { nowMs: NOW_MS * 2 }), 'delivered')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, failed: 3, delivered: 2 }))
    assert.deepEqual(
      [(await store().history.delivery(third.deliveryId))?.attempts, (await store().history.delivery(third.deliveryId))?.replay],
      [2, true],
    )
  })

  test('if a replay is settled together with another delivery, only the replay is marked', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('old')], [destinationId])
    const old = await claimOne(store(), destinationId)
    await settle(store(), old, 'failed')
    await store().replays.replay(deliveriesOf(old.shipment)[0] as string)
    await accept(store(), sourceId, [track('new')], [destinationId])
    const { shipments } = await claim(store(), destinationId)
    await store().delivery.settle(
      settlementOf(
        shipments.map(({ shipment }) => shipment),
        'delivered',
      ),
    )
    const { data } = await store().history.deliveries({ destinationId, state: 'delivered' }, FIRST)
    assert.deepEqual(
      new Map(data.map(({ messageId, replay }) => [messageId, replay])),
      new Map([
        ['new', false],
        ['old', true],
      ]),
    )
  })

  test('a delivery is not replayed if it does not exist, is pending, or its message or destination is gone', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: otherId } = await newDestination(store(), sourceId)
    await accept(store(), sourceId, [track('a')], [otherId])
    const claimed = await claimOne(store(), otherId)
    const delivery = deliveriesOf(claimed.shipment)[0] as string
    await settle(store(), claimed, 'delivered')
    await store().resources.deleteDestination(otherId)
    assert.deepEqual(await store().replays.replay(delivery), { ok: false, reason: 'destination_gone' })
    for (const unknown of ['', 'x', '1-0', `${delivery.split('-')[0]}-3`]) {
      assert.deepEqual(await store().replays.replay(unknown), { ok: false, reason: 'not_found' }, unknown)
    }
    assert.deepEqual(await ledgerOf(store(), destinationId), counts())
  })
}
