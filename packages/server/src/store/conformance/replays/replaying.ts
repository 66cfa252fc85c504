// Conformance: replay jobs. A step is all or nothing, so these properties of a job hold wherever it is interrupted: each of its deliveries is replayed
// once or skipped for a reason, no message is pending twice for a destination, and the ledger equals its recount.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { DeliveryRow, FinalStateName } from '../../store.ts'
import {
  accept,
  claim,
  counts,
  DAY_MS,
  ledgerOf,
  messageIdsOf,
  newDestination,
  newSource,
  newSourceAndDestination,
  quietMoment,
  RecordingConsumer,
  type StoreFixture,
  settle,
  settleAll,
  track,
  tracks,
  until,
} from '../fixtures.ts'
import {
  createJob,
  doneOf,
  ended,
  finish,
  listed,
  matching,
  OPERATOR,
  pendingMessages,
  replayAll,
  step,
  testsWithStore,
} from './replay-fixtures.ts'

export function replaying({ store, open }: StoreFixture): void {
  const withStore = testsWithStore(open)

  // ── Which deliveries are replayed ──

  for (const together of [true, false]) {
    const how = together ? 'accepted together' : 'accepted apart'
    test(`everything that failed is replayed once, as new deliveries: ${how}`, async () => {
      const { destinationId } = await ended(store(), 'failed', 7, { together })
      const before = await listed(store(), destinationId, 'failed')
      const consumer = new RecordingConsumer()
      store().delivery.attach(consumer)
      const job = await createJob(store(), matching({ destinationId }))
      assert.deepEqual(job, {
        id: job.id,
        selection: matching({ destinationId }),
        ratePerSecond: null,
        createdBy: OPERATOR,
        archive: null,
        state: 'running',
        total: 7,
        replayed: 0,
        skipped: {},
        ended: { delivered: 0, failed: 0, expired: 0, cancelled: 0 },
        position: 0,
        createdAtMs: job.createdAtMs,
        finishedAtMs: null,
      })
      assert.deepEqual(await store().replays.one(job.id), job)
      assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 7, failed: 7 }), 'creating a job replays nothing')

      const done = await finish(store(), job)
      assert.deepEqual([done.total, done.replayed, done.skipped], [7, 7, {}])
      assert.ok(done.finishedAtMs !== null && done.finishedAtMs >= done.createdAtMs)
      assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 14, failed: 7, pending: 7 }))
      assert.ok(consumer.woken.includes(destinationId))

      const pending = await listed(store(), destinationId, 'pending')
      assert.deepEqual(new Set(pending.map(({ replayOf }) => replayOf)), new Set(before.map(({ id }) => id)))
      const names = new Map(before.map(({ id, messageId }) => [id, messageId]))
      for (const { id, replay, replayOf, replayJobId, messageId, replayedBy } of pending) {
        assert.deepEqual([replay, replayJobId, replayedBy], [true, job.id, null])
        assert.equal(messageId, names.get(replayOf as string), 'the same message')
        const detail = await store().history.delivery(id)
        assert.deepEqual([detail?.replayOf, detail?.replayJobId, detail?.state], [replayOf, job.id, 'pending'])
        assert.equal((await store().history.delivery(replayOf as string))?.replayedBy, id)
      }
      assert.equal(new Set(pending.map(({ id }) => id)).size, 7)

      const { shipments } = await claim(store(), destinationId)
      assert.equal(shipments.length, together ? 1 : 7, 'messages of one segment are sent together')
      assert.ok(shipments.every(({ shipment }) => shipment.replay && shipment.attempt === 0))
      assert.deepEqual(new Set(shipments.flatMap(messageIdsOf)), new Set(names.values()))
      for (const claimed of shipments) await settle(store(), claimed, 'delivered')
      assert.deepEqual((await store().replays.one(job.id))?.ended, { delivered: 7, failed: 0, expired: 0, cancelled: 0 })
      assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 14, failed: 7, delivered: 7 }))
    })
  }

  test('a job replays only deliveries that match its destination, states, reason and time range', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: other } = await newDestination(store(), sourceId)
    const end = async (name: string, state: FinalStateName, reason: string, to = destinationId): Promise<void> => {
      await accept(store(), sourceId, [track(name)], [to])
      await settleAll(store(), to, state, { reason })
    }
    await end('early', 'failed', 'http_404')
    const fromMs = await quietMoment()
    await end('404', 'failed', 'http_404')
    await end('400', 'failed', 'http_400')
    await end('expired', 'expired', 'http_500')
    await end('cancelled', 'cancelled', 'message_deleted')
    await end('delivered', 'delivered', 'none')
    await end('elsewhere', 'failed', 'http_404', other)
    const toMs = await quietMoment()
    await end('late', 'expired', 'http_500')

    const replayedBy = async (change: Parameters<typeof matching>[0]): Promise<(string | null)[]> => {
      const selection = matching({ destinationId, ...change })
      const { total, byDestination } = await store().replays.count(selection)
      const job = await replayAll(store(), selection)
      assert.deepEqual([job.total, job.replayed], [total, total])
      assert.deepEqual(byDestination, total === 0 ? [] : [{ destinationId: selection.destinationId, total, alreadyReplayed: 0 }])
      const messages = await pendingMessages(store(), selection.destinationId as string)
      // Cancelled, so that they are neither pending nor delivered when the next job is created.
      await settleAll(store(), selection.destinationId as string, 'cancelled', { reason: 'tidied' })
      return messages.sort((a, b) => String(a).localeCompare(String(b)))
    }
    assert.deepEqual(await replayedBy({ fromMs, toMs }), ['400', '404', 'expired'])
    assert.deepEqual(await replayedBy({ states: ['expired'] }), ['expired', 'late'])
    assert.deepEqual(await replayedBy({ states: ['failed'], toMs: fromMs - 1 }), ['early'])
    assert.deepEqual(await replayedBy({ reason: 'http_400' }), ['400'])
    assert.deepEqual(await replayedBy({ states: ['delivered'] }), ['delivered'])
    assert.deepEqual(await replayedBy({ states: ['delivered'], reason: 'http_400' }), [])
    assert.deepEqual(await replayedBy({ states: ['cancelled'], reason: 'message_deleted' }), ['cancelled'])
    assert.deepEqual(await replayedBy({ destinationId: other }), ['elsewhere'])
    assert.deepEqual(await replayedBy({ fromMs: Date.now() + DAY_MS }), [])
  })

  withStore('of every destination at once, turn by turn', async ({ store: own }) => {
    const ways = [await ended(own, 'failed', 5), await ended(own, 'expired', 3), await ended(own, 'delivered', 2)]
    const { total, byDestination } = await own.replays.count(matching())
    assert.equal(total, 8)
    assert.deepEqual(
      byDestination.map((of) => [of.destinationId, of.total]),
      [
        [ways[0]?.destinationId, 5],
        [ways[1]?.destinationId, 3],
      ],
    )
    const job = await createJob(own, matching())
    for (let at = 0; at < 2; at++) assert.ok((await step(own, job, 2)).ok)
    const pending = async (): Promise<number[]> =>
      Promise.all(ways.map(async ({ destinationId }) => (await ledgerOf(own, destinationId)).pending))
    assert.deepEqual(await pending(), [2, 2, 0], 'each destination has its turn')
    assert.equal((await finish(own, job, 2)).replayed, 8)
    assert.deepEqual(await pending(), [5, 3, 0])
  })

  test('deliveries that fail after the job was created are not part of it, including its own replays', async () => {
    const { sourceId, destinationId } = await ended(store(), 'failed', 4)
    const job = await createJob(store(), matching({ destinationId }))
    await accept(store(), sourceId, tracks(3), [destinationId])
    await settleAll(store(), destinationId, 'failed')
    for (let done = 0; done < 4; done += 2) {
      const result = await step(store(), job, 2)
      assert.ok(result.ok && result.replayed === 2)
      await settleAll(store(), destinationId, 'failed')
    }
    const done = await finish(store(), job)
    assert.deepEqual([done.total, done.replayed, done.ended.failed], [4, 4, 4])
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 11, failed: 11 }))
  })

  test('deliveries selected by id are replayed in their order; those that cannot be replayed are counted by reason', async () => {
    const { sourceId, destinationId } = await ended(store(), 'failed', 3)
    const names = (await listed(store(), destinationId)).map(({ id }) => id)
    await accept(store(), sourceId, [track('pending-now')], [destinationId])
    const pending = (await listed(store(), destinationId, 'pending'))[0]?.id as string
    const deliveryIds = [names[2] as string, 'no-such', pending, '1-0', names[0] as string, `${pending.split('-')[0]}-7`]
    const counted = await store().replays.count({ deliveryIds })
    assert.equal(counted.total, 6)
    assert.deepEqual(counted.byDestination, [{ destinationId, total: 3, alreadyReplayed: 0 }])
    const job = await createJob(store(), { deliveryIds })
    assert.equal(job.total, 6)
    const done = await finish(store(), job, 1)
    assert.deepEqual(done.skipped, { not_found: 3, still_pending: 1 })
    assert.equal(done.replayed, 2)
    const replays = (await listed(store(), destinationId, 'pending')).filter(({ replay }) => replay)
    assert.deepEqual(
      replays.map(({ replayOf }) => replayOf),
      [names[2], names[0]],
    )
    const again = await replayAll(store(), { deliveryIds })
    assert.deepEqual([again.replayed, again.skipped], [0, { not_found: 3, still_pending: 1, already_replayed: 2 }])
  })

  // ── Which deliveries are skipped ──

  test('running the same job twice sends nothing twice, whether the first replays are pending or delivered', async () => {
    const { destinationId } = await ended(store(), 'failed', 5, { together: true })
    await replayAll(store(), matching({ destinationId }))
    for (const fate of ['retry', 'delivered'] as const) {
      const { alreadyReplayed, total } = await store().replays.count(matching({ destinationId }))
      assert.deepEqual([total, alreadyReplayed], [5, 5])
      const again = await replayAll(store(), matching({ destinationId }))
      assert.deepEqual([again.replayed, again.skipped], [0, { already_replayed: 5 }])
      await settleAll(store(), destinationId, fate, { dueAtMs: 1 })
    }
    await settleAll(store(), destinationId, 'delivered')
    const third = await replayAll(store(), matching({ destinationId }))
    assert.deepEqual(third.skipped, { already_replayed: 5 })
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 10, failed: 5, delivered: 5 }))
  })

  test('if a replay has failed, the newest delivery is repeated, and the message is sent once', async () => {
    const { destinationId } = await ended(store(), 'failed', 3)
    await replayAll(store(), matching({ destinationId }))
    const second = (await listed(store(), destinationId, 'pending')).map(({ id }) => id)
    await settleAll(store(), destinationId, 'failed')
    const { total, alreadyReplayed } = await store().replays.count(matching({ destinationId }))
    assert.deepEqual([total, alreadyReplayed], [6, 3], 'as counted before the job is created')
    const job = await replayAll(store(), matching({ destinationId }))
    assert.deepEqual([job.total, job.replayed, job.skipped], [6, 3, { already_replayed: 3 }])
    const third = await listed(store(), destinationId, 'pending')
    assert.deepEqual(new Set(third.map(({ replayOf }) => replayOf)), new Set(second))
    assert.equal(new Set(third.map(({ messageId }) => messageId)).size, 3)
  })

  test('a message that fails again while the job runs is not replayed again by it', async () => {
    const { destinationId } = await ended(store(), 'failed', 1)
    const [original] = await listed(store(), destinationId)
    assert.ok((await store().replays.replay((original as DeliveryRow).id)).ok)
    await settleAll(store(), destinationId, 'failed')
    const job = await createJob(store(), matching({ destinationId }))
    assert.ok((await step(store(), job, 1)).ok)
    await settleAll(store(), destinationId, 'failed')
    const done = await finish(store(), job)
    assert.deepEqual([done.total, done.replayed, done.skipped], [2, 1, { already_replayed: 1 }])
  })

  test('a job replays a message once, even if two manual replays of it failed', async () => {
    const { destinationId } = await ended(store(), 'failed', 1)
    const [original] = await listed(store(), destinationId)
    for (let times = 0; times < 2; times++) assert.ok((await store().replays.replay((original as DeliveryRow).id)).ok)
    await settleAll(store(), destinationId, 'failed')
    const job = await replayAll(store(), matching({ destinationId }))
    assert.deepEqual([job.total, job.replayed, job.skipped], [3, 1, { already_replayed: 2 }])
  })

  test('delivered deliveries can be replayed, and a second such job finds nothing new', async () => {
    const { destinationId } = await ended(store(), 'delivered', 600, { together: true })
    const selection = matching({ destinationId, states: ['delivered'] })
    const job = await createJob(store(), selection)
    assert.equal(job.total, 600)
    assert.equal((await finish(store(), job, 250)).replayed, 600)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 1_200, delivered: 600, pending: 600 }))
    await settleAll(store(), destinationId, 'delivered')
    assert.equal((await store().replays.count(selection)).alreadyReplayed, 600)
    const again = await replayAll(store(), selection)
    assert.deepEqual([again.total, again.replayed, again.skipped], [1_200, 0, { already_replayed: 1_200 }])
  })

  test('with includeReplayed, messages that were delivered again are sent once more, each once, and pending ones are not', async () => {
    const { destinationId } = await ended(store(), 'delivered', 30, { together: true })
    const [original] = await listed(store(), destinationId)
    const selection = matching({ destinationId, states: ['delivered'] })
    const all = { ...selection, includeReplayed: true }
    await replayAll(store(), selection)
    const pending = await replayAll(store(), all)
    assert.deepEqual([pending.total, pending.replayed, pending.skipped], [30, 0, { already_replayed: 30 }], 'they are pending')
    await settleAll(store(), destinationId, 'delivered')

    const { total, alreadyReplayed } = await store().replays.count(all)
    assert.deepEqual([total, alreadyReplayed], [60, 30])
    const job = await createJob(store(), all)
    const third = await finish(store(), job, 7)
    assert.deepEqual([third.total, third.replayed, third.skipped], [60, 30, { already_replayed: 30 }])
    assert.equal(new Set(await pendingMessages(store(), destinationId)).size, 30, 'each message once')
    await settleAll(store(), destinationId, 'delivered')
    assert.deepEqual((await store().replays.one(job.id))?.selection, all)

    const byId = { deliveryIds: [(original as DeliveryRow).id] }
    assert.equal((await replayAll(store(), byId)).replayed, 0)
    assert.equal((await replayAll(store(), { ...byId, includeReplayed: true })).replayed, 1)
    await settleAll(store(), destinationId, 'delivered')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 91, delivered: 91 }))
  })

  withStore(
    'with includeReplayed, failed deliveries that a replay has delivered are sent again, unless the message was deleted',
    async ({ store: own }) => {
      const { sourceId, destinationId } = await newSourceAndDestination(own)
      for (const userId of ['kept', 'gone']) await accept(own, sourceId, [{ ...track(userId), userId }], [destinationId])
      await settleAll(own, destinationId, 'failed')
      await replayAll(own, matching({ destinationId }))
      await settleAll(own, destinationId, 'delivered')
      const all = { ...matching({ destinationId }), includeReplayed: true }
      const again = await replayAll(own, all)
      assert.deepEqual([again.total, again.replayed, again.skipped], [2, 2, {}])
      await settleAll(own, destinationId, 'delivered')
      const deletion = await own.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
      await until(
        () => own.deletions.one(deletion.id),
        (is) => is?.purged === 1,
        'purged',
      )
      await settleAll(own, destinationId, 'delivered')
      const after = await replayAll(own, all)
      assert.deepEqual([after.replayed, after.skipped], [1, { message_gone: 1 }])
    },
  )

  withStore('a purged message is skipped, and so is all of a destination that is deleted meanwhile', async ({ store: own }) => {
    const { id: sourceId } = await newSource(own)
    const { id: destinationId } = await newDestination(own, sourceId)
    const items = [track('a', { userId: 'gone' }), track('b'), track('c', { userId: 'gone' }), track('d'), track('e')]
    await accept(own, sourceId, items, [destinationId])
    await settleAll(own, destinationId, 'failed')
    const job = await createJob(own, matching({ destinationId }))
    const deletion = await own.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await until(
      () => own.deletions.one(deletion.id),
      (is) => is?.purged === 2,
      'purged',
    )
    const first = await step(own, job, 1)
    assert.ok(first.ok)
    assert.deepEqual([first.replayed, first.job.skipped], [1, { message_gone: 1 }])
    await own.resources.deleteDestination(destinationId)
    const done = await finish(own, job)
    assert.deepEqual(done.skipped, { message_gone: 1, destination_gone: 3 })
    assert.equal(doneOf(done), done.total)
    await until(
      () => own.replays.one(job.id),
      (now) => now?.ended.cancelled === 1,
      'what it was owed is cancelled',
    )
    assert.equal((await ledgerOf(own, destinationId)).pending, 0)
  })

  withStore('retention takes away what a running job has not come to, and the job ends', async (opened) => {
    const { destinationId } = await ended(opened.store, 'failed', 9)
    const job = await createJob(opened.store, matching({ destinationId }))
    assert.ok((await step(opened.store, job, 2)).ok)
    await opened.store.dropExpired(Date.now() + 100 * DAY_MS)
    const done = await finish(opened.store, job)
    assert.deepEqual([done.total, done.replayed, done.skipped], [9, 2, { message_gone: 7 }])
    assert.deepEqual(await ledgerOf(opened.store, destinationId), counts({ owed: 11, failed: 9, pending: 2 }))
    await settleAll(opened.store, destinationId, 'delivered')
    await opened.store.dropExpired(Date.now() + 100 * DAY_MS)
    const reopened = await opened.reopen()
    assert.deepEqual(await ledgerOf(reopened, destinationId), counts({ owed: 11, failed: 9, delivered: 2 }))
    assert.equal((await reopened.replays.one(job.id))?.ended.delivered, 2)
  })

  withStore(
    'if messages may have been purged, a step replays as many messages of a large segment as of any other',
    async ({ store: other }) => {
      await other.deletions.create({ userIds: ['somebody else'], sourceIds: null, suppress: false })
      const { sourceId, destinationId } = await newSourceAndDestination(other)
      const large = tracks(300).map((item) => Object.assign(item, { properties: { text: randomBytes(1_000).toString('hex') } }))
      await accept(other, sourceId, large, [destinationId])
      await settleAll(other, destinationId, 'failed')
      const result = await step(other, await createJob(other, matching({ destinationId })))
      assert.ok(result.ok)
      assert.equal(result.replayed, 250)
    },
  )

  for (const how of ['named', 'delivered', 'delivered again'] as const) {
    test(`a step reads few attempts if they are large, and the next step continues after them: ${how}`, async () => {
      const { sourceId, destinationId } = await newSourceAndDestination(store())
      const request = { responseStart: 'x'.repeat(600_000) }
      for (const item of tracks(7)) await accept(store(), sourceId, [item], [destinationId])
      await settleAll(store(), destinationId, 'delivered', { request })
      const all = matching({ destinationId, states: ['delivered'] })
      if (how === 'delivered again') {
        await replayAll(store(), all)
        await settleAll(store(), destinationId, 'delivered')
      }
      const ids = (await listed(store(), destinationId, 'delivered')).map(({ id }) => id)
      const job = await createJob(store(), how === 'named' ? { deliveryIds: ids } : all)
      const first = await step(store(), job)
      assert.ok(first.ok && !first.blocked)
      assert.ok(doneOf(first.job) >= 1 && doneOf(first.job) < ids.length, `${doneOf(first.job)} in one step`)
      const { replayed, skipped } = await finish(store(), job)
      if (how === 'delivered again') assert.deepEqual([replayed, skipped], [0, { already_replayed: 14 }])
      else assert.deepEqual([replayed, skipped], [7, {}])
    })
  }
}
