// Deletion requests with one writing thread: commands that share a commit with a request, and a purge that continues after a restart.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test, { type TestContext } from 'node:test'
import type { OpenStore } from '../conformance/conformance.ts'
import {
  accept,
  claim,
  claimOne,
  messageIdsOf,
  newSourceAndDestination,
  RecordingConsumer,
  settlementOf,
  track,
  until,
} from '../conformance/fixtures.ts'
import type { ClaimedShipment } from '../store.ts'
import { openAt, openFor, openTemp, tempFolder } from './fixtures/temp-store.ts'

async function open(t: TestContext): Promise<OpenStore> {
  const opened = await openTemp({ retentionDays: 7 })
  t.after(() => opened.dispose())
  return opened
}

test('a claim that shares the commit of a request does not get its delete message', async (t) => {
  const { store } = await open(t)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  store.delivery.attach(new RecordingConsumer())
  const [atOnce] = await Promise.all([
    claim(store, destinationId),
    store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false }),
  ])
  assert.deepEqual(atOnce.shipments, [])
  assert.equal((await claim(store, destinationId)).shipments.length, 1)
})

test('messages that are accepted in the commit of a request with suppression, or in the next, are purged', async (t) => {
  const { store } = await open(t)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const [{ id }] = await Promise.all([
    store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: true }),
    ...['a', 'b', 'c'].map((name) => accept(store, sourceId, [track(name, { userId: 'gone' })], [destinationId])),
  ])
  assert.deepEqual((await claim(store, destinationId)).shipments.flatMap(messageIdsOf), [null, null, null, null])
  await until(
    () => store.deletions.one(id),
    (deletion) => deletion?.purged === 3,
    'purged',
  )
  await store.deletions.unsuppress('gone', null)
  await accept(store, sourceId, [track('d', { userId: 'gone' })], [destinationId])
  assert.deepEqual(
    (await claim(store, destinationId)).shipments.flatMap(messageIdsOf),
    ['d'],
    'messages of a user who was unsuppressed are kept',
  )
})

test('a purge that was interrupted by a crash is resumed before anything can be claimed', async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'test.db')
  const before = await openAt(path)
  const { sourceId, destinationId } = await newSourceAndDestination(before)
  const count = 3_000
  await Promise.all(
    Array.from({ length: count }, (_, at) => accept(before, sourceId, [track(`m-${at}`, { userId: 'gone' })], [destinationId])),
  )
  await before.close()
  const file = new DatabaseSync(path)
  file.exec(
    `INSERT INTO deletions (id, created_at, suppress, user_ids, sources, every_source, purge_end)
     SELECT 'del_1', 1, 0, '["gone"]', (SELECT json_group_array(num) FROM sources), 0, (SELECT max(id) FROM shipments) + 1`,
  )
  file.close()
  const store = await openFor(t, path)
  const { shipments } = await claim(store, destinationId)
  assert.equal(shipments.length, count)
  assert.deepEqual(new Set(shipments.flatMap(messageIdsOf)), new Set([null]))
})

test('a claim that is answered together with a request returns no messages of the user after the consumer was notified', async (t) => {
  const { store } = await open(t)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const consumer = new RecordingConsumer()
  consumer.reserves = false
  store.delivery.attach(consumer)
  await accept(store, sourceId, [track('a', { userId: 'gone' }), track('b')], [destinationId])
  let toldBefore = -1
  const claiming = claim(store, destinationId).then(({ shipments }) => {
    toldBefore = consumer.deletions.length
    return shipments
  })
  await store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  const [held] = await claiming
  assert.ok(toldBefore === 0 || messageIdsOf(held as ClaimedShipment)[0] === null, 'notified before it had the message, and only once')
  assert.equal(consumer.deletions.length, 1)
})

test('a settlement does not wait for ever for a request that is in the file although its commit was reported as failed', async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'test.db')
  const store = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, [track('a', { userId: 'gone' })], [destinationId])
  const { shipment, bodies } = await claimOne(store, destinationId)
  const settlement = settlementOf([shipment], 'failed', { request: { error: 'gone' } })
  const file = new DatabaseSync(path)
  file.exec(
    `INSERT INTO deletions (id, created_at, suppress, user_ids, sources, every_source, purge_end)
     SELECT 'del_1', 1, 0, '["gone"]', (SELECT json_group_array(num) FROM sources), 0, (SELECT max(id) FROM shipments) + 1`,
  )
  file.close()
  await store.delivery.settle({ ...settlement, bodyOf: (segment) => bodies.get(segment) })
  const [delivery] = (await store.history.deliveries({ destinationId, state: 'failed' }, { limit: 1, cursor: null })).data
  assert.deepEqual(
    (await store.history.delivery(delivery?.id as string))?.history.map(({ error }) => error),
    [null],
  )
  await until(
    () => store.deletions.one('del_1'),
    (deletion) => deletion?.purged === 1,
    'purged',
  )
})
