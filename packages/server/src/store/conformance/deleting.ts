// Conformance: deletion requests, their delete messages and their state. Their purges are in purging.ts.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { DeletionDetail, DeletionState, DeletionTarget, Store } from '../store.ts'
import { detail, untilPurged, type WithTargets } from './deletion-fixtures.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  counts,
  DAY_MS,
  ledgerOf,
  NOW_MS,
  newDestination,
  newSource,
  newSourceAndDestination,
  RecordingConsumer,
  type StoreFixture,
  settle,
  settlementOf,
  track,
  tracks,
  until,
} from './fixtures.ts'

export function deleting({ store, reopen, open }: StoreFixture): void {
  const states = ({ targets }: WithTargets): string[] =>
    targets.map(({ userId, destinationId, state }) => `${userId} ${destinationId} ${state}`).sort()

  test('there is one delete message for each user, source and enabled destination, alone in its shipment', async () => {
    const { sourceId, destinationId: one } = await newSourceAndDestination(store())
    // A paused destination gets the delete message like the others, when it is resumed.
    const { id: two } = await newDestination(store(), sourceId, { paused: true })
    const { id: off } = await newDestination(store(), sourceId, { enabled: false })
    const { sourceId: otherSource, destinationId: otherDestination } = await newSourceAndDestination(store())
    const { id: bare } = await newSource(store())
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    const sourceIds = [sourceId, otherSource, bare, sourceId]
    const { id } = await store().deletions.create({ userIds: ['u1', 'u2', 'u1'], sourceIds, suppress: false })
    const deletion = await detail(store(), id)
    assert.deepEqual([deletion.userCount, deletion.suppress, [...deletion.sourceIds]], [2, false, [sourceId, otherSource, bare]])
    assert.deepEqual(
      states(deletion).map((state) => state.replace(/finished|running/, 'purging')),
      [
        ...['u1', 'u2'].flatMap((user) => [one, two, otherDestination].map((id) => `${user} ${id} pending`)),
        ...['u1', 'u2'].map((user) => `${user} null purging`),
      ].sort(),
    )
    // Other destinations may be woken too, if a node was delayed for longer than its lease.
    await until(
      async () => consumer.woken,
      (woken) => [one, two, otherDestination].every((each) => woken.includes(each)),
      'the destinations are woken',
    )
    assert.deepEqual(await ledgerOf(store(), off), counts())
    const { shipments } = await claim(store(), one)
    const items = shipments.map(({ shipment, bodies }) => {
      const [part] = shipment.parts
      assert.ok(part !== undefined && shipment.parts.length === 1)
      return bodies.get(part.segment)?.content.items[part.indexes[0] as number]
    })
    assert.deepEqual(
      items.map((item) => [Object.keys(item ?? {}).sort(), item?.['type'], item?.['userId']]),
      ['u1', 'u2'].map((userId) => [['timestamp', 'type', 'userId'], 'delete', userId]),
    )
    assert.deepEqual(await ledgerOf(store(), one), counts({ owed: 2, pending: 2 }))
  })

  test('a deletion without sources is for all sources', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id, sourceIds } = await store().deletions.create({ userIds: ['all over'], sourceIds: null, suppress: false })
    const { targets } = await detail(store(), id)
    assert.deepEqual([...sourceIds].sort(), [...store().configuration().sources.keys()].sort())
    assert.ok(targets.some((target) => target.sourceId === sourceId && target.destinationId === destinationId))
  })

  test('a deletion without sources also purges messages of sources that were deleted since; one with sources does not', async () => {
    const gone = await newSource(store())
    const { id: left } = await newSource(store())
    await accept(store(), gone.id, [track('of-a-deleted-source', { userId: 'still there' })])
    assert.equal(await store().resources.deleteSource(gone.id), true)
    const found = async (): Promise<number> => {
      const { data } = await store().history.messages({ userId: 'still there' }, { limit: 10, cursor: null })
      return data.filter(({ content }) => content.items.some((item) => item?.['type'] === 'track')).length
    }
    const some = await store().deletions.create({ userIds: ['still there'], sourceIds: [left], suppress: false })
    await until(
      () => detail(store(), some.id),
      ({ state }) => state === 'finished',
      'the first deletion has ended',
    )
    assert.equal(await found(), 1)
    const all = await store().deletions.create({ userIds: ['still there'], sourceIds: null, suppress: false })
    await untilPurged(store(), all.id, 1)
    assert.equal(await found(), 0)
  })

  test('the status of a deletion follows its deliveries and its purge', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id } = await store().deletions.create({ userIds: ['a', 'b', 'c'], sourceIds: [sourceId], suppress: false })
    const isPurged = (): Promise<WithTargets> =>
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
      const delivery = await store().history.delivery(target.deliveryId as string)
      assert.equal(delivery?.content?.items[0]?.['userId'], target.userId)
    }
    await settle(store(), await claimOne(store(), destinationId, { nowMs: NOW_MS * 2 }), 'delivered')
    await settle(store(), c, 'failed')
    await reopen()
    const end = await detail(store(), id)
    assert.deepEqual([end.state, ...states(end).map((state) => state.split(' ').at(-1))], ['failed', 'finished', 'finished', 'failed'])
    assert.deepEqual(end.targetCounts, { pending: 0, running: 0, finished: 2, failed: 1 })
    const [summary] = (await store().deletions.list({}, { limit: 1, cursor: null })).data
    const { targets: _, targetCounts: __, firstTargets: ___, ...expected } = end
    assert.deepEqual(summary, expected)
  })

  test('delivery is notified of a deletion before its delete message can be claimed', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const told: string[] = []
    const consumer = new RecordingConsumer()
    consumer.dropMessages = () => void told.push('deleted')
    store().delivery.attach(consumer)
    await accept(store(), sourceId, [track('w-0'), track('w-1', { userId: 'gone' })], [destinationId])
    assert.equal(consumer.received.length, 1)
    // Claims continuously, without being woken.
    const claiming = until(
      () => claim(store(), destinationId),
      ({ shipments }) => shipments.length > 0,
      'the delete message is claimed',
    ).then(() => told.push('claimed'))
    await store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await claiming
    assert.deepEqual(told, ['deleted', 'claimed'])
    store().delivery.attach(new RecordingConsumer())
  })

  test('users with ids as long as a message may be are deleted and suppressed like any other', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    // They cannot be compressed, and have a common prefix longer than any index entry.
    const common = randomBytes(15_000).toString('base64')
    const userIds = [...['a', 'b', 'c'].map((end) => common + randomBytes(9_000).toString('base64') + end), 'short']
    await accept(
      store(),
      sourceId,
      userIds.map((userId, at) => track(`long-${at}`, { userId })),
    )
    const { id } = await store().deletions.create({ userIds, sourceIds: [sourceId], suppress: false })
    await untilPurged(store(), id, userIds.length)
    assert.equal(await store().deletions.suppress({ userIds, sourceIds: [sourceId] }), userIds.length)
    const page = { limit: 10, cursor: null }
    for (const userId of userIds) {
      assert.deepEqual(
        (await store().deletions.targets(id, { userId }, page)).data.map((target) => [target.userId, target.destinationId]),
        [[userId, destinationId]],
      )
      assert.equal((await store().deletions.suppressions({ userId }, page)).data.length, 1)
    }
    assert.equal(await store().deletions.suppress({ userIds, sourceIds: [sourceId] }), 0, 'they are already suppressed')
    for (const limit of [1, 3, 10]) {
      const listed = await allPages((each) => store().deletions.suppressions({ sourceId }, each), limit)
      assert.deepEqual(listed.map(({ userId }) => userId).sort(), [...userIds].sort())
    }
    for (const claimed of (await claim(store(), destinationId)).shipments) await settle(store(), claimed, 'delivered')
    await until(
      () => detail(store(), id),
      ({ state }) => state === 'finished',
      'the request is finished',
    )
    for (const userId of userIds) assert.equal(await store().deletions.unsuppress(userId, null), 1)
    assert.equal(store().configuration().suppressions.get(sourceId)?.size ?? 0, 0)
  })

  for (const limit of [1, 2, 7]) {
    test(`with ${limit} per page, every deletion is on exactly one page, newest first, also while new ones arrive`, async () => {
      const { id: sourceId } = await newSource(store())
      const request = (): Promise<DeletionDetail> => store().deletions.create({ userIds: ['u'], sourceIds: [sourceId], suppress: false })
      const made: string[] = []
      for (let at = 0; at < 9; at++) made.unshift((await request()).id)
      const arrivals = { left: 3 }
      const listed = await allPages(
        (page) => store().deletions.list({}, page),
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
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const userIds = Array.from({ length: 5_000 }, (_, at) => `user-${at}`)
    await accept(
      store(),
      sourceId,
      userIds.slice(0, 2_500).map((userId) => track(userId, { userId })),
      [destinationId],
    )
    const { id } = await store().deletions.create({ userIds, sourceIds: [sourceId], suppress: false })
    assert.equal((await untilPurged(store(), id, 2_500)).targets.length, 5_000)
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

  test('targets are listed by state and user, on pages of any size, and counted', async () => {
    const { sourceId, destinationId: one } = await newSourceAndDestination(store())
    const { id: two } = await newDestination(store(), sourceId)
    const { id: quiet } = await newSource(store())
    const userIds = ['t-1', 't-2', 't-3']
    const { id } = await store().deletions.create({ userIds, sourceIds: [sourceId, quiet], suppress: false })
    await until(
      () => detail(store(), id),
      ({ targetCounts }) => targetCounts.finished === 3,
      'purged',
    )
    const { shipments } = await claim(store(), one)
    for (const [at, claimed] of shipments.entries())
      await settle(store(), claimed, (['delivered', 'failed', 'retry'] as const)[at] as 'failed')
    const name = ({ userId, destinationId, state }: DeletionTarget): string => `${userId} ${destinationId} ${state}`
    const ends: DeletionState[] = ['finished', 'failed', 'running']
    const expected = userIds.flatMap((userId, at) => [
      `${userId} ${one} ${ends[at]}`,
      `${userId} ${two} pending`,
      `${userId} null finished`,
    ])
    for (const limit of [1, 2, 4, 100]) {
      const list = async (filter: Parameters<Store['deletions']['targets']>[1]): Promise<string[]> =>
        (await allPages((page) => store().deletions.targets(id, filter, page), limit)).map(name)
      assert.deepEqual(await list({}), expected, 'in the order of the request')
      assert.deepEqual(await list({ userId: 't-2' }), expected.slice(3, 6))
      assert.deepEqual(await list({ userId: 't-3', state: 'running' }), [`t-3 ${one} running`])
      assert.deepEqual(
        await list({ state: 'pending' }),
        expected.filter((text) => text.endsWith('pending')),
      )
      assert.deepEqual(await list({ userId: 'nobody' }), [])
    }
    const { targetCounts, state } = await detail(store(), id)
    assert.deepEqual([targetCounts, state], [{ pending: 3, running: 1, finished: 4, failed: 1 }, 'running'])
  })

  test('deletions are listed by state and user', async () => {
    const other = await open({ retentionDays: 7 })
    const { deletions } = other.store
    const { sourceId } = await newSourceAndDestination(other.store)
    const { id: quiet } = await newSource(other.store)
    const pending = await deletions.create({ userIds: ['a', 'b'], sourceIds: [sourceId], suppress: false })
    const finished = await deletions.create({ userIds: ['b', 'c'], sourceIds: [quiet], suppress: false })
    const list = async (filter: Parameters<typeof deletions.list>[0]): Promise<string[]> =>
      (await allPages((page) => deletions.list(filter, page), 1)).map(({ id }) => id)
    await until(
      async () => [await list({ state: 'pending' }), await list({ state: 'finished' })],
      (lists) => lists.every(({ length }) => length === 1),
      'purged',
    )
    assert.deepEqual(await list({ state: 'pending' }), [pending.id])
    assert.deepEqual(await list({ state: 'finished' }), [finished.id])
    assert.deepEqual(await list({ state: 'failed' }), [])
    assert.deepEqual(await list({ userId: 'b' }), [finished.id, pending.id])
    assert.deepEqual(await list({ userId: 'b', state: 'pending' }), [pending.id])
    assert.deepEqual(await list({ userId: 'B' }), [])
    await other.dispose()
  })

  test('user ids of a deletion that ended before the retention time are replaced by pseudonyms, and are still found by id', async () => {
    const other = await open({ retentionDays: 7 })
    const { deletions } = other.store
    const { sourceId, destinationId } = await newSourceAndDestination(other.store)
    const { id: quiet } = await newSource(other.store)
    const request = { userIds: ['FORGOTTEN-1', 'FORGOTTEN-2'], sourceIds: [sourceId, quiet], suppress: false }
    const { id } = await deletions.create(request)
    const { id: open1 } = await deletions.create({ userIds: ['STAYS-1'], sourceIds: [sourceId], suppress: false })
    await until(
      () => detail(other.store, id),
      ({ targetCounts }) => targetCounts.finished === 2,
      'purged',
    )
    for (const claimed of (await claim(other.store, destinationId, { maxFresh: 2 })).shipments)
      await settle(other.store, claimed, 'delivered')
    await other.store.dropExpired(Date.now())
    const before = await detail(other.store, id)
    assert.deepEqual(
      [before.state, new Set(before.targets.map(({ userId }) => userId))],
      ['finished', new Set(request.userIds)],
      'not at once',
    )
    await other.store.dropExpired(Date.now() + 30 * DAY_MS)
    const ended = await detail(other.store, id)
    const pseudonyms = await Promise.all(request.userIds.map((userId) => deletions.pseudonym(userId)))
    assert.deepEqual(
      ended.targets,
      before.targets.map((target) => ({ ...target, userId: pseudonyms[request.userIds.indexOf(target.userId)] })),
    )
    assert.deepEqual({ ...ended, targets: [], firstTargets: null }, { ...before, targets: [], firstTargets: null })
    const page = { limit: 10, cursor: null }
    assert.deepEqual(
      (await deletions.list({ userId: 'FORGOTTEN-2' }, page)).data.map((deletion) => deletion.id),
      [id],
    )
    assert.equal((await deletions.targets(id, { userId: 'FORGOTTEN-2' }, page)).data.length, 2)
    assert.deepEqual(
      (await detail(other.store, open1)).targets.map(({ userId }) => userId),
      ['STAYS-1'],
      'it has not ended',
    )
    const again = await other.reopen()
    assert.equal(await again.deletions.pseudonym('FORGOTTEN-2'), pseudonyms[1])
    assert.notEqual(pseudonyms[0], pseudonyms[1])
    const bytes = await other.closeAndRead()
    assert.ok(bytes.includes('STAYS-1'))
    assert.ok(!bytes.includes('FORGOTTEN-'))
    await other.dispose()
  })

  test('replaying a delete message that failed completes its request', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id } = await store().deletions.create({ userIds: ['r-1', 'r-2'], sourceIds: [sourceId], suppress: false })
    const settleAs = async (fates: readonly ('delivered' | 'failed')[]): Promise<void> => {
      const { shipments } = await claim(store(), destinationId)
      assert.equal(shipments.length, fates.length)
      for (const [at, claimed] of shipments.entries()) await settle(store(), claimed, fates[at] as 'failed')
    }
    const ended = (state: DeletionState): Promise<WithTargets> =>
      until(
        () => detail(store(), id),
        (deletion) => deletion.state === state,
        state,
      )
    await settleAs(['delivered', 'failed'])
    const [good, bad] = (await ended('failed')).targets as [DeletionTarget, DeletionTarget]
    await store().dropExpired(Date.now())
    const again = await store().replays.replay(bad.deliveryId as string)
    assert.ok(again.ok)
    const open = await detail(store(), id)
    assert.deepEqual([open.state, open.targets[1]?.state, open.targets[1]?.deliveryId], ['running', 'pending', again.deliveryId])
    await settleAs(['failed'])
    await ended('failed')
    assert.ok((await store().replays.replay(again.deliveryId)).ok)
    await settleAs(['delivered'])
    await ended('finished')
    assert.ok((await store().replays.replay(good.deliveryId as string)).ok)
    const sentAgain = await detail(store(), id)
    assert.deepEqual([sentAgain.state, sentAgain.targets[0]], ['finished', good], 'one that was delivered stays delivered')
  })

  test('if a failed delete message is replayed several times, the last replay decides the state', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id } = await store().deletions.create({ userIds: ['r-3'], sourceIds: [sourceId], suppress: false })
    const settleAs = async (fate: 'delivered' | 'failed'): Promise<void> => settle(store(), await claimOne(store(), destinationId), fate)
    await settleAs('failed')
    const { deliveryId } = (await detail(store(), id)).targets[0] as DeletionTarget
    for (const fate of ['failed', 'delivered'] as const) {
      assert.ok((await store().replays.replay(deliveryId as string)).ok)
      await settleAs(fate)
    }
    const after = await until(
      () => detail(store(), id),
      ({ state }) => state !== 'running',
      'over',
    )
    assert.equal(after.state, 'finished')
  })

  test('a deletion that does not exist is not found, and one for an unknown source is rejected', async () => {
    assert.equal(await store().deletions.one('del_unknown'), undefined)
    await assert.rejects(store().deletions.create({ userIds: ['u'], sourceIds: ['src_unknown'], suppress: true }))
    assert.deepEqual(await store().deletions.targets('del_unknown', {}, { limit: 1, cursor: null }), { data: [], next: null })
    const { data } = await store().deletions.suppressions({}, { limit: 1_000, cursor: null })
    assert.ok(!data.some(({ sourceId }) => sourceId === 'src_unknown'))
    await accept(store(), (await newSource(store())).id, tracks(1))
  })
}
