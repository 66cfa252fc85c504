// How soon partitions of ordered destinations move when nodes join and end. e2e/cluster/order.test.ts has nodes that are killed while they deliver.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { PARTITIONS } from '../../../model/order/order-key.ts'
import { newDestination, newSource, until } from '../../conformance/fixtures.ts'
import type { PartitionChange } from '../../store.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { PostgresStore } from '../store.ts'

/** So long that nothing in these tests happens because a lease has expired. */
const LEASE_MS = 600_000
const MOVES_WITHIN_MS = 2_000
/** A move takes about so many steps of which each waits for a timer or the server, on a busy machine as long as the longest wait of the test itself. */
const STEPS = 8
const TICK_MS = 20
/** The holder of a node that has a row but no process. */
const ENDED = 4_000

let database: TestDatabase
const open: PostgresStore[] = []

before(async () => {
  database = await createDatabase()
})
after(async () => {
  await Promise.all(open.map((store) => store.close()))
  await database.drop()
})

async function node(name: string): Promise<PostgresStore> {
  const store = await openAt(database.url, { nodeName: name, leaseMs: LEASE_MS })
  open.push(store)
  return store
}

async function partitionsOf(holder: string | number): Promise<number> {
  const sql = 'SELECT count(*)::integer AS count FROM switchyard.order_partitions WHERE owner = $1'
  const [row] = await database.query<{ count: number }>(sql, [holder])
  return row?.count ?? 0
}

/** Waits until this node owns so many partitions, and checks that it took no longer than 2 s, as far as the machine was not busy. */
async function assertMoves({ membership }: PostgresStore, wanted: number, what: string): Promise<void> {
  const sinceMs = performance.now()
  const waiting = { isOver: false, longestMs: 0 }
  const watch = (async () => {
    while (!waiting.isOver) {
      const tickMs = performance.now()
      await sleep(TICK_MS)
      await database.query('SELECT 1')
      waiting.longestMs = Math.max(waiting.longestMs, performance.now() - tickMs - TICK_MS)
    }
  })()
  await until(
    () => partitionsOf(membership.holder),
    (count) => count === wanted,
    what,
  )
  const tookMs = performance.now() - sinceMs
  waiting.isOver = true
  await watch
  const mostMs = MOVES_WITHIN_MS + STEPS * waiting.longestMs
  assert.ok(tookMs <= mostMs, `${what} after ${Math.round(tookMs)} ms instead of ${Math.round(mostMs)} ms`)
}

test('partitions move within two seconds when a node joins, and when one has ended', async () => {
  const one = await node('one')
  const { id: sourceId } = await newSource(one)
  await newDestination(one, sourceId, { order: { by: 'user', onFailure: 'skip', maxWaiting: 10_000 } })
  await until(
    () => partitionsOf(one.membership.holder),
    (count) => count === PARTITIONS,
    'the first node owns all partitions',
  )
  const two = await node('two')
  await assertMoves(two, PARTITIONS / 2, 'a node that joins owns half of the partitions')
  assert.equal(await partitionsOf(one.membership.holder), PARTITIONS / 2)

  await two.close()
  open.splice(open.indexOf(two), 1)
  await assertMoves(one, PARTITIONS, 'the other node owns all partitions when one has stopped')

  // A node with partitions whose lock is free, because its process was killed.
  await database.query(
    `WITH node AS (INSERT INTO switchyard.nodes (num, holder, name, version, expires_at, doc)
       VALUES (7, ${ENDED}, 'ended', '', now() + interval '1 hour', json_build_object('configuration', 0, 'lockedIn', pg_postmaster_start_time()::text)))
     UPDATE switchyard.order_partitions SET owner = ${ENDED} WHERE part < 8`,
  )
  assert.equal(await partitionsOf(ENDED), PARTITIONS / 2)
  await assertMoves(one, PARTITIONS, 'the other node owns all partitions when the process of one has ended')
})

test('delivery learns when partitions of this node leave, and when it has more', async () => {
  const changes: PartitionChange[] = []
  const one = await node('told')
  one.delivery.attach({
    reserve: () => false,
    deliver: () => assert.fail('nothing was accepted'),
    cancelReservation: () => {},
    dropMessages: () => {},
    wake: () => {},
    partitionsChanged: (change) => changes.push(change),
  })
  const changed = (change: PartitionChange, what: string): Promise<unknown> =>
    until(
      async () => changes.splice(0).includes(change),
      (isChanged) => isChanged,
      what,
    )
  const owns = (store: PostgresStore, what: string): Promise<unknown> =>
    until(
      () => partitionsOf(store.membership.holder),
      (count) => count > 0,
      what,
    )
  await owns(one, 'the node has partitions')
  const other = await node('another')
  await changed('leaving', 'partitions leave for a node that joins')
  await owns(other, 'the other node has them')
  await other.close()
  open.splice(open.indexOf(other), 1)
  await changed('gained', 'they come back when the other node has stopped')
})

test('a dead node that held very many rows of the same partitions is released', async () => {
  const holder = 5_000
  // In one statement: a node that runs takes partitions whose owner is not known. So many rows that the clock of the server goes on while they are read.
  await database.query(
    `WITH dead AS (
       INSERT INTO switchyard.nodes SELECT (jsonb_populate_record(n, jsonb_build_object('num', n.num + 500, 'holder', $1::bigint, 'expires_at', now() - interval '1 hour'))).*
       FROM switchyard.nodes n LIMIT 1
     ), owned AS (UPDATE switchyard.order_partitions SET owner = $1::bigint)
     INSERT INTO switchyard.shipments (id, destination, attempt, holder, count, bytes, parts, ord, partition)
     SELECT -n, 77, -1, $1::bigint, 1, 1, '[]', n, n % 2 FROM generate_series(1, 50000) AS n`,
    [holder],
  )
  await node('rescuer')
  const held = async (): Promise<number> =>
    (await database.query<{ count: number }>('SELECT count(*)::integer AS count FROM switchyard.shipments WHERE holder = $1', [holder]))[0]
      ?.count ?? 0
  await until(held, (count) => count === 0, 'the rows of the dead node are released')
  const waits = 'SELECT part FROM switchyard.order_waits WHERE destination = 77 ORDER BY part'
  assert.deepEqual(await database.query(waits), [{ part: 0 }, { part: 1 }])
})
