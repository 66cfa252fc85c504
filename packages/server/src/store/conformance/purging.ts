// Conformance: the purge of a deletion request removes the messages of its users, wherever they are.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RowId, SegmentContent } from '../store.ts'
import { detail, untilPurged } from './deletion-fixtures.ts'
import {
  accept,
  allPages,
  claim,
  counts,
  deliveriesOf,
  ledgerOf,
  messageIdsOf,
  newSource,
  newSourceAndDestination,
  RecordingConsumer,
  type StoreFixture,
  settle,
  track,
  until,
} from './fixtures.ts'

export function purging({ store, reopen, open }: StoreFixture): void {
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
    const { id } = await store().deletions.create({ userIds: ['gone', 'undefined'], sourceIds: [sourceId], suppress: false })
    await untilPurged(store(), id, 2)
    await accept(store(), sourceId, [of('gone', 'p-7')])
    const left = async (of: string): Promise<unknown[]> => {
      const all = await allPages((page) => store().history.messages({ sourceId: of }, page), 3)
      return all.map(({ content, index }) => content.items[index]?.['messageId']).filter((messageId) => messageId !== undefined)
    }
    assert.deepEqual(await left(sourceId), ['p-7', 'p-6', 'p-5', 'p-4', 'p-3', 'p-1'], 'later messages are not purged')
    assert.deepEqual(await left(other), ['o-0'])
    assert.equal(await store().history.message('p-0'), undefined)
    assert.deepEqual((await store().history.messages({ userId: 'gone', sourceId }, { limit: 10, cursor: null })).data.length, 2, 'p-3, p-7')
    assert.deepEqual((await accept(store(), sourceId, [of('gone', 'p-0')])).duplicates, [0], 'a late retry is still a duplicate')
    await reopen()
    assert.deepEqual((await accept(store(), sourceId, [of('gone', 'p-0')])).duplicates, [0], 'also after a restart')
  })

  test('purged messages that are still pending are claimed without their content, and the ledger still adds up', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('x', { userId: 'gone' }), track('y'), track('x')], [destinationId])
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    const { segment } = await accept(store(), sourceId, [track('z'), track('w', { userId: 'gone' })], [destinationId])
    const { id } = await store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await untilPurged(store(), id, 2)
    assert.deepEqual(
      [track('z'), track('w', { userId: 'gone' })].map((item) => consumer.deletions[0]?.(sourceId, segment as RowId, item)),
      [false, true],
      'the holder is notified',
    )
    const [first] = (await claim(store(), destinationId, { maxFresh: 1 })).shipments
    assert.ok(first !== undefined)
    assert.deepEqual(messageIdsOf(first), [null, 'y'])
    const pending = (await store().history.deliveries({ destinationId, state: 'pending' }, { limit: 10, cursor: null })).data
    const { pending: owed } = await ledgerOf(store(), destinationId)
    assert.deepEqual([pending.length, owed], [5, 5], 'four messages and the delete message are pending and listed')
    assert.deepEqual(pending.filter(({ messageId }) => messageId === null).length, 3)
    await settle(store(), first, (delivery) => (delivery.endsWith('-0') ? 'cancelled' : 'delivered'), { reason: 'message_deleted' })
    const shown = await store().history.delivery(deliveriesOf(first.shipment)[0] as string)
    assert.deepEqual([shown?.state, shown?.reason, shown?.content], ['cancelled', 'message_deleted', null])
    assert.deepEqual(await store().replays.replay(deliveriesOf(first.shipment)[0] as string), { ok: false, reason: 'message_gone' })
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 5, pending: 3, delivered: 1, cancelled: 1 }))
  })

  test('after the request resolves, no message of the user can be claimed, however long the purge takes', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const count = 2_600
    await Promise.all(
      Array.from({ length: count }, (_, at) =>
        accept(store(), sourceId, [track(`l-${at}`, { userId: at % 2 ? 'gone' : 'stays' })], [destinationId]),
      ),
    )
    const { id } = await store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    const { shipments } = await claim(store(), destinationId)
    const had = shipments.flatMap(messageIdsOf)
    assert.equal(had.filter((messageId) => messageId?.startsWith('l-')).length, count / 2)
    assert.equal(had.filter((messageId) => messageId === null).length, count / 2 + 1, 'the user’s, and the delete message')
    await untilPurged(store(), id, count / 2)
  })

  test('with suppression, messages that are accepted concurrently with the request are purged and cannot be claimed', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const consumer = new RecordingConsumer()
    store().delivery.attach(consumer)
    const of = (name: string) => [track(name, { userId: 'gone' }), track(`${name}-stays`)]
    const isSuppressed = (): boolean => store().configuration().suppressions.get(sourceId)?.has('gone') ?? false
    await accept(store(), sourceId, of('before'), [destinationId])
    let sent = 1
    const creating = store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: true })
    let isAnswered = false
    void creating.then(() => {
      isAnswered = true
    })
    // Like ingest: messages of users who are not suppressed yet are accepted.
    while (!isSuppressed()) {
      sent++
      await Promise.race([accept(store(), sourceId, of(`racing-${sent}`), [destinationId]), creating])
    }
    const last = isAnswered ? null : accept(store(), sourceId, [track('others')], [destinationId])
    const { id } = await creating
    await last
    await untilPurged(store(), id, sent)
    const all = await allPages((page) => store().history.messages({ sourceId }, page), 1_000)
    const left = all.flatMap(({ content }) => content.items).filter((item) => item?.['userId'] === 'gone' && item['type'] !== 'delete')
    assert.deepEqual(left, [])
    for (const { shipment, bodies } of consumer.received) {
      const { segment } = shipment.parts[0] as { segment: RowId }
      for (const item of bodies.get(segment)?.content.items ?? []) {
        if (item?.['userId'] === 'gone') assert.ok(consumer.deletions.some((isDeleted) => isDeleted(sourceId, segment, item)))
      }
    }
    store().delivery.attach(new RecordingConsumer())
  })

  test('a purge continues after the store was closed in the middle', async () => {
    const { id: sourceId } = await newSource(store())
    await Promise.all(
      Array.from({ length: 600 }, (_, at) => accept(store(), sourceId, [track(`m-${at}`, { userId: at % 2 ? 'gone' : 'stays' })])),
    )
    const { id } = await store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await reopen()
    const { purged } = await until(
      () => detail(store(), id),
      ({ state }) => state === 'finished',
      'finished',
    )
    assert.equal(purged, 300)
    const { data } = await store().history.messages({ sourceId, userId: 'gone' }, { limit: 10, cursor: null })
    assert.deepEqual(data, [])
  })

  test('purged messages cannot be read from the stored bytes', async () => {
    const other = await open({ retentionDays: 7 })
    const { id: sourceId } = await newSource(other.store)
    for (const size of [10, 3_000, 30_000]) {
      const secret = { userId: 'gone', properties: { filler: 'x'.repeat(size), secret: `PURGED-${size}` } }
      const items = [track(`gone-${size}`, secret), track(`stays-${size}`, { properties: { plain: `STAYS-${size}` } })]
      await accept(other.store, sourceId, items)
    }
    const { id } = await other.store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
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

  test('a duplicate in a batch with messages of other users is purged too', async () => {
    const other = await open({ retentionDays: 7 })
    const { id: sourceId } = await newSource(other.store)
    const secret = (secret: string) => track('d-1', { userId: 'gone', properties: { secret } })
    await accept(other.store, sourceId, [secret('FIRST-SECRET')])
    await accept(other.store, sourceId, [secret('AGAIN-SECRET'), track('d-2', { properties: { plain: 'STAYS' } })])
    const { id } = await other.store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    const { purged } = await until(
      () => detail(other.store, id),
      ({ state }) => state === 'finished',
      'finished',
    )
    assert.equal(purged, 1, 'it counts once')
    const bytes = await other.closeAndRead()
    assert.ok(bytes.includes('STAYS'))
    assert.ok(!bytes.includes('FIRST-SECRET') && !bytes.includes('AGAIN-SECRET'))
    await other.dispose()
  })

  test('if all messages of a call are purged, its context, IP address and other fields are removed too', async () => {
    const other = await open({ retentionDays: 7 })
    const { id: sourceId } = await newSource(other.store)
    const about = (name: string): Partial<SegmentContent> => ({
      ip: `${name}-IP`,
      trace: { traceparent: `${name}-TRACE`, tracestate: null },
      context: { device: `${name}-CONTEXT` },
      integrations: { All: true, [`${name}-INTEGRATION`]: true },
    })
    await accept(other.store, sourceId, [track('w-1', { userId: 'gone' }), track('w-2', { userId: 'gone' })], [], about('WHOLE'))
    await accept(other.store, sourceId, [track('p-1', { userId: 'gone' }), track('p-2', { userId: 'stays' })], [], about('PART'))
    const { id } = await other.store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await until(
      () => detail(other.store, id),
      ({ state }) => state === 'finished',
      'finished',
    )
    const bytes = await other.closeAndRead()
    for (const what of ['IP', 'TRACE', 'CONTEXT', 'INTEGRATION']) {
      assert.ok(bytes.includes(`PART-${what}`), 'the fields of the other calls stay')
      assert.ok(!bytes.includes(`WHOLE-${what}`), what)
    }
    await other.dispose()
  })
}
