// Conformance: some deliveries of a shipment are settled while the others are in flight, under the same claim.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedShipment, ReplayJob, Settlement, Shipment, Store } from '../../store.ts'
import {
  accept,
  claim,
  claimOne,
  counts,
  type Fate,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newSourceAndDestination,
  RecordingConsumer,
  requestRecord,
  type StoreFixture,
  settle,
  settlementOf,
  track,
  tracks,
  until,
} from '../fixtures.ts'
import { ended, matching, replayAll } from '../replays/replay-fixtures.ts'

/** By the last number of its id. */
function byIndex(...fates: Fate[]): (delivery: string) => Fate {
  return (delivery) => fates[Number(delivery.split('-').at(-1))] as Fate
}

/** Settles some deliveries, and returns what is still claimed. */
async function settleSome(store: Store, claimed: ClaimedShipment, ...fates: Fate[]): Promise<ClaimedShipment> {
  const settlement = settlementOf([claimed.shipment], byIndex(...fates))
  await store.delivery.settle(settlement)
  return held(claimed, settlement)
}

function held(claimed: ClaimedShipment, { kept: [kept] }: Settlement): ClaimedShipment {
  assert.ok(kept !== undefined)
  return { ...claimed, shipment: { ...claimed.shipment, parts: kept.parts } }
}

