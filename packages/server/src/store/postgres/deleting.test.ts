// Deletion requests with several nodes: no node sends messages that another was asked to delete, a purge is finished if its node dies, and
// messages that a node accepts before it learns of a suppression are purged too.

import assert from 'node:assert/strict'
import test from 'node:test'
import pg from 'pg'
import { withLetters } from '../conformance/delivery/dead-letters.ts'
import {
  accept,
  claim,
  claimOne,
  messageIdsOf,
  newDestination,
  newSource,
  newSourceAndDestination,
  settlementOf,
  track,
  until,
} from '../conformance/fixtures.ts'
import { knows, messageIds, reached, start, startProxy, taking } from './fixtures/deleting-nodes.ts'

test('a request is not answered, and its delete message cannot be claimed, before every node that holds messages of the user knows of it', async (t) => {
  const { database, open, openThrough } = await start(t)
  const one = await open()
  const proxy = await startProxy(t, database.url)
  const other = await openThrough(proxy.url)
  const { sourceId, destinationId } = await newSourceAndDestination(one)
  await knows(other, destinationId)
  taking(one, false)
  const consumer = taking(other, true)
  const { segment } = await accept(other, sourceId, [track('a', { userId: 'stays' }), track('b', { userId: 'gone' })], [destinationId])
  assert.equal(consumer.received.length, 1)
  proxy.hold()
  let isAnswered = false
  const creating = one.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false }).then((deletion) => {
    isAnswered = true
    return deletion
  })
  const purged = (): Promise<{ purged: number }[]> => database.query('SELECT purged FROM switchyard.deletions')
  await until(purged, ([deletion]) => deletion?.purged === 1, 'the message is purged, and another node could still send it')
  assert.deepEqual((await claim(one, destinationId)).shipments, [])
  assert.deepEqual([isAnswered, consumer.deletions.length], [false, 0])
  proxy.release()
  await creating
  const [isDeleted] = consumer.deletions
  assert.deepEqual(
    ['stays', 'gone'].map((userId) => isDeleted?.(sourceId, segment as string, track('any', { userId }))),
    [false, true],
  )
  assert.equal((await claim(one, destinationId)).shipments.length, 1, 'the delete message')
})

test('a node that is stopping does not answer a request before every node has confirmed it', async (t) => {
  const { database, open } = await start(t)
  const store = await open()
  const { id: sourceId } = await newSource(store)
  // A message with the same key waits for this transaction.
  await accept(store, sourceId, [track('same')])
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('DELETE FROM switchyard.message_keys')
  const accepting = accept(store, sourceId, [track('same'), track('late', { userId: 'gone' })])
  const creating = store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: true })
  const refused = assert.rejects(creating, { name: 'StoreUnavailable' })
  await until(
    () => database.query('SELECT FROM switchyard.deletions'),
    ({ length }) => length === 1,
    'the request is stored',
  )
  const closing = store.close()
  await refused
  await holder.query('COMMIT')
  await holder.end()
  await Promise.all([accepting, closing])
})

test('a request waits for a killed node no longer than its lease', async (t) => {
  const { database, open } = await start(t)
  const store = await open()
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await database.query(
    `INSERT INTO switchyard.nodes (num, holder, name, version, expires_at, doc)
     VALUES (500, 1, 'dead', '', now() + interval '300 milliseconds', '{"configuration":1}')`,
  )
  await store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  assert.equal((await claim(store, destinationId)).shipments.length, 1)
  const [node] = await database.query<{ over: boolean }>('SELECT expires_at < now() AS over FROM switchyard.nodes WHERE num = 500')
  assert.notEqual(node?.over, false)
})

test('a node that comes back after its lease has expired sends and stores nothing before it knows the deletions made meanwhile', async (t) => {
  const { database, openThrough } = await start(t)
  const leaseMs = 1_000
  const one = await openThrough(database.url, { leaseMs })
  const proxy = await startProxy(t, database.url)
  const other = await openThrough(proxy.url, { leaseMs })
  const { sourceId, destinationId } = await newSourceAndDestination(one)
  await knows(other, destinationId)
  const consumer = taking(other, false)
  const share = (): number => other.delivery.share(destinationId, 10)
  await until(
    async () => share(),
    (mine) => mine > 0,
    'it sends',
  )
  proxy.hold()
  await one.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: true })
  assert.deepEqual([share(), consumer.deletions.length], [0, 0])
  const accepting = accept(other, sourceId, [track('late', { userId: 'gone' })], [destinationId]).then(
    () => 'stored',
    (error: Error) => error.name,
  )
  const locking = new pg.Client({ connectionString: database.url })
  await locking.connect()
  await locking.query('BEGIN')
  await locking.query('LOCK TABLE switchyard.deletions')
  proxy.release()
  await until(
    () =>
      other.membership.heartbeat().then(
        () => true,
        () => false,
      ),
    (isAlive) => isAlive,
    'it is alive again',
  )
  assert.deepEqual([share(), consumer.deletions.length], [0, 0])
  await locking.query('ROLLBACK')
  await locking.end()
  await until(
    async () => share(),
    (mine) => mine > 0,
    'it sends again',
  )
  // More than once if its lease has expired again meanwhile.
  assert.ok(consumer.deletions.length > 0)
  assert.equal(other.configuration().suppressions.get(sourceId)?.has('gone'), true)
  assert.notEqual(await accepting, 'stored')
  assert.deepEqual(await messageIds(one, sourceId), [])
})

