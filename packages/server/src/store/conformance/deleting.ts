// Conformance: deletion requests, purges and suppressions.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeletionDetail, Store } from '../store.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  counts,
  deliveriesOf,
  type Ground,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSource,
  newWay,
  RecordingTaker,
  settle,
  settlementOf,
  track,
  tracks,
  until,
} from './ground.ts'

export function deleting({ store, reopen, open }: Ground): void {
  const detail = async (from: Store, id: string): Promise<DeletionDetail> => {
    const found = await from.control.deletion(id)
    assert.ok(found !== undefined)
    return found
  }
  const untilPurged = (id: string, purged: number): Promise<DeletionDetail> =>
    until(
      () => detail(store(), id),
      (deletion) => deletion.purged === purged,
      `${purged} messages are purged`,
    )
  const states = ({ targets }: DeletionDetail): string[] =>
    targets.map(({ userId, destinationId, state }) => `${userId} ${destinationId} ${state}`).sort()

  test('a delete message is owed for each user, source and enabled destination, and is alone in its shipment', async () => {
    const { sourceId, destinationId: one } = await newWay(store())
    const { id: two } = await newDestination(store(), sourceId)
    const { id: off } = await newDestination(store(), sourceId, { enabled: false })
    const { sourceId: otherSource, destinationId: otherDestination } = await newWay(store())
    const { id: bare } = await newSource(store())
    const taker = new RecordingTaker()
    store().delivery.attach(taker)
    const sourceIds = [sourceId, otherSource, bare, sourceId]
    const deletion = await store().control.createDeletion({ userIds: ['u1', 'u2', 'u1'], sourceIds, suppress: false })
    assert.deepEqual([deletion.userCount, deletion.suppress, [...deletion.sourceIds]], [2, false, [sourceId, otherSource, bare]])
    assert.deepEqual(
      states(deletion).map((state) => state.replace(/finished|running/, 'purging')),
      [
        ...['u1', 'u2'].flatMap((user) => [one, two, otherDestination].map((id) => `${user} ${id} pending`)),
        ...['u1', 'u2'].map((user) => `${user} null purging`),
      ].sort(),
    )
    assert.deepEqual(taker.woken.sort(), [one, two, otherDestination].sort())
    assert.deepEqual(await ledgerOf(store(), off), counts())
    const { shipments } = await claim(store(), one)
    const items = shipments.map(({ shipment, contents }) => {
      const [part] = shipment.parts
      assert.ok(part !== undefined && shipment.parts.length === 1)
      return contents.get(part.segment)?.items[part.indexes[0] as number]
    })
    assert.deepEqual(
      items.map((item) => [Object.keys(item ?? {}).sort(), item?.['type'], item?.['userId']]),
      ['u1', 'u2'].map((userId) => [['timestamp', 'type', 'userId'], 'delete', userId]),
    )
    assert.deepEqual(await ledgerOf(store(), one), counts({ owed: 2, pending: 2 }))
  })

  test('a deletion without sources is for every source there is', async () => {
    const { sourceId, destinationId } = await newWay(store())
    const { sourceIds, targets } = await store().control.createDeletion({ userIds: ['all over'], sourceIds: null, suppress: false })
    assert.deepEqual([...sourceIds].sort(), [...store().configuration().sources.keys()].sort())
    assert.ok(targets.some((target) => target.sourceId === sourceId && target.destinationId === destinationId))
  })

  test('the status of a deletion follows its deliveries and its purge', async () => {
    const { sourceId, destinationId } = await newWay(store())
    const { id } = await store().control.createDeletion({ userIds: ['a', 'b', 'c'], sourceIds: [sourceId], suppress: false })
    const isPurged = (): Promise<DeletionDetail> =>
      until(
        () => detail(store(), id),
        ({ state }) => state === 'pending',
        'purged',
      )
    assert.deepEqual(
      states(await isPurged()),
      ['a', 'b', 'c'].map((user) => `${user} ${destinationId} pending`),
    )
    const { shipments } = await claim(store(), destinationId)
    const [a, b, c] = shipments
    assert.ok(a && b && c)
    await settle(store(), a, 'delivered')
    await settle(store(), b, 'retry')
    const middle = await detail(store(), id)
    assert.deepEqual(
      [middle.state, ...states(middle).map((state) => state.split(' ').at(-1))],
      ['running', 'finished', 'running', 'pending'],
    )
    for (const target of middle.targets) {
      const delivery = await store().control.delivery(target.deliveryId as string)
      assert.equal(delivery?.content?.items[0]?.['userId'], target.userId)
    }
    await settle(store(), await claimOne(store(), destinationId, { nowMs: NOW_MS * 2 }), 'delivered')
    await settle(store(), c, 'failed')
    await reopen()
    const end = await detail(store(), id)
    assert.deepEqual([end.state, ...states(end).map((state) => state.split(' ').at(-1))], ['failed', 'finished', 'finished', 'failed'])
    const [summary] = (await store().control.deletions({ limit: 1, cursor: null })).data
    const { targets: _, ...expected } = end
    assert.deepEqual(summary, expected)
  })

  test('a purge removes the messages of the user, by userId or previousId, and of nobody else', async () => {
    const [{ id: sourceId }, { id: other }] = [await newSource(store()), await newSource(store())]
    const of = (userId: string, messageId: string): Record<string, string> => ({ type: 'track', event: 'e', userId, messageId })
    await accept(store(), sourceId, [
      of('gone', 'p-0'),
      of('stays', 'p-1'),
      { type: 'alias', userId: 'new', previousId: 'gone', messageId: 'p-2' },
      { type: 'track', event: 'e', anonymousId: 'gone', messageId: 'p-3' },
      { type: 'track', event: 'e', anonymousId: 'undefined', messageId: 'p-4' },
    ])
    await accept(store(), sourceId, [of('Gone', 'p-5'), of('gone ', 'p-6')])
    await accept(store(), other, [of('gone', 'o-0')])
    const { id } = await store().control.createDeletion({ userIds: ['gone', 'undefined'], sourceIds: [sourceId], suppress: false })
    await untilPurged(id, 2)
    await accept(store(), sourceId, [of('gone', 'p-7')])
    const left = async (of: string): Promise<unknown[]> => {
      const all = await allPages((page) => store().control.messages({ sourceId: of }, page), 3)
      return all.map(({ content, index }) => content.items[index]?.['messageId']).filter((messageId) => messageId !== undefined)
    }
    assert.deepEqual(await left(sourceId), ['p-7', 'p-6', 'p-5', 'p-4', 'p-3', 'p-1'], 'what comes later is not purged')
    assert.deepEqual(await left(other), ['o-0'])
    assert.equal(await store().control.message('p-0'), undefined)
    assert.deepEqual((await store().control.messages({ userId: 'gone', sourceId }, { limit: 10, cursor: null })).data.length, 2, 'p-3, p-7')
    assert.deepEqual((await accept(store(), sourceId, [of('gone', 'p-0')])).duplicates, [0], 'a late retry is still a duplicate')
    await reopen()
    assert.deepEqual((await accept(store(), sourceId, [of('gone', 'p-0')])).duplicates, [0], 'also after a start')
  })

  test('purged messages that are still owed come without their content, and the books still add up', async () => {
    const { sourceId, destinationId } = await newWay(store())
    await accept(store(), sourceId, [track('x', { userId: 'gone' }), track('y'), track('x')], [destinationId])
    const taker = new RecordingTaker()
    store().delivery.attach(taker)
    const { segment } = await accept(store(), sourceId, [track('z'), track('w', { userId: 'gone' })], [destinationId])
    const { id } = await store().control.createDeletion({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await untilPurged(id, 2)
    assert.ok(
      taker.purges.some(([of, indexes]) => of === segment && indexes.join() === '1'),
      'whoever holds it is told',
    )
    const [first] = (await claim(store(), destinationId, { maxFresh: 1 })).shipments
    assert.ok(first !== undefined)
    assert.deepEqual(messageIdsOf(first), [null, 'y'])
    const pending = (await store().control.deliveries({ destinationId, state: 'pending' }, { limit: 10, cursor: null })).data
    const { pending: owed } = await ledgerOf(store(), destinationId)
    assert.deepEqual([pending.length, owed], [5, 5], 'four messages and the delete message are owed and listed')
    assert.deepEqual(pending.filter(({ messageId }) => messageId === null).length, 3)
    await settle(store(), first, (delivery) => (delivery.endsWith('-0') ? 'cancelled' : 'delivered'), { reason: 'message_deleted' })
    const shown = await store().control.delivery(deliveriesOf(first.shipment)[0] as string)
    assert.deepEqual([shown?.state, shown?.reason, shown?.content], ['cancelled', 'message_deleted', null])
    assert.deepEqual(await store().control.replay(deliveriesOf(first.shipment)[0] as string), { ok: false, reason: 'message_gone' })
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, pending: 3, delivered: 1, cancelled: 1 }))
  })

  test('a purge goes on after the store was closed in the middle', async () => {
    const { id: sourceId } = await newSource(store())
    await Promise.all(
      Array.from({ length: 600 }, (_, at) => accept(store(), sourceId, [track(`m-${at}`, { userId: at % 2 ? 'gone' : 'stays' })])),
    )
    const { id } = await store().control.createDeletion({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await reopen()
    const { purged } = await until(
      () => detail(store(), id),
      ({ state }) => state === 'finished',
      'finished',
    )
    assert.equal(purged, 300)
    const { data } = await store().control.messages({ sourceId, userId: 'gone' }, { limit: 10, cursor: null })
    assert.deepEqual(data, [])
  })

  test('what was purged cannot be read from what is stored', async () => {
    const other = await open({ retentionDays: 7 })
    const { id: sourceId } = await newSource(other.store)
    for (const size of [10, 3_000, 30_000]) {
      const secret = { userId: 'gone', properties: { filler: 'x'.repeat(size), secret: `PURGED-${size}` } }
      const items = [track(`gone-${size}`, secret), track(`stays-${size}`, { properties: { plain: `STAYS-${size}` } })]
      await accept(other.store, sourceId, items)
    }
    const { id } = await other.store.control.createDeletion({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await until(
      () => detail(other.store, id),
      ({ state }) => state === 'finished',
      'finished',
    )
    const bytes = await other.closeAndRead()
    for (const size of [10, 3_000, 30_000]) {
      assert.ok(bytes.includes(`STAYS-${size}`))
      assert.ok(!bytes.includes(`PURGED-${size}`), `${size} bytes`)
    }
    await other.dispose()
  })

  test('users are suppressed by source until that is taken back', async () => {
    const [{ id: one }, { id: other }] = [await newSource(store()), await newSource(store())]
    const before = Date.now()
    await store().control.createDeletion({ userIds: ['s1', 's2', 's\0\u00e9'], sourceIds: [one, other], suppress: true })
    await store().control.createDeletion({ userIds: ['not'], sourceIds: [one], suppress: false })
    await store().control.createDeletion({ userIds: ['s1'], sourceIds: [one], suppress: true })
    const suppressed = (sourceId: string): string[] => [...(store().configuration().suppressions.get(sourceId) ?? [])].sort()
    assert.deepEqual(suppressed(one), ['s1', 's2', 's\0\u00e9'].sort())
    await reopen()
    assert.deepEqual(suppressed(one), ['s1', 's2', 's\0\u00e9'].sort())
    for (const limit of [1, 2, 7]) {
      const all = await allPages((page) => store().control.suppressions(page), limit)
      const own = all.filter(({ sourceId }) => sourceId === one || sourceId === other)
      assert.equal(own.length, 6)
      assert.equal(new Set(own.map((each) => `${each.sourceId} ${each.userId}`)).size, 6)
      assert.ok(own.every(({ since }) => since >= before - 1))
    }
    assert.equal(await store().control.deleteSuppression('s1', one), 1)
    assert.equal(await store().control.deleteSuppression('s1', one), 0)
    assert.equal(await store().control.deleteSuppression('s2', null), 2)
    assert.equal(await store().control.deleteSuppression('s2', 'src_unknown'), 0)
    assert.deepEqual([suppressed(one), suppressed(other)], [['s\0\u00e9'], ['s1', 's\0\u00e9'].sort()])
  })

  for (const limit of [1, 2, 7]) {
    test(`every deletion is on one page of ${limit}, newest first, also while new ones arrive`, async () => {
      const { id: sourceId } = await newSource(store())
      const request = (): Promise<DeletionDetail> =>
        store().control.createDeletion({ userIds: ['u'], sourceIds: [sourceId], suppress: false })
      const made: string[] = []
      for (let at = 0; at < 9; at++) made.unshift((await request()).id)
      const arrivals = { left: 3 }
      const listed = await allPages(
        (page) => store().control.deletions(page),
        limit,
        async () => {
          if (arrivals.left-- > 0) await request()
        },
      )
      assert.deepEqual(
        listed.filter(({ id }) => made.includes(id)).map(({ id }) => id),
        made,
      )
      assert.equal(new Set(listed.map(({ id }) => id)).size, listed.length)
    })
  }

  test('a deletion of 5,000 users is one change', async () => {
    const { sourceId, destinationId } = await newWay(store())
    const userIds = Array.from({ length: 5_000 }, (_, at) => `user-${at}`)
    await accept(
      store(),
      sourceId,
      userIds.slice(0, 2_500).map((userId) => track(userId, { userId })),
      [destinationId],
    )
    const { id, targets } = await store().control.createDeletion({ userIds, sourceIds: [sourceId], suppress: false })
    assert.equal(targets.length, 5_000)
    await untilPurged(id, 2_500)
    const { shipments } = await claim(store(), destinationId)
    assert.equal(shipments.length, 5_001)
    await Promise.all(
      shipments.map(({ shipment }) =>
        store().delivery.settle(settlementOf([shipment], shipment.parts[0]?.indexes.length === 1 ? 'delivered' : 'cancelled')),
      ),
    )
    assert.equal((await detail(store(), id)).state, 'finished')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 7_500, delivered: 5_000, cancelled: 2_500 }))
  })

  test('a deletion that is not there is not found, and one for an unknown source is refused', async () => {
    assert.equal(await store().control.deletion('del_unknown'), undefined)
    await assert.rejects(store().control.createDeletion({ userIds: ['u'], sourceIds: ['src_unknown'], suppress: true }))
    const { data } = await store().control.suppressions({ limit: 1_000, cursor: null })
    assert.ok(!data.some(({ sourceId }) => sourceId === 'src_unknown'))
    await accept(store(), (await newSource(store())).id, tracks(1))
  })
}