export function partialSettlement({ store, reopen }: StoreFixture): void {
  test('deliveries that ended are in the ledger at once, and the others can be settled in any number of steps', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(6, 'step'), [destinationId])
    let now = await claimOne(store(), destinationId)
    now = await settleSome(store(), now, 'delivered', 'kept', 'failed', 'kept', 'retry', 'kept')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, delivered: 1, failed: 1, pending: 4 }))
    const pending = await store().history.deliveries({ destinationId, state: 'pending' }, { limit: 10, cursor: null })
    assert.deepEqual(pending.data.map(({ messageId }) => String(messageId)).sort(), ['step-1', 'step-3', 'step-4', 'step-5'])
    const again = await claim(store(), destinationId, { nowMs: NOW_MS * 2 })
    assert.deepEqual(again.shipments.map(messageIdsOf), [['step-4']], 'kept deliveries stay claimed; those to be retried can be claimed')
    now = await settleSome(store(), now, 'kept', 'delivered', 'kept', 'kept', 'kept', 'kept')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, delivered: 2, failed: 1, pending: 3 }))
    await settle(store(), now, 'delivered')
    await settle(store(), again.shipments[0] as ClaimedShipment, 'expired')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, delivered: 4, failed: 1, expired: 1 }))
    const delivered = await store().history.deliveries({ destinationId, state: 'delivered' }, { limit: 10, cursor: null })
    assert.deepEqual(delivered.data.map(({ messageId }) => String(messageId)).sort(), ['step-0', 'step-1', 'step-3', 'step-5'])
  })

  test('pending deliveries are listed with the reason of their own last attempt', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(5, 'why'), [destinationId])
    const first = await claimOne(store(), destinationId)
    const request = { status: 503, reason: 'http_503', indexes: [0, 1, 2] }
    const settlement = settlementOf([first.shipment], byIndex('retry', 'retry', 'failed', 'kept', 'kept'), { dueAtMs: NOW_MS + 5, request })
    await store().delivery.settle(settlement)
    // The same number of attempts in another record, with other messages of the same call.
    const other = { status: null, reason: 'timeout', indexes: [3] }
    await settle(store(), held(first, settlement), byIndex('kept', 'kept', 'kept', 'retry', 'untouched'), {
      dueAtMs: NOW_MS + 5,
      request: other,
    })
    const listed = async (): Promise<unknown[]> => {
      const { data } = await store().history.deliveries({ destinationId }, { limit: 10, cursor: null })
      for (const { id, lastReason } of data) assert.equal((await store().history.delivery(id))?.lastReason, lastReason, id)
      return data.map(({ messageId, state, reason, lastReason }) => [messageId, state, reason, lastReason].join(' ')).sort()
    }
    const others = ['why-2 failed http_500 ', 'why-3 pending  timeout', 'why-4 pending  ']
    assert.deepEqual(await listed(), ['why-0 pending  http_503', 'why-1 pending  http_503', ...others])
    const { shipments } = await claim(store(), destinationId, { nowMs: NOW_MS + 5 })
    const second = shipments.find((claimed) => messageIdsOf(claimed).includes('why-0')) as ClaimedShipment
    const requests = [
      { status: null, reason: 'connection_refused', indexes: [0] },
      { status: 429, reason: 'http_429', indexes: [1] },
    ]
    const again = settlementOf([second.shipment], 'retry')
    const [record] = again.records
    await store().delivery.settle({
      ...again,
      records: [{ ...(record as (typeof again.records)[number]), requests: requests.map(requestRecord) }],
    })
    await reopen()
    assert.deepEqual(await listed(), ['why-0 pending  connection_refused', 'why-1 pending  http_429', ...others])
  })

  test('after a crash, only the remaining deliveries can be claimed, unchanged', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(4, 'crash'), [destinationId])
    const progress = ['https://example.com/second']
    await settle(store(), await claimOne(store(), destinationId), 'retry', { dueAtMs: NOW_MS + 7, firstAttemptAtMs: NOW_MS - 9, progress })
    await settleSome(store(), await claimOne(store(), destinationId, { nowMs: NOW_MS + 7 }), 'delivered', 'kept', 'kept', 'delivered')
    await reopen()
    const rest = await claimOne(store(), destinationId, { nowMs: NOW_MS + 7 })
    const { attempt, firstAttemptAtMs, dueAtMs } = rest.shipment
    assert.deepEqual(messageIdsOf(rest), ['crash-1', 'crash-2'])
    assert.deepEqual([attempt, firstAttemptAtMs, dueAtMs, rest.shipment.progress], [1, NOW_MS - 9, NOW_MS + 7, progress])
    await settle(store(), rest, 'delivered')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 4, delivered: 4 }))
  })

  test('if the shipment is released after a step, the remaining deliveries can be claimed by another holder, and no longer be settled by the first', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(3, 'back'), [destinationId])
    const mine = await settleSome(store(), await claimOne(store(), destinationId), 'delivered', 'kept', 'kept')
    store().delivery.release([mine.shipment])
    const other = await claimOne(store(), destinationId)
    assert.deepEqual(messageIdsOf(other), ['back-1', 'back-2'])
    await assert.rejects(settleSome(store(), mine, 'kept', 'delivered', 'kept'), 'it is claimed by another holder')
    await assert.rejects(settle(store(), mine, 'delivered'), 'it is claimed by another holder')
    await settle(store(), await settleSome(store(), other, 'kept', 'kept', 'failed'), 'delivered')
    await assert.rejects(settleSome(store(), other, 'kept', 'delivered', 'kept'), 'it is settled')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, delivered: 2, failed: 1 }))
  })

  test('a delivery that was settled in one step cannot be settled in the next', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(3), [destinationId])
    const before = await claimOne(store(), destinationId)
    const now = await settleSome(store(), before, 'delivered', 'kept', 'kept')
    await assert.rejects(settleSome(store(), before, 'failed', 'kept', 'kept'))
    await assert.rejects(settle(store(), before, 'delivered'))
    const step = settlementOf([now.shipment], byIndex('kept', 'delivered', 'kept'))
    await assert.rejects(store().delivery.settle({ ...step, kept: step.kept.map(({ shipment }) => ({ shipment, parts: shipment.parts })) }))
    await assert.rejects(store().delivery.settle({ ...step, records: [] }))
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, delivered: 1, pending: 2 }))
    await settle(store(), now, 'failed')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, delivered: 1, failed: 2 }))
  })

  test('of several shipments that are settled together, some can be done and others kept', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (const name of ['x', 'y', 'z']) await accept(store(), sourceId, tracks(2, name), [destinationId])
    const { shipments } = await claim(store(), destinationId)
    const [x, y, z] = shipments as [ClaimedShipment, ClaimedShipment, ClaimedShipment]
    const fateOf = (delivery: string): Fate => {
      const isOf = ({ shipment }: ClaimedShipment): boolean => delivery.startsWith(`${String(shipment.parts[0]?.origin)}-`)
      return isOf(x) || (isOf(y) && delivery.endsWith('-0')) ? 'delivered' : 'kept'
    }
    const settlement = settlementOf(
      shipments.map(({ shipment }) => shipment),
      fateOf,
    )
    assert.deepEqual([settlement.done.length, settlement.kept.length], [1, 2])
    await store().delivery.settle(settlement)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, delivered: 3, pending: 3 }))
    const kept = settlement.kept.map(({ shipment, parts }): Shipment => Object.assign({}, shipment, { parts }))
    await store().delivery.settle(settlementOf(kept, 'failed'))
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, delivered: 3, failed: 3 }))
    assert.equal(z.shipment.id, kept[1]?.id)
  })

  test('concurrent steps of many shipments are each made once', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (let at = 0; at < 20; at++) await accept(store(), sourceId, tracks(4, `s${at}`), [destinationId])
    const { shipments } = await claim(store(), destinationId)
    assert.equal(shipments.length, 20)
    await Promise.all(
      shipments.map(async (claimed) => {
        const now = await settleSome(store(), claimed, 'delivered', 'kept', 'kept', 'kept')
        await settle(store(), await settleSome(store(), now, 'kept', 'failed', 'kept', 'kept'), 'expired')
      }),
    )
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 80, delivered: 20, failed: 20, expired: 40 }))
  })

  test('if the destination is deleted meanwhile, claimed deliveries can still end, and the remaining ones are cancelled', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(5, 'deleted'), [destinationId])
    const claimed = await settleSome(store(), await claimOne(store(), destinationId), 'delivered', 'kept', 'kept', 'kept', 'kept')
    await store().resources.deleteDestination(destinationId)
    const now = await settleSome(store(), claimed, 'kept', 'delivered', 'kept', 'kept', 'retry')
    const untilPending = (count: number): Promise<unknown> =>
      until(
        () => store().books.ledger(),
        (rows) => rows.some((row) => row.destinationId === destinationId && row.pending === count),
        `${count} are pending`,
      )
    await untilPending(2)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, delivered: 2, cancelled: 1, pending: 2 }))
    await settle(store(), now, byIndex('kept', 'kept', 'delivered', 'untouched'))
    await untilPending(0)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, delivered: 3, cancelled: 2 }))
  })

  test('deliveries of messages that are purged meanwhile stay pending until their holder ends them, in any step', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    const messages = ['stays', 'gone', 'stays', 'gone'].map((userId, at) => Object.assign(track(`parts-purged-${at}`), { userId }))
    await accept(store(), sourceId, messages, [destinationId])
    const claimed = consumer.received[0] as ClaimedShipment
    const now = await settleSome(store(), claimed, 'delivered', 'kept', 'kept', 'kept')
    await store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    assert.equal(consumer.deletions.length, 1, 'the holder is notified')
    const next = await settleSome(store(), now, 'kept', 'cancelled', 'kept', 'kept')
    // Including the delete message.
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, delivered: 1, cancelled: 1, pending: 3 }))
    await reopen()
    const { shipments } = await claim(store(), destinationId)
    const rest = shipments.find(({ shipment }) => shipment.parts[0]?.origin === next.shipment.parts[0]?.origin) as ClaimedShipment
    assert.deepEqual(
      [...rest.bodies.values()].map(({ content: { items } }) => items.map((item) => item?.['messageId'] ?? null)),
      [['parts-purged-0', null, 'parts-purged-2', null]],
    )
    await settle(store(), rest, byIndex('kept', 'kept', 'delivered', 'cancelled'))
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, delivered: 2, cancelled: 2, pending: 1 }))
  })

  test('a replay can be settled in steps too, and later responses of other URLs change only its history', async () => {
    const { destinationId } = await ended(store(), 'failed', 3, { together: true })
    const job = await replayAll(store(), matching({ destinationId }))
    const claimed = await claimOne(store(), destinationId)
    assert.deepEqual([claimed.shipment.replay, claimed.shipment.parts[0]?.indexes], [true, [0, 1, 2]])
    const first = settlementOf([claimed.shipment], byIndex('delivered', 'kept', 'kept'))
    await store().delivery.settle(first)
    const jobCounts = async (): Promise<number[]> => {
      const { delivered, failed } = ((await store().replays.one(job.id)) as ReplayJob).ended
      return [delivered, failed]
    }
    assert.deepEqual(await jobCounts(), [1, 0])
    await settle(store(), held(claimed, first), byIndex('kept', 'delivered', 'failed'))
    const url = 'https://example.com/late'
    const [record] = first.records
    assert.ok(record !== undefined)
    const late = { ...record, requests: record.requests.map((request) => Object.assign({}, request, { url })), finals: [] }
    await store().delivery.settle({ destinationId, done: [], kept: [], remaining: [], records: [late] })
    assert.deepEqual(await jobCounts(), [2, 1])
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, delivered: 2, failed: 4 }))
    const [part] = claimed.shipment.parts
    const detail = await store().history.delivery(`${String(part?.origin)}-0`)
    assert.deepEqual(
      [detail?.state, detail?.attempts, detail?.history.map((request) => request.url)],
      ['delivered', 1, ['https://example.com/hook', url]],
    )
  })
}
