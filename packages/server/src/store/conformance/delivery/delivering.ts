// Conformance: claiming, releasing and settling.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Settlement, Shipment } from '../../store.ts'
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
  quietMoment,
  type StoreFixture,
  settle,
  settlementOf,
  track,
  tracks,
} from '../fixtures.ts'

export function delivering({ store, reopen }: StoreFixture): void {
  test('shipments in the store are claimed in the order in which they were accepted, once each', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (let at = 0; at < 7; at++) await accept(store(), sourceId, [track(`m-${at}`)], [destinationId])
    const first = await claim(store(), destinationId, { maxFresh: 3 })
    assert.deepEqual([first.shipments.flatMap(messageIdsOf), first.moreFresh], [['m-0', 'm-1', 'm-2'], true])
    const rest = await claim(store(), destinationId)
    assert.deepEqual([rest.shipments.flatMap(messageIdsOf), rest.moreFresh], [['m-3', 'm-4', 'm-5', 'm-6'], false])
    assert.deepEqual(await claim(store(), destinationId), { shipments: [], moreFresh: false, nextRetryAtMs: null })
  })

  test('a single process has the whole limit of each destination', async () => {
    const { destinationId } = await newSourceAndDestination(store())
    for (const limit of [1, 2, 7, 1_000]) assert.equal(store().delivery.share(destinationId, limit), limit)
  })

  test('concurrent claims get different shipments', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (let at = 0; at < 20; at++) await accept(store(), sourceId, [track(`m-${at}`)], [destinationId])
    const claims = await Promise.all(Array.from({ length: 12 }, () => claim(store(), destinationId, { maxFresh: 3 })))
    const ids = claims.flatMap(({ shipments }) => shipments.map(({ shipment }) => shipment.id))
    assert.deepEqual([ids.length, new Set(ids).size], [20, 20])
  })

  test('a claim stops after the shipment that exceeds its limit of bytes', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (let at = 0; at < 4; at++) await accept(store(), sourceId, [track(`m-${at}`)], [destinationId])
    const { bytes } = await claimOne(store(), destinationId)
    const next = await claim(store(), destinationId, { maxBytes: bytes })
    assert.deepEqual([next.shipments.length, next.moreFresh], [2, true])
    assert.deepEqual((await claim(store(), destinationId, { maxBytes: 0 })).shipments.length, 1)
  })

  test('a claim finds nothing of other destinations, and nothing for an unknown one', async () => {
    const [one, other] = [await newSourceAndDestination(store()), await newSourceAndDestination(store())]
    await accept(store(), one.sourceId, [track('a')], [one.destinationId])
    assert.deepEqual((await claim(store(), other.destinationId)).shipments, [])
    assert.deepEqual((await claim(store(), 'dst_unknown')).shipments, [])
  })

  test('a retry is claimed when it is due and not before', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(3, 'r'), [destinationId])
    const progress = ['https://example.com/second']
    const options = { dueAtMs: NOW_MS + 1_000, firstAttemptAtMs: NOW_MS - 7, progress, unit: true }
    await settle(store(), await claimOne(store(), destinationId), 'retry', options)
    const early = await claim(store(), destinationId, { nowMs: NOW_MS + 999 })
    assert.deepEqual(early, { shipments: [], moreFresh: false, nextRetryAtMs: NOW_MS + 1_000 })
    await reopen()
    const { shipments, nextRetryAtMs } = await claim(store(), destinationId, { nowMs: NOW_MS + 1_000 })
    assert.equal(nextRetryAtMs, null)
    const { shipment } = shipments[0] as (typeof shipments)[number]
    const { attempt, firstAttemptAtMs, dueAtMs, unit, replay } = shipment
    assert.deepEqual(
      { attempt, firstAttemptAtMs, dueAtMs, unit, replay, progress: shipment.progress },
      { attempt: 1, firstAttemptAtMs: NOW_MS - 7, dueAtMs: NOW_MS + 1_000, unit: true, replay: false, progress },
    )
    assert.deepEqual(shipments.flatMap(messageIdsOf), ['r-0', 'r-1', 'r-2'])
  })

  test('a retry whose time has fractions of a millisecond is not early', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('a')], [destinationId])
    await settle(store(), await claimOne(store(), destinationId), 'retry', { dueAtMs: NOW_MS + 0.25, firstAttemptAtMs: NOW_MS - 0.5 })
    assert.deepEqual((await claim(store(), destinationId, { nowMs: NOW_MS })).shipments, [])
    await settle(store(), await claimOne(store(), destinationId, { nowMs: NOW_MS + 1 }), 'delivered')
  })

  test('retries are claimed by due time, within the limit, together with new shipments', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (const [at, dueAtMs] of [30, 10, 20].entries()) {
      await accept(store(), sourceId, [track(`late-${at}`)], [destinationId])
      await settle(store(), await claimOne(store(), destinationId), 'retry', { dueAtMs: NOW_MS + dueAtMs })
    }
    await accept(store(), sourceId, [track('fresh')], [destinationId])
    const { shipments, nextRetryAtMs } = await claim(store(), destinationId, { nowMs: NOW_MS + 50, maxRetries: 2, maxFresh: 1 })
    assert.deepEqual(shipments.flatMap(messageIdsOf), ['late-1', 'late-2', 'fresh'])
    assert.equal(nextRetryAtMs, NOW_MS + 30)
    const last = await claim(store(), destinationId, { nowMs: NOW_MS + 29, maxFresh: 0 })
    assert.deepEqual([last.shipments, last.nextRetryAtMs], [[], NOW_MS + 30])
  })

  test('retries whose retry window is over are claimed, due or not, oldest first', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (const firstAttemptAtMs of [500, 100, 300, 900]) {
      await accept(store(), sourceId, [track(`w-${firstAttemptAtMs}`)], [destinationId])
      await settle(store(), await claimOne(store(), destinationId), 'retry', { firstAttemptAtMs, dueAtMs: NOW_MS * 2 - firstAttemptAtMs })
    }
    await accept(store(), sourceId, [track('never attempted')], [destinationId])
    const overdue = await store().delivery.claimOverdue(destinationId, 500, 2)
    assert.deepEqual(overdue.flatMap(messageIdsOf), ['w-100', 'w-300'])
    const more = await store().delivery.claimOverdue(destinationId, 500, 10)
    assert.deepEqual(more.flatMap(messageIdsOf), ['w-500'])
    assert.deepEqual(await store().delivery.claimOverdue('dst_unknown', 500, 10), [])
  })

  test('a released shipment can be claimed again, in its original order', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (let at = 0; at < 3; at++) await accept(store(), sourceId, [track(`m-${at}`)], [destinationId])
    const { shipments } = await claim(store(), destinationId)
    store().delivery.release(shipments.slice(0, 2).map(({ shipment }) => shipment))
    const again = await claim(store(), destinationId)
    assert.deepEqual(again.shipments.flatMap(messageIdsOf), ['m-0', 'm-1'])
    assert.notEqual(again.shipments[0]?.shipment.claim, shipments[0]?.shipment.claim)
  })

  test('shipments that were claimed when the store was closed can be claimed after it is reopened', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('a')], [destinationId])
    await claimOne(store(), destinationId)
    await reopen()
    assert.deepEqual(messageIdsOf(await claimOne(store(), destinationId)), ['a'])
  })

  test('a shipment that was claimed again cannot be settled or released under the previous claim', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('a')], [destinationId])
    const stale = await claimOne(store(), destinationId)
    store().delivery.release([stale.shipment])
    await assert.rejects(settle(store(), stale, 'delivered'), 'it is not claimed')
    const current = await claimOne(store(), destinationId)
    await assert.rejects(settle(store(), stale, 'delivered'), 'it is claimed by another holder')
    store().delivery.release([stale.shipment])
    assert.deepEqual((await claim(store(), destinationId)).shipments, [], 'it is still claimed')
    await settle(store(), current, 'failed')
    await assert.rejects(settle(store(), current, 'delivered'), 'it is settled')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 1, failed: 1 }))
  })

  test('of two concurrent settlements of one shipment, one is rejected', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(2), [destinationId])
    const claimed = await claimOne(store(), destinationId)
    const results = await Promise.allSettled([
      settle(store(), claimed, 'delivered'),
      settle(store(), claimed, 'failed'),
      accept(store(), sourceId, [track('beside')], [destinationId]),
    ])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, delivered: 2, pending: 1 }))
  })

  test('each delivery of a shipment can end in a different state', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(6, 'e'), [destinationId])
    const claimed = await claimOne(store(), destinationId)
    const fates: Fate[] = ['delivered', 'failed', 'expired', 'cancelled', 'retry', 'untouched']
    await settle(store(), claimed, (delivery) => fates[Number(delivery.split('-').at(-1))] as Fate)
    assert.deepEqual(
      await ledgerOf(store(), destinationId),
      counts({ owed: 6, delivered: 1, failed: 1, expired: 1, cancelled: 1, pending: 2 }),
    )
    const { shipments } = await claim(store(), destinationId, { nowMs: NOW_MS * 2 })
    assert.deepEqual(
      shipments.map((each) => [each.shipment.attempt, messageIdsOf(each)]),
      [
        [1, ['e-4']],
        [0, ['e-5']],
      ],
    )
  })

  test('deliveries of several shipments can be combined into one', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (const name of ['a', 'b']) await accept(store(), sourceId, tracks(2, name), [destinationId])
    const { shipments } = await claim(store(), destinationId)
    const both = shipments.map(({ shipment }) => shipment)
    const separate = settlementOf(both, 'retry', { unit: true })
    const [first] = separate.remaining
    assert.ok(first !== undefined)
    const remaining = [{ ...first, parts: separate.remaining.flatMap(({ parts }) => parts) }]
    await store().delivery.settle({ ...separate, remaining })
    await reopen()
    const one = await claimOne(store(), destinationId, { nowMs: NOW_MS * 2 })
    assert.deepEqual(messageIdsOf(one), ['a-0', 'a-1', 'b-0', 'b-1'])
    assert.ok(one.shipment.unit)
    await settle(store(), one, (delivery) => (delivery.endsWith('-0') ? 'delivered' : 'failed'))
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 4, delivered: 2, failed: 2 }))
  })

  const uneven: [what: string, change: (settlement: Settlement) => Settlement][] = [
    ['leaves a delivery out', (all) => ({ ...all, records: [] })],
    ['counts a delivery twice', (all) => ({ ...all, records: [...all.records, ...all.records] })],
    ['both ends and retries a delivery', (all) => ({ ...all, remaining: settlementOf(all.done, 'retry').remaining })],
    [
      'contains one delivery in place of another',
      (all) => ({
        ...all,
        records: all.records.map((record) => ({ ...record, finals: [{ state: 'delivered', reason: null, indexes: [0, 1, 1] }] })),
      }),
    ],
    [
      'contains fewer deliveries than the shipment',
      (all) =>
        settlementOf(
          all.done.map((shipment): Shipment => ({ ...shipment, parts: shipment.parts.map((part) => ({ ...part, indexes: [0] })) })),
          'delivered',
        ),
    ],
    ['is for another destination', (all) => ({ ...all, destinationId: 'dst_unknown' })],
    ['ends deliveries of a shipment that it does not settle', (all) => ({ ...all, done: [] })],
  ]
  for (const [what, change] of uneven) {
    test(`a settlement that ${what} is rejected and changes nothing`, async () => {
      const { sourceId, destinationId } = await newSourceAndDestination(store())
      await accept(store(), sourceId, tracks(3), [destinationId])
      const claimed = await claimOne(store(), destinationId)
      await assert.rejects(store().delivery.settle(change(settlementOf([claimed.shipment], 'delivered'))))
      assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, pending: 3 }))
      await settle(store(), claimed, 'delivered')
      assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, delivered: 3 }))
    })
  }

  test('the age of the oldest pending delivery counts from when its message was accepted', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const oldestAtMs = async () => (await store().books.oldestPendingOf(destinationId))?.atMs
    assert.equal(await store().books.oldestPendingOf(destinationId), undefined)
    assert.equal(await store().books.oldestPendingOf('dst_unknown'), undefined)
    const before = Date.now()
    await accept(store(), sourceId, [track('a')], [destinationId])
    const oldest = await oldestAtMs()
    // The clock of a database server is known only to within one round trip.
    assert.ok(oldest !== undefined && Math.abs(oldest - before) < 5_000, `${before} and ${oldest}`)
    await settle(store(), await claimOne(store(), destinationId), 'retry')
    await quietMoment()
    await accept(store(), sourceId, [track('b')], [destinationId])
    assert.equal(await oldestAtMs(), oldest)
  })

  test('the time of the first attempt of pending deliveries is known, because the retry window begins then', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const firstAttempt = async () => {
      const of = await store().books.oldestPendingOf(destinationId)
      const all = (await store().books.oldestPending()).find((each) => each.destinationId === destinationId)
      assert.deepEqual(all, of)
      return of?.firstAttemptAtMs
    }
    const retried = async (messageId: string, firstAttemptAtMs: number): Promise<void> => {
      await accept(store(), sourceId, [track(messageId)], [destinationId])
      await settle(store(), await claimOne(store(), destinationId), 'retry', { firstAttemptAtMs, dueAtMs: NOW_MS + 60_000 })
    }
    await accept(store(), sourceId, [track('w-never')], [destinationId])
    assert.equal(await firstAttempt(), null)
    await settle(store(), await claimOne(store(), destinationId), 'delivered')
    await retried('w-2', NOW_MS - 2_000)
    await retried('w-1', NOW_MS - 9_000)
    await accept(store(), sourceId, [track('w-3')], [destinationId])
    assert.equal(await firstAttempt(), NOW_MS - 9_000)
    const { data } = await store().history.deliveries({ destinationId, state: 'pending' }, { limit: 10, cursor: null })
    const times = data.map(({ messageId, firstAttemptAtMs }) => [messageId, firstAttemptAtMs])
    assert.deepEqual(
      new Map(times as [string, number | null][]),
      new Map([
        ['w-1', NOW_MS - 9_000],
        ['w-2', NOW_MS - 2_000],
        ['w-3', null],
      ] as [string, number | null][]),
    )
    for (const { id, firstAttemptAtMs } of data) assert.equal((await store().history.delivery(id))?.firstAttemptAtMs, firstAttemptAtMs)
    await settle(store(), await claimOne(store(), destinationId), 'delivered')
    const [delivered] = (await store().history.deliveries({ destinationId, state: 'delivered' }, { limit: 1, cursor: null })).data
    assert.equal(delivered?.firstAttemptAtMs, null)
  })
}
