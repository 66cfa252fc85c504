// Deletion requests with unusual ids and cursors, which PostgreSQL handles differently from SQLite.

import assert from 'node:assert/strict'
import test from 'node:test'
import {
  accept,
  allPages,
  claim,
  newDestination,
  newSource,
  newSourceAndDestination,
  settle,
  track,
  until,
} from '../conformance/fixtures.ts'
import { start } from './fixtures/deleting-nodes.ts'

test('user ids with any characters can be deleted, suppressed, listed and pseudonymized', async (t) => {
  const { database, open } = await start(t)
  const store = await open()
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const userIds = [
    'nul\0nul',
    'nul\\u0000nul',
    '\ud800 lone',
    '\udc00 lone',
    '\\',
    '\\\\',
    'quote \' " ` $1 {} , NULL',
    '\u{1F600}',
    '{"a":1}',
    "'; DROP TABLE deletions; --",
    '__proto__',
  ]
  // Equals the pseudonym that another user of the request will get.
  userIds.push(await store.deletions.pseudonym('\\'))
  await accept(
    store,
    sourceId,
    userIds.map((userId, at) => track(`m-${at}`, { userId })),
  )
  const { id, firstTargets } = await store.deletions.create({ userIds, sourceIds: [sourceId], suppress: false })
  assert.deepEqual(
    firstTargets.data.map(({ userId }) => userId),
    userIds,
  )
  await until(
    async () => (await store.deletions.one(id))?.purged,
    (purged) => purged === userIds.length,
    'all are purged',
  )
  assert.equal(await store.deletions.suppress({ userIds, sourceIds: null }), userIds.length)
  assert.deepEqual([...(store.configuration().suppressions.get(sourceId) ?? [])].sort(), [...userIds].sort())
  for (const limit of [1, 5]) {
    const listed = await allPages((page) => store.deletions.suppressions({}, page), limit)
    assert.deepEqual(listed.map(({ userId }) => userId).sort(), [...userIds].sort())
  }
  const { shipments } = await claim(store, destinationId)
  assert.deepEqual(
    shipments.map(({ shipment, bodies }) => bodies.get(shipment.parts[0]?.segment as string)?.content.items[0]?.['userId']),
    userIds,
  )
  for (const claimed of shipments) await settle(store, claimed, 'delivered')
  const page = { limit: 10, cursor: null }
  const found = async (): Promise<void> => {
    for (const userId of userIds) {
      assert.equal((await store.deletions.list({ userId }, page)).data[0]?.id, id)
      assert.equal((await store.deletions.targets(id, { userId }, page)).data.length, 1)
    }
  }
  await found()
  for (const userId of userIds) {
    assert.equal((await store.deletions.suppressions({ userId }, page)).data.length, 1)
    assert.equal(await store.deletions.unsuppress(userId, [sourceId]), 1)
  }
  await store.dropExpired(Date.now() + 30 * 86_400_000)
  const [ended] = await database.query<{ ended: string; pseudonyms: boolean }>('SELECT ended, pseudonyms FROM switchyard.deletions')
  assert.deepEqual(ended, { ended: 'finished', pseudonyms: true })
  const targets = (await store.deletions.one(id))?.firstTargets.data ?? []
  assert.deepEqual(
    targets.map(({ userId, state }) => [userId, state]),
    await Promise.all(userIds.map(async (userId) => [await store.deletions.pseudonym(userId), 'finished'])),
  )
  await found()
})

test('cursors that no list returned are rejected, and impossible ids are not found', async (t) => {
  const { open } = await start(t)
  const store = await open()
  const { id: sourceId } = await newSource(store)
  await newDestination(store, sourceId)
  const { id } = await store.deletions.create({ userIds: ['u'], sourceIds: null, suppress: true })
  const places = ['0', 'x', '', "1'", '99999999999999999999', '9999999999999999999', '1\0', -1, 1.5, null]
  for (const place of places) {
    for (const list of [
      (cursor: unknown[]) => store.deletions.list({}, { limit: 1, cursor: JSON.stringify(['d', ...cursor]) }),
      (cursor: unknown[]) => store.deletions.suppressions({}, { limit: 1, cursor: JSON.stringify(['u', ...cursor, '']) }),
      (cursor: unknown[]) => store.deletions.targets(id, {}, { limit: 1, cursor: JSON.stringify(['t', 0, 0, ...cursor, 0]) }),
    ]) {
      await assert.rejects(list([place]), { name: 'InvalidCursor' }, JSON.stringify(place))
    }
  }
  const anywhere = JSON.stringify(['u', '1000000000000000000', 'any\0\ud800\\'])
  assert.equal((await store.deletions.suppressions({}, { limit: 1, cursor: anywhere })).data.length, 1)
  assert.equal(await store.deletions.one('del_\0'), undefined)
  assert.equal(await store.deletions.unsuppress('u', ['src_\0']), 0)
  await assert.rejects(store.deletions.suppress({ userIds: ['u'], sourceIds: ['src_\0'] }), /unknown source/)
})
