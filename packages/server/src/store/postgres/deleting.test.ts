// Deletion requests where there are several nodes: what one purges another does not send, a purge outlives its node, and what a node
// accepts before it hears of a suppression is purged too.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import pg from 'pg'
import { accept, allPages, claim, newDestination, newSource, newWay, RecordingTaker, settle, track, until } from '../conformance/ground.ts'
import type { DeletionDetail, DeletionSummary, Store } from '../store.ts'
import { createDatabase, type TestDatabase } from './fixtures/postgres-server.ts'
import { openAt } from './fixtures/temp-store.ts'
import type { PostgresStore } from './store.ts'

interface Nodes {
  database: TestDatabase
  open: () => Promise<PostgresStore>
}

async function start(t: TestContext): Promise<Nodes> {
  const database = await createDatabase()
  const nodes: PostgresStore[] = []
  t.after(async () => {
    for (const node of nodes) await node.close()
    await database.drop()
  })
  const open = async (): Promise<PostgresStore> => {
    const node = await openAt(database.url)
    nodes.push(node)
    return node
  }
  return { database, open }
}

function taking(store: Store, wanted: boolean): RecordingTaker {
  const taker = new RecordingTaker()
  taker.wanted = wanted
  store.delivery.attach(taker)
  return taker
}

/** Resolves when the node knows of the source, or of its destination. */
function knows(store: Store, id: string): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      const { sources, destinations } = store.configuration()
      if (sources.has(id) || destinations.has(id)) resolve()
    }
    store.onConfiguration(look)
    look()
  })
}

/** What a taker is told comes with no word to wait for: the event loop has to go on meanwhile. */
const told = (taker: RecordingTaker, isSo: (purges: RecordingTaker['purges']) => boolean): Promise<unknown> =>
  until(() => new Promise<RecordingTaker['purges']>((resolve) => setImmediate(() => resolve(taker.purges))), isSo, 'it is told')

/** A purge has a tail of seconds, and its end is found at a beat. */
const PATIENCE_MS = 60_000

async function reached(store: Store, id: string, state: DeletionSummary['state']): Promise<DeletionDetail> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const deletion = (await store.control.deletion(id)) as DeletionDetail
    if (deletion.state === state) return deletion
    assert.ok(Date.now() < deadline, `still ${deletion.state}, not ${state}`)
  }
}

async function messageIds(store: Store, sourceId: string): Promise<unknown[]> {
  const all = await allPages((page) => store.control.messages({ sourceId }, page), 1_000)
  return all.map(({ content, index }) => content.items[index]?.['messageId']).filter((messageId) => messageId !== undefined)
}