test('a deletion for a source that was created a moment before applies to that source on every node', async (t) => {
  const { database, open } = await start(t)
  const store = await open()
  const consumer = taking(store, false)
  const writing = new pg.Client({ connectionString: database.url })
  await writing.connect()
  await writing.query('BEGIN')
  await writing.query('LOCK TABLE switchyard.deletions')
  await newSource(store)
  const waiting = (): Promise<{ count: number }[]> =>
    database.query(
      `SELECT count(*)::integer AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
         AND query LIKE '%num <> ALL%'`,
    )
  await until(waiting, ([row]) => row?.count === 1, 'the node has read the configuration, and is about to read the deletions')
  await writing.query(
    "INSERT INTO switchyard.sources (num, id, version, doc) SELECT 3000000000000000007, 'src_new', version + 1, '{}' FROM switchyard.configuration",
  )
  await writing.query(
    `INSERT INTO switchyard.deletions (num, id, created_at, suppress, every_source, user_ids, sources, purge_end)
     VALUES (3000000000000000008, 'del_new', 1, false, false, '["gone"]', '["3000000000000000007"]', 3000000000000000009)`,
  )
  await writing.query('COMMIT')
  await writing.end()
  await until(
    async () => consumer.deletions.length,
    (count) => count > 0,
    'the node knows of the deletion',
  )
  assert.equal(consumer.deletions[0]?.('src_new', '1', track('any', { userId: 'gone' })), true)
})

test('after the answer no message of the user can be claimed, even if its purge has to wait', async (t) => {
  const { database, open } = await start(t)
  const [one, other] = [await open(), await open()]
  const { sourceId, destinationId } = await newSourceAndDestination(one)
  await knows(other, destinationId)
  for (const store of [one, other]) taking(store, false)
  const { segment } = await accept(one, sourceId, [track('a', { userId: 'gone' }), track('b')], [destinationId])
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('SELECT FROM switchyard.segments WHERE seq = $1 FOR UPDATE', [segment])
  const { id } = await one.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  const { shipments } = await claim(other, destinationId)
  assert.deepEqual(shipments.map(messageIdsOf), [[null, 'b'], [null]], 'the second shipment is the delete message')
  assert.equal((await one.deletions.one(id))?.purged, 0)
  await holder.query('ROLLBACK')
  await holder.end()
  await until(
    () => one.deletions.one(id),
    (deletion) => deletion?.purged === 1,
    'purged',
  )
})