test('a node that holds messages is told when another purges them', async (t) => {
  const { open } = await start(t)
  const [one, other] = [await open(), await open()]
  const { sourceId, destinationId } = await newWay(one)
  await knows(other, destinationId)
  const idle = taking(one, false)
  const taker = taking(other, true)
  const taken = await accept(other, sourceId, [track('a', { userId: 'stays' }), track('b', { userId: 'gone' })], [destinationId])
  taker.wanted = false
  const left = await accept(one, sourceId, [track('c', { userId: 'gone' })], [destinationId])
  const { shipments } = await claim(other, destinationId)
  assert.deepEqual([taker.taken.length, shipments.length], [1, 1], 'one is handed over when it is accepted, the other is claimed')
  await one.control.createDeletion({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  const expected = [
    [taken.segment, [1]],
    [left.segment, [0]],
  ]
  for (const each of [taker, idle]) {
    await told(each, (purges) => expected.every((wanted) => purges.some((purge) => JSON.stringify(purge) === JSON.stringify(wanted))))
  }
})

test('a node that did not hear of a purge is told of what it holds when it listens again', async (t) => {
  const { database, open } = await start(t)
  const store = await open()
  const { sourceId, destinationId } = await newWay(store)
  const taker = taking(store, true)
  const { segment } = await accept(store, sourceId, [track('a', { userId: 'gone' }), track('b'), track('a')], [destinationId])
  const { id } = await store.control.createDeletion({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  await until(
    async () => (await store.control.deletion(id))?.purged,
    (purged) => purged === 1,
    'purged',
  )
  const heard = (): Promise<unknown> => told(taker, (purges) => purges.some(([of]) => of === segment))
  // Told by itself and by the word it sent. What is heard from here on is found in what the node holds.
  await told(taker, (purges) => purges.length === 2)
  taker.purges.splice(0)
  const ended = await database.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
  )
  assert.equal(ended.length, 1)
  await heard()
  assert.deepEqual(taker.purges, [[segment, [0]]])
})

test('a purge whose node is closed in the middle is finished by another, and nothing is counted twice', async (t) => {
  const { database, open } = await start(t)
  const first = await open()
  const { id: sourceId } = await newSource(first)
  const count = 3_300
  await Promise.all(
    Array.from({ length: count }, (_, at) => accept(first, sourceId, [track(`m-${at}`, { userId: at % 3 === 0 ? 'gone' : 'stays' })])),
  )
  // The second step cannot be over before this lets go.
  const [row] = await database.query<{ seq: string }>('SELECT seq FROM switchyard.segments ORDER BY seq OFFSET 1500 LIMIT 3')
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('SELECT FROM switchyard.segments WHERE seq BETWEEN $1 AND $1::bigint + 10000000 FOR UPDATE', [row?.seq])
  const { id } = await first.control.createDeletion({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  const begun = await until(
    () =>
      database.query<{ purged: number; waiting: string }>(
        `SELECT purged, (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()) AS waiting FROM switchyard.deletions`,
      ),
    ([deletion]) => (deletion?.purged ?? 0) > 0 && Number(deletion?.waiting) > 0,
    'it is in its second step',
  )
  assert.ok((begun[0]?.purged ?? 0) < count / 3)
  const closing = first.close()
  await holder.query('ROLLBACK')
  await holder.end()
  await closing
  const [left] = await database.query<{ open: boolean }>('SELECT purge_cursor < purge_end AS open FROM switchyard.deletions')
  assert.equal(left?.open, true, 'it is not over')
  const [second, third] = [await open(), await open()]
  const { purged } = await reached(second, id, 'finished')
  assert.equal(purged, count / 3)
  assert.equal((await messageIds(third, sourceId)).length, count - count / 3)
})

test('purges of several requests that share segments take nothing back from each other', async (t) => {
  const { open } = await start(t)
  const [one, other] = [await open(), await open()]
  const { id: sourceId } = await newSource(one)
  await knows(other, sourceId)
  const users = Array.from({ length: 8 }, (_, at) => `u-${at}`)
  for (let at = 0; at < 60; at++) {
    await accept(
      one,
      sourceId,
      users.map((userId) => track(`${userId}-${at}`, { userId })),
    )
  }
  const requests = await Promise.all(
    users
      .slice(1)
      .map((userId, at) => (at % 2 ? one : other).control.createDeletion({ userIds: [userId], sourceIds: [sourceId], suppress: false })),
  )
  for (const { id } of requests) assert.equal((await reached(one, id, 'finished')).purged, 60)
  assert.deepEqual(new Set(await messageIds(one, sourceId)), new Set(Array.from({ length: 60 }, (_, at) => `u-0-${at}`)))
})

test('with suppression, what another node accepts before it hears of it is purged; who is let in again stays', async (t) => {
  const { open } = await start(t)
  const [one, other] = [await open(), await open()]
  const { id: sourceId } = await newSource(one)
  await knows(other, sourceId)
  await accept(other, sourceId, [track('before', { userId: 'gone' }), track('kept')])
  const { id } = await one.control.createDeletion({ userIds: ['gone', 'back'], sourceIds: [sourceId], suppress: true })
  await accept(other, sourceId, [track('late', { userId: 'gone' }), track('kept too')])
  assert.equal(await one.control.deleteSuppression('back', null), 1)
  await accept(other, sourceId, [track('again', { userId: 'back' })])
  await until(
    () => one.control.message('before'),
    (message) => message === undefined,
    'what there was is purged at once',
  )
  const early = await one.control.deletion(id)
  assert.equal(early?.state, 'running', 'and the request is not over')
  assert.equal((await reached(one, id, 'finished')).purged, 2)
  assert.deepEqual(new Set(await messageIds(one, sourceId)), new Set(['again', 'kept', 'kept too']))
})

test('user ids of any characters are deleted, suppressed, listed and pseudonymized as they are', async (t) => {
  const { database, open } = await start(t)
  const store = await open()
  const { sourceId, destinationId } = await newWay(store)
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
  // Named as another of the request will be.
  userIds.push(await store.control.pseudonym('\\'))
  await accept(
    store,
    sourceId,
    userIds.map((userId, at) => track(`m-${at}`, { userId })),
  )
  const { id, firstTargets } = await store.control.createDeletion({ userIds, sourceIds: [sourceId], suppress: false })
  assert.deepEqual(
    firstTargets.data.map(({ userId }) => userId),
    userIds,
  )
  await until(
    async () => (await store.control.deletion(id))?.purged,
    (purged) => purged === userIds.length,
    'all are purged',
  )
  assert.equal(await store.control.createSuppressions({ userIds, sourceIds: null }), userIds.length)
  assert.deepEqual([...(store.configuration().suppressions.get(sourceId) ?? [])].sort(), [...userIds].sort())
  for (const limit of [1, 5]) {
    const listed = await allPages((page) => store.control.suppressions({}, page), limit)
    assert.deepEqual(listed.map(({ userId }) => userId).sort(), [...userIds].sort())
  }
  const { shipments } = await claim(store, destinationId)
  assert.deepEqual(
    shipments.map(({ shipment, contents }) => contents.get(shipment.parts[0]?.segment as string)?.items[0]?.['userId']),
    userIds,
  )
  for (const claimed of shipments) await settle(store, claimed, 'delivered')
  const page = { limit: 10, cursor: null }
  const found = async (): Promise<void> => {
    for (const userId of userIds) {
      assert.equal((await store.control.deletions({ userId }, page)).data[0]?.id, id)
      assert.equal((await store.control.deletionTargets(id, { userId }, page)).data.length, 1)
    }
  }
  await found()
  for (const userId of userIds) {
    assert.equal((await store.control.suppressions({ userId }, page)).data.length, 1)
    assert.equal(await store.control.deleteSuppression(userId, sourceId), 1)
  }
  await store.dropExpired(Date.now() + 30 * 86_400_000)
  const [ended] = await database.query<{ ended: string; pseudonyms: boolean }>('SELECT ended, pseudonyms FROM switchyard.deletions')
  assert.deepEqual(ended, { ended: 'finished', pseudonyms: true })
  const targets = (await store.control.deletion(id))?.firstTargets.data ?? []
  assert.deepEqual(
    targets.map(({ userId, state }) => [userId, state]),
    await Promise.all(userIds.map(async (userId) => [await store.control.pseudonym(userId), 'finished'])),
  )
  await found()
})

test('cursors that no list gave out are refused, and names that cannot be are not found', async (t) => {
  const { open } = await start(t)
  const store = await open()
  const { id: sourceId } = await newSource(store)
  await newDestination(store, sourceId)
  const { id } = await store.control.createDeletion({ userIds: ['u'], sourceIds: null, suppress: true })
  const places = ['0', 'x', '', "1'", '99999999999999999999', '9999999999999999999', '1\0', -1, 1.5, null]
  for (const place of places) {
    for (const list of [
      (cursor: unknown[]) => store.control.deletions({}, { limit: 1, cursor: JSON.stringify(['d', ...cursor]) }),
      (cursor: unknown[]) => store.control.suppressions({}, { limit: 1, cursor: JSON.stringify(['u', ...cursor, '']) }),
      (cursor: unknown[]) => store.control.deletionTargets(id, {}, { limit: 1, cursor: JSON.stringify(['t', 0, 0, ...cursor, 0]) }),
    ]) {
      await assert.rejects(list([place]), { name: 'InvalidCursor' }, JSON.stringify(place))
    }
  }
  const anywhere = JSON.stringify(['u', '1000000000000000000', 'any\0\ud800\\'])
  assert.equal((await store.control.suppressions({}, { limit: 1, cursor: anywhere })).data.length, 1)
  assert.equal(await store.control.deletion('del_\0'), undefined)
  assert.equal(await store.control.deleteSuppression('u', 'src_\0'), 0)
  await assert.rejects(store.control.createSuppressions({ userIds: ['u'], sourceIds: ['src_\0'] }), /unknown source/)
})