test('with suppression, the answer waits for what another node is accepting, which is purged', async (t) => {
  const { database, open } = await start(t)
  const [one, other] = [await open(), await open()]
  const { id: sourceId } = await newSource(one)
  await knows(other, sourceId)
  // A message with the same key waits for this transaction.
  await accept(other, sourceId, [track('same')])
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('DELETE FROM switchyard.message_keys')
  const accepting = accept(other, sourceId, [track('same'), track('late', { userId: 'gone' })])
  const waiting = (): Promise<{ count: number }[]> =>
    database.query(
      `SELECT count(*)::integer AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    )
  await until(waiting, ([row]) => row?.count === 1, 'it waits')
  let isAnswered = false
  const creating = one.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: true }).then((deletion) => {
    isAnswered = true
    return deletion
  })
  await until(
    async () => other.configuration().suppressions.get(sourceId)?.has('gone'),
    (isSuppressed) => isSuppressed === true,
    'the other node drops new messages of the user',
  )
  // The purge has finished its first scan, and there is nothing else to wait for.
  await until(
    () => database.query<{ cursor: string }>('SELECT purge_cursor AS cursor FROM switchyard.deletions'),
    ([deletion]) => deletion?.cursor !== '0',
    'it is purged',
  )
  for (let nth = 0; nth < 10; nth++) await one.deletions.list({}, { limit: 1, cursor: null })
  assert.equal(isAnswered, false)
  await holder.query('COMMIT')
  await holder.end()
  await accepting
  const { id } = await creating
  assert.equal((await reached(one, id, 'finished')).purged, 1)
  assert.deepEqual(new Set(await messageIds(one, sourceId)), new Set(['same']))
})

test('if a node is closed in the middle of a purge, another node finishes it, and nothing is counted twice', async (t) => {
  const { database, open } = await start(t)
  const first = await open()
  const { id: sourceId } = await newSource(first)
  const count = 3_300
  await Promise.all(
    Array.from({ length: count }, (_, at) => accept(first, sourceId, [track(`m-${at}`, { userId: at % 3 === 0 ? 'gone' : 'stays' })])),
  )
  // The second step cannot finish before this releases its locks.
  const [row] = await database.query<{ seq: string }>('SELECT seq FROM switchyard.segments ORDER BY seq OFFSET 1500 LIMIT 3')
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('SELECT FROM switchyard.segments WHERE seq BETWEEN $1 AND $1::bigint + 10000000 FOR UPDATE', [row?.seq])
  const { id } = await first.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
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
  assert.equal(left?.open, true, 'the purge has not finished')
  const [second, third] = [await open(), await open()]
  const { purged } = await reached(second, id, 'finished')
  assert.equal(purged, count / 3)
  assert.equal((await messageIds(third, sourceId)).length, count - count / 3)
})

test('purges of several requests that share segments do not undo each other', async (t) => {
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
      .map((userId, at) => (at % 2 ? one : other).deletions.create({ userIds: [userId], sourceIds: [sourceId], suppress: false })),
  )
  for (const { id } of requests) assert.equal((await reached(one, id, 'finished')).purged, 60)
  assert.deepEqual(new Set(await messageIds(one, sourceId)), new Set(Array.from({ length: 60 }, (_, at) => `u-0-${at}`)))
})

test('with suppression, messages that another node accepts before it learns of it are purged, unless the user is no longer suppressed', async (t) => {
  const { open } = await start(t)
  const [one, other] = [await open(), await open()]
  const { id: sourceId } = await newSource(one)
  await knows(other, sourceId)
  await accept(other, sourceId, [track('before', { userId: 'gone' }), track('kept')])
  const { id } = await one.deletions.create({ userIds: ['gone', 'back'], sourceIds: [sourceId], suppress: true })
  await accept(other, sourceId, [track('late', { userId: 'gone' }), track('kept too')])
  assert.equal(await one.deletions.unsuppress('back', null), 1)
  await accept(other, sourceId, [track('again', { userId: 'back' })])
  await until(
    () => one.history.message('before'),
    (message) => message === undefined,
    'existing messages are purged at once',
  )
  const early = await one.deletions.one(id)
  assert.equal(early?.state, 'running', 'the request has not finished')
  assert.equal((await reached(one, id, 'finished')).purged, 2)
  assert.deepEqual(new Set(await messageIds(one, sourceId)), new Set(['again', 'kept', 'kept too']))
})

test('a deletion waits for dead letters of the user that are being written, and purges them', async (t) => {
  const { database, open } = await start(t)
  const one = await open()
  const two = await open()
  const { sourceId, destinationId } = await newSourceAndDestination(one)
  const { id: target } = await newDestination(one, sourceId, { sourceIds: [] })
  await knows(two, target)
  taking(two, false)
  await accept(one, sourceId, [track('m', { userId: 'gone' })], [destinationId])
  const claimed = await claimOne(two, destinationId)
  // The settlement has begun, and cannot end while its shipment is locked.
  const locker = new pg.Client(database.url)
  await locker.connect()
  try {
    await locker.query('BEGIN')
    await locker.query('SELECT FROM switchyard.shipments FOR UPDATE')
    const settling = two.delivery.settle(withLetters(settlementOf([claimed.shipment], 'failed'), [claimed], target))
    const waiting = (wanted: number) => async () =>
      (await database.query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)).length >=
      wanted
    await until(waiting(1), (isSo) => isSo, 'the settlement waits')
    const deleting = one.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await until(waiting(2), (isSo) => isSo, 'the deletion waits for the settlement')
    await locker.query('COMMIT')
    await settling
    const { id } = await deleting
    await until(
      () => one.deletions.one(id),
      (deletion) => deletion?.purged === 2,
      'the message and its dead letter are purged',
    )
    assert.deepEqual(messageIdsOf(await claimOne(two, target)), [null])
  } finally {
    await locker.end()
  }
})
